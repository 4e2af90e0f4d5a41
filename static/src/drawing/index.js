// The node drawing on a page: lays out for the width at hand, lights up what is selected, follows the pointer and the
// arrow keys, and takes measurements without a new layout.

import { count, percent } from "../dom.js";
import { drawnIn } from "../figures.js";
import * as selection from "../selection.js";
import { t } from "../words.js";
import { standalone } from "./export.js";
import { layout } from "./layout.js";
import { machine, relations } from "./machine.js";
import { Painting } from "./paint.js";
import { hideTip, showTip } from "./tip.js";

const OWNERS = { x: "exclusive", s: "shared", r: "reserved", o: "offline", u: "unknown" };

export class Drawing {
  constructor(host, data) {
    this.host = host;
    this.compact = host.dataset.drawing === "compact";
    this.take(data);
    this.width = 0;
    this.current = null;
    new ResizeObserver(() => this.resize()).observe(host);
    this.listen();
    drawnIn(host, () => standalone(this.painting.root));
    selection.watch((state) => this.show(state));
    window.addEventListener("popstate", () => this.zoomChanged());
  }

  /** New structure: another set of containers, owners or CPUs. */
  take(data) {
    this.data = data;
    this.related = relations(data);
    this.byId = new Map(data.containers.map((each, index) => [each.id, index]));
    this.at = new Map(data.cpus.id.map((id, position) => [id, position]));
    if (this.painting) this.paint();
  }

  zoomed() {
    const asked = new URL(window.location.href).searchParams.get("numa");
    return !this.compact && this.data.nodes.some((node) => String(node.id) === asked) ? Number(asked) : null;
  }

  resize() {
    const width = Math.floor(this.host.clientWidth);
    if (!width || Math.abs(width - this.width) < 2) return;
    this.width = width;
    this.paint();
  }

  paint() {
    const plan = layout(machine(this.data, this.zoomed()), this.width, this.compact);
    this.painting = new Painting(this.data, plan, { compact: this.compact, label: this.host.dataset.label });
    const focused = this.host.contains(document.activeElement) && document.activeElement.matches("[data-cpu]");
    this.host.replaceChildren(this.painting.root);
    document.querySelectorAll("[data-unzoom]").forEach((button) => button.toggleAttribute("hidden", this.zoomed() === null));
    if (!this.compact) this.rove(this.current);
    // A new drawing takes the place of one that somebody is walking through.
    if (focused) this.painting.cells.get(this.current)?.group.focus();
    this.show(this.shown);
  }

  zoom(numa) {
    const url = new URL(window.location.href);
    if (numa === null) url.searchParams.delete("numa");
    else url.searchParams.set("numa", numa);
    window.history.pushState(null, "", url);
    this.zoomChanged();
  }

  zoomChanged() {
    if (!this.compact && this.painting) this.paint();
  }

  show(state) {
    this.shown = state;
    if (!this.painting || !state) return;
    // A planned pod is lit while nothing else is looked at.
    const index = this.byId.get(state.hover ?? state.container ?? this.data.planned);
    this.painting.light(this.data.containers[index], this.related.cpusOf[index] ?? []);
    const cpu = state.point ?? (state.hover ? null : state.cpu);
    this.painting.point(cpu === null ? null : (this.at.get(cpu) ?? null));
  }

  /** A new measurement: busy shares in the order of the CPUs, figures by NUMA node. */
  measure(busy, numa) {
    busy.forEach((share, at) => {
      this.data.cpus.busy[at] = share;
      if (this.painting?.cells.has(at)) this.painting.busy(at, share);
    });
    for (const node of this.data.nodes) {
      const fresh = numa[node.id];
      if (!fresh) continue;
      node.busy = fresh.busy;
      Object.assign(node.memory, { used: fresh.used, free: fresh.free, file: fresh.file });
      const parts = this.painting?.nodes.get(node.id);
      if (parts) this.painting.remember(parts);
    }
  }

  // What the pointer and the keys do ------------------------------------------------------------------------------

  listen() {
    this.host.addEventListener("pointerover", (event) => this.over(event));
    this.host.addEventListener("pointerleave", () => this.leave());
    this.host.addEventListener("click", (event) => this.click(event));
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.host.addEventListener("focusin", (event) => this.focus(event));
    this.host.addEventListener("focusout", () => this.leave());
  }

  cellOf(event) {
    const cell = event.target.closest?.("[data-cpu]");
    return cell ? Number(cell.dataset.cpu) : null;
  }

  over(event) {
    const at = this.cellOf(event);
    if (at === null) return this.leave();
    this.pointed(at);
    return showTip(this.describe(at), event.target.closest("[data-cpu]"));
  }

  leave() {
    hideTip();
    selection.hover(null);
  }

  pointed(at) {
    const owner = this.data.containers[this.related.containersOf[at][0]];
    selection.hover(owner ? owner.id : null, this.data.cpus.id[at]);
  }

  click(event) {
    const zoom = event.target.closest?.("[data-zoom]");
    if (zoom) return this.zoom(this.zoomed() === null ? zoom.dataset.zoom : null);
    const at = this.cellOf(event);
    return at === null ? selection.select({}) : this.choose(at);
  }

  choose(at) {
    this.rove(at);
    const owner = this.data.containers[this.related.containersOf[at][0]];
    selection.select({ container: owner ? owner.id : null, cpu: this.data.cpus.id[at] });
  }

  focus(event) {
    const at = this.cellOf(event);
    if (at === null || !event.target.matches("[data-cpu]")) return;
    this.rove(at);
    this.pointed(at);
    showTip(this.describe(at), event.target);
  }

  /** Exactly one cell takes part in the tab order; arrow keys move it. */
  rove(at) {
    const cells = this.painting.cells;
    const to = cells.has(at) ? at : cells.keys().next().value;
    this.host.querySelector('[data-cpu][tabindex="0"]')?.setAttribute("tabindex", -1);
    if (to === undefined) return;
    this.current = to;
    const { group } = cells.get(to);
    group.setAttribute("tabindex", 0);
    group.setAttribute("aria-label", this.describe(to).join(", "));
  }

  key(event) {
    const zoom = event.target.closest?.("[data-zoom]");
    const at = event.target.matches?.("[data-cpu]") ? this.cellOf(event) : null;
    if (event.key === "Escape") {
      if (this.zoomed() !== null) this.zoom(null);
      selection.select({});
    } else if (event.key === "Enter" || event.key === " ") {
      if (zoom) this.zoom(this.zoomed() === null ? zoom.dataset.zoom : null);
      else if (at !== null) this.choose(at);
      else return;
    } else if (at === null || !this.step(at, event.key)) {
      return;
    }
    event.preventDefault();
  }

  step(at, key) {
    const from = this.painting.cells.get(at).place;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    let to = null;
    if (ways[key]) to = this.neighbour(from, ...ways[key]);
    else if (key === "Home") to = [...this.painting.cells.keys()][0];
    else if (key === "End") to = [...this.painting.cells.keys()].at(-1);
    if (to === null) return Boolean(ways[key]);
    this.painting.cells.get(to).group.setAttribute("tabindex", -1);
    this.painting.cells.get(to).group.focus();
    return true;
  }

  /** The nearest cell in a direction; what lies aside counts four times. */
  neighbour(from, dx, dy) {
    let [found, least] = [null, Infinity];
    for (const [at, { place }] of this.painting.cells) {
      const ahead = (place.x - from.x) * dx + (place.y - from.y) * dy;
      const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx);
      const distance = ahead + 4 * aside;
      if (ahead > 0.5 && distance < least) [found, least] = [at, distance];
    }
    return found;
  }

  /** Lines about a CPU: what it is, where, whose, how busy. */
  describe(at) {
    const { cpus, containers } = this.data;
    const unknown = t("unknown");
    const where = [
      cpus.core[at] === null ? null : t("core", { id: cpus.core[at] }),
      cpus.socket[at] === null ? null : t("socket", { id: cpus.socket[at] }),
      cpus.numa[at] === null ? null : t("numa", { id: cpus.numa[at] }),
    ];
    const names = this.related.containersOf[at].map((index) => containers[index].title);
    const more = names.length > 4 ? [t("more", { count: count(names.length - 4) })] : [];
    return [
      t("cpu", { id: cpus.id[at] }),
      where.filter(Boolean).join(" · "),
      cpus.owner[at] === "o" ? t("own.offline") : `${t(`own.${OWNERS[cpus.owner[at]]}`)} · ${t("busyOf", { share: percent(cpus.busy[at], unknown) })}`,
      ...names.slice(0, 4),
      ...more,
    ].filter(Boolean);
  }
}
