// Distances as links: NUMA nodes on a ring in the order of their sockets, near pairs joined by strong lines.

import { svg } from "../dom.js";
import { drawnIn } from "../figures.js";
import { t } from "../words.js";
import { standalone } from "./export.js";

const ALL_LINKS = 8; // more NUMA nodes than that show only the links of one of them
const LABELLED = 24; // more links than that have no room for numbers; the table beside has them
const UNREACHABLE = 255;

const around = (size, far, turn) => ({
  x: size / 2 + far * Math.sin(turn * 2 * Math.PI - Math.PI),
  y: size / 2 - far * Math.cos(turn * 2 * Math.PI - Math.PI),
});

export class Links {
  constructor(host, data) {
    this.host = host;
    this.data = data;
    this.from = data.nodes.length > ALL_LINKS ? 0 : null;
    host.addEventListener("click", (event) => this.turn(event));
    host.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") this.turn(event);
    });
    new ResizeObserver(() => this.paint()).observe(host);
    drawnIn(host, () => standalone(host.firstElementChild));
  }

  turn(event) {
    const node = event.target.closest?.("[data-from]");
    if (!node) return;
    event.preventDefault();
    const from = Number(node.dataset.from);
    this.from = this.from === from && this.data.nodes.length <= ALL_LINKS ? null : from;
    this.paint();
    this.host.querySelector(`[data-from="${from}"]`)?.focus();
  }

  paint() {
    const size = Math.min(this.host.clientWidth, 520);
    if (!size) return;
    const count = this.data.nodes.length;
    const radius = Math.min(22, Math.max(11, (size * 2.4) / count));
    const places = this.from === null ? this.ring(size, radius) : this.star(size, radius);
    const root = svg("svg", { class: "nw-links", width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "group", "aria-label": t("links") });
    const lines = this.pairs().map(([a, b]) => this.line(places, a, b));
    root.append(...lines.map((line) => line.stroke), ...(this.data.nodes.length > LABELLED ? [] : lines.map((line) => line.label)));
    places.forEach((place, index) => root.append(this.node(place, index, radius)));
    this.host.replaceChildren(root);
  }

  /** All on a ring; half a step turned, so that two nodes stand side by side and four in a square. */
  ring(size, radius) {
    const count = this.data.nodes.length;
    const far = count > 1 ? size / 2 - radius - 6 : 0;
    return this.data.nodes.map((_, index) => around(size, far, (index + 0.5) / count));
  }

  /** One in the middle, the others around it, each as far as its distance says. */
  star(size, radius) {
    const far = size / 2 - radius - 6;
    const near = radius * 2.6;
    const row = this.data.distances[this.from];
    const usable = row.filter((value, index) => index !== this.from && value !== null && value < UNREACHABLE);
    const [least, most] = [Math.min(...usable), Math.max(...usable)];
    const middle = (least + most) / 2;
    let turn = 0;
    return this.data.nodes.map((_, index) => {
      if (index === this.from) return { x: size / 2, y: size / 2 };
      const value = row[index] === null || row[index] >= UNREACHABLE ? middle : row[index];
      const share = most > least ? (value - least) / (most - least) : 1;
      turn += 1;
      return around(size, near + (far - near) * (0.35 + 0.65 * share), turn / (this.data.nodes.length - 1));
    });
  }

  pairs() {
    const all = this.data.nodes.flatMap((_, a) => this.data.nodes.slice(a + 1).map((__, offset) => [a, a + 1 + offset]));
    return this.from === null ? all : all.filter((pair) => pair.includes(this.from));
  }

  line(places, a, b) {
    const [there, back] = [this.data.distances[a][b], this.data.distances[b][a]];
    const shown = (value) => (value === null ? "?" : value >= UNREACHABLE ? "∞" : String(value));
    const text = there === back ? shown(there) : `${shown(there)} / ${shown(back)}`;
    const known = there !== null && there < UNREACHABLE;
    const width = known ? Math.max(1, Math.min(8, 60 / Math.max(there - 4, 6))) : 1.5;
    const [from, to] = [places[a], places[b]];
    // Labels of crossing lines would meet in the middle: each stands at its own point of its line.
    const at = this.from === null ? ((a + b) % 2 ? 0.5 : 0.36) : this.from === a ? 0.62 : 0.38;
    const [x, y] = [from.x + (to.x - from.x) * at, from.y + (to.y - from.y) * at];
    return {
      stroke: svg("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, "stroke-width": width.toFixed(1), class: known ? "nw-link" : "nw-link nw-link-unknown" }),
      label: svg("g", {}, svg("rect", { x: x - 4 - text.length * 3.6, y: y - 9, width: 8 + text.length * 7.2, height: 18, rx: 4, class: "nw-link-ground" }), svg("text", { x, y: y + 4, "text-anchor": "middle", class: "nw-link-label" }, text)),
    };
  }

  node({ x, y }, index, radius) {
    const { id } = this.data.nodes[index];
    const group = svg("g", { class: `nw-link-node${this.from === index ? " nw-lit" : ""}`, "data-from": index, role: "button", tabindex: 0, "aria-pressed": String(this.from === index), "aria-label": t("linksOf", { id }) });
    group.append(svg("circle", { cx: x, cy: y, r: radius }), svg("text", { x, y: y + 4.5, "text-anchor": "middle" }, String(id)));
    return group;
  }
}
