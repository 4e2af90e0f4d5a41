// The card beside the drawing: what is known of the container or CPU that is selected or under the pointer.

import { bytes, factor, html, percent } from "./dom.js";
import * as selection from "./selection.js";
import { t } from "./words.js";

export class Card {
  constructor(host, data) {
    this.host = host;
    this.empty = host ? [...host.childNodes] : [];
    this.take(data);
    if (host) selection.watch((state) => this.show(state));
  }

  take(data) {
    this.data = data;
    this.byId = new Map(data.containers.map((each) => [each.id, each]));
    this.repaint();
  }

  repaint() {
    if (this.host && this.state) this.show(this.state);
  }

  show(state) {
    this.state = { ...state };
    const container = this.byId.get(state.hover ?? state.container);
    if (container) this.host.replaceChildren(...this.about(container));
    else this.host.replaceChildren(...this.empty);
  }

  about(each) {
    const unknown = t("unknown");
    const list = html("dl", { class: "nw-facts" });
    const add = (name, value) => list.append(html("dt", {}, name), html("dd", {}, value));
    add(`${t("card.cpus")} (${each.kind ? t(`kind.${each.kind}`) : unknown})`, each.cpus ?? unknown);
    add(t("card.cpuNodes"), each.cpuNodes.length ? each.cpuNodes.join(", ") : each.cpus === null ? unknown : t("card.none"));
    add(t("card.memory"), this.memory(each));
    if (each.devices.length) add(t("card.devices"), each.devices.map((claim) => t("card.deviceOn", { resource: claim.resource, numa: claim.numa.join(", ") || "?" })).join("; "));
    add(t("card.locality"), percent(each.locality, unknown));
    add(t("card.cost"), factor(each.cost, unknown));
    add(t("card.cross"), each.cross === null ? unknown : each.cross.map((kind) => t(`cross.${kind}`)).join(t("separator")) || t("card.no"));
    const why = each.why.map(({ text, remedy }) => html("p", { class: "mb-1" }, text, " ", html("span", { class: "text-secondary" }, remedy)));
    return [html("h2", { class: "nw-card-title" }, each.title), list, ...why];
  }

  memory(each) {
    const known = Object.entries(each.pageShares ?? {}).filter(([, part]) => part >= 0.005);
    const parts = known.map(([numa, part]) => t("card.share", { numa, share: percent(part) })).join(" · ");
    const total = bytes(each.memory, t("unknown"));
    return parts ? `${total} (${parts})` : total;
  }
}
