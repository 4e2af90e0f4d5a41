// The node's page: drawings, links, rows and the detail card around one payload, kept fresh by the live connection.

import { Drawing } from "./drawing/index.js";
import { Links } from "./drawing/links.js";
import { embedded } from "./dom.js";
import { Card } from "./card.js";
import { Live } from "./live.js";
import * as pace from "./pace.js";
import { refreshAll } from "./refresh.js";
import { Rows } from "./rows.js";
import * as selection from "./selection.js";

class NodePage {
  constructor(data, place) {
    this.data = data;
    this.source = place?.dataset.payload;
    selection.start();
    this.drawings = data ? [...document.querySelectorAll("[data-drawing]")].map((host) => new Drawing(host, data)) : [];
    document.querySelectorAll("[data-links]").forEach((host) => new Links(host, data));
    this.card = data ? new Card(document.querySelector("[data-card]"), data) : null;
    this.rows = new Rows(data);
    document.querySelectorAll("[data-unzoom]").forEach((button) => button.addEventListener("click", () => this.drawings[0]?.zoom(null)));
    pace.watch(() => this.reload());
    if (place?.dataset.node) new Live(place.dataset.node, { text: (message) => this.message(message) });
  }

  message(message) {
    if (message.type === "node") {
      this.measured(message);
      return message.age ?? 0;
    }
    if (message.type === "reload-part" || message.type === "resync") this.later();
    return undefined;
  }

  measured({ busy, numa, containers }) {
    // Another number of CPUs is another machine: its structure comes by itself with "reload-part".
    if (this.data && busy?.length === this.data.cpus.id.length) this.drawings.forEach((drawing) => drawing.measure(busy, numa ?? {}));
    for (const [id, fresh] of Object.entries(containers ?? {})) this.contained(id, fresh);
    if (containers) this.card?.repaint();
  }

  contained(id, fresh) {
    const known = this.data?.containers.find((each) => each.id === id);
    if (!known) return;
    if ("cpu" in fresh) known.cpuUse = fresh.cpu;
    for (const key of ["memory", "locality", "cost", "pages"]) if (key in fresh) known[key] = fresh[key];
    this.rows.figures(known);
  }

  /** Another structure comes at once, or at the next beat. */
  later() {
    this.changed = true;
    if (pace.following()) this.reload();
  }

  async reload() {
    if (!this.changed) return;
    this.changed = false;
    refreshAll();
    if (!this.source || !this.data) return;
    const answer = await fetch(this.source, { redirect: "manual", cache: "no-store" });
    if (!answer.ok) return;
    this.data = await answer.json();
    this.drawings.forEach((drawing) => drawing.take(this.data));
    this.card?.take(this.data);
    this.rows.take(this.data);
  }
}

export function start() {
  const place = document.getElementById("live");
  const data = embedded("drawing");
  if (data || place?.dataset.node) new NodePage(data, place);
}
