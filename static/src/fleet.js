// The fleet: a tile for each node, a cell for each NUMA node. Drawn on canvas, because 5,000 x 8 cells are too many
// elements; one real link lies over the tile that the pointer or the arrow keys are on, so that it opens as links do.

import { embedded, html, percent, perFrame, svg } from "./dom.js";
import { onGround } from "./drawing/export.js";
import { hideTip, showTip } from "./drawing/tip.js";
import { drawnIn } from "./figures.js";
import { Live } from "./live.js";
import * as pace from "./pace.js";
import { refreshAll } from "./refresh.js";
import { Sketch } from "./sketch.js";
import { t } from "./words.js";

const UNKNOWN = 255;
const MAGIC = 0x4e57; // "NW"
const HEADER = 28;
// Sizes of a cell, the gap between cells, the edge of a tile and the space between tiles; the largest is taken with which
// the fleet stays below TALLEST. With the smallest 5,000 nodes of 8 cells fit on a screen.
const SCALES = [
  { width: 30, height: 48, gap: 3, pad: 3, space: 6, name: true },
  { width: 24, height: 34, gap: 3, pad: 3, space: 6, name: true },
  { width: 16, height: 24, gap: 2, pad: 3, space: 5, name: true },
  { width: 12, height: 18, gap: 2, pad: 3, space: 5 },
  { width: 8, height: 12, gap: 1, pad: 3, space: 4 },
  { width: 6, height: 9, gap: 1, pad: 2, space: 3 },
  { width: 4, height: 6, gap: 1, pad: 2, space: 2 },
  { width: 3, height: 5, gap: 0, pad: 2, space: 1 },
  { width: 2, height: 4, gap: 0, pad: 1, space: 1 },
];
const TALLEST = 640;
const MOST_CELLS = 8;
const NAME = 15;
const TITLE = 22; // of a group in a saved figure

const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const columnsOf = (cells) => (cells <= 2 ? cells : cells <= 4 ? 2 : cells <= 8 ? 4 : Math.ceil(Math.sqrt(cells * 2)));

class Group {
  constructor(fleet, data) {
    Object.assign(this, { fleet, data, at: 0 });
    this.canvas = html("canvas", { class: "nw-fleet-canvas", "aria-hidden": "true" });
    this.link = html("a", { class: "nw-fleet-link", href: fleet.address(data.names[0]) });
    this.area = html("div", { class: "nw-fleet-area" }, this.canvas, this.link);
    this.many = t("nodes", { count: data.names.length });
    const title = html("h3", { class: "nw-fleet-title" }, data.label, html("span", { class: "text-secondary" }, ` ${this.many}`));
    this.root = html("section", { class: "nw-fleet-group", "aria-label": data.label }, title, this.area);
    this.area.addEventListener("pointermove", (event) => this.over(event));
    this.area.addEventListener("pointerleave", hideTip);
    this.link.addEventListener("focus", () => this.go(this.at, true));
    this.link.addEventListener("blur", hideTip);
    this.link.addEventListener("keydown", (event) => this.key(event));
  }

  measure(scale, width, most) {
    const columns = columnsOf(most);
    const rows = Math.ceil(most / columns);
    this.tile = {
      width: columns * (scale.width + scale.gap) - scale.gap + 2 * scale.pad,
      height: rows * (scale.height + scale.gap) - scale.gap + 2 * scale.pad + (scale.name ? NAME : 0),
    };
    if (scale.name) this.tile.width = Math.max(this.tile.width, this.fleet.nameWidth);
    this.step = { x: this.tile.width + scale.space, y: this.tile.height + scale.space };
    this.across = Math.max(1, Math.min(this.data.names.length, Math.floor((width + 3) / this.step.x)));
    this.width = this.across * this.step.x;
    this.height = Math.ceil(this.data.names.length / this.across) * this.step.y;
    return this.height;
  }

  place(index) {
    return { x: (index % this.across) * this.step.x + 1, y: Math.floor(index / this.across) * this.step.y + 1 };
  }

  /** Draws the tiles of these places, or all where the size is another. */
  draw(scale, places) {
    const { width } = this;
    const ratio = window.devicePixelRatio || 1;
    const canvas = this.canvas;
    const resized = canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(this.height * ratio);
    if (resized) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${this.height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (places && !resized) {
      places.forEach((index) => this.drawTile(pen, index, scale));
      return;
    }
    pen.clearRect(0, 0, width, this.height);
    this.data.names.forEach((_, index) => this.drawTile(pen, index, scale));
  }

  /** Draws everything into an SVG, from this height on; returns where it ends. */
  sketch(root, top, scale) {
    const { colours } = this.fleet;
    root.append(svg("text", { x: 1, y: top + TITLE - 8, fill: colours.ink, "font-size": 13, "font-weight": 600 }, `${this.data.label} ${this.many}`));
    const pen = new Sketch(root, 0, top + TITLE);
    this.data.names.forEach((_, index) => this.drawTile(pen, index, scale));
    return top + TITLE + this.height;
  }

  drawTile(pen, index, scale) {
    const { x, y } = this.place(index);
    const { colours, planes, unit, mode } = this.fleet;
    const [cells, state, crossing] = [this.data.cells[index], this.data.states[index], this.data.crossing[index]];
    const top = y + scale.pad + (scale.name ? NAME : 0);
    pen.clearRect(x - 0.5, y - 0.5, this.tile.width + 1, this.tile.height + 1);
    pen.globalAlpha = state === 0 ? 1 : 0.45;
    pen.fillStyle = colours.plane;
    pen.fillRect(x, y, this.tile.width, this.tile.height);
    // Cells share the tile: fewer NUMA nodes, wider cells.
    const columns = columnsOf(cells);
    const rows = Math.max(1, Math.ceil(cells / columns));
    const size = {
      width: (this.tile.width - 2 * scale.pad + scale.gap) / columns - scale.gap,
      height: (y + this.tile.height - scale.pad - top + scale.gap) / rows - scale.gap,
    };
    for (let cell = 0; cell < cells; cell += 1) {
      const left = Math.round(x + scale.pad + (cell % columns) * (size.width + scale.gap));
      const upper = Math.round(top + Math.floor(cell / columns) * (size.height + scale.gap));
      const box = { width: Math.max(1, Math.floor(size.width)), height: Math.max(1, Math.floor(size.height)) };
      const at = this.data.slots[index] + cell;
      if (mode === "tiles") this.drawMarks(pen, left, upper, box, planes.pinned[at], planes.busy[at], unit);
      else this.drawHeat(pen, left, upper, box, planes[this.fleet.metric][at], unit);
    }
    pen.globalAlpha = 1;
    if (crossing || state) {
      pen.strokeStyle = crossing ? colours.trouble : colours.quiet;
      pen.lineWidth = crossing && scale.pad > 1 ? 2 : 1;
      pen.setLineDash(state ? [3, 3] : []);
      pen.strokeRect(x + 0.5, y + 0.5, this.tile.width - 1, this.tile.height - 1);
      pen.setLineDash([]);
    }
    if (scale.name) {
      pen.fillStyle = colours.ink;
      pen.font = `11px ${this.fleet.font}`;
      pen.fillText(this.data.names[index], x + scale.pad + 1, y + 13, this.tile.width - 2 * scale.pad);
    }
  }

  /** Two marks side by side: pinned (one solid colour) and busy (one hue, light to dark). */
  drawMarks(pen, x, y, scale, pinned, busy, unit) {
    const { colours } = this.fleet;
    pen.fillStyle = colours.track;
    pen.fillRect(x, y, scale.width, scale.height);
    const half = Math.floor(scale.width / 2);
    this.bar(pen, x, y, half - (half > 6 ? 1 : 0), scale.height, pinned, unit, colours.pinned);
    this.bar(pen, x + half, y, scale.width - half, scale.height, busy, unit, colours.heat[Math.max(3, this.shade(busy, unit))]);
  }

  bar(pen, x, y, width, height, value, unit, colour) {
    if (value === UNKNOWN) {
      this.unknown(pen, x, y, width, height);
      return;
    }
    const tall = Math.round((value / unit) * height);
    pen.fillStyle = colour;
    pen.fillRect(x, y + height - tall, width, tall);
  }

  drawHeat(pen, x, y, scale, value, unit) {
    pen.fillStyle = value === UNKNOWN ? this.fleet.colours.track : this.fleet.colours.heat[this.shade(value, unit)];
    pen.fillRect(x, y, scale.width, scale.height);
    if (value === UNKNOWN) this.unknown(pen, x, y, scale.width, scale.height);
  }

  unknown(pen, x, y, width, height) {
    pen.strokeStyle = this.fleet.colours.quiet;
    pen.lineWidth = 0.75;
    pen.beginPath();
    pen.moveTo(x + 0.5, y + height - 0.5);
    pen.lineTo(x + width - 0.5, y + 0.5);
    pen.stroke();
  }

  shade(value, unit) {
    return Math.min(6, Math.floor((value / unit) * 7));
  }

  over(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.step.x);
    const row = Math.floor((event.clientY - box.top) / this.step.y);
    const index = row * this.across + column;
    if (column < 0 || column >= this.across || index < 0 || index >= this.data.names.length) hideTip();
    else this.go(index, true);
  }

  /** Lays the link over a tile. */
  go(index, tell) {
    this.at = index;
    const { x, y } = this.place(index);
    Object.assign(this.link.style, { left: `${x - 2}px`, top: `${y - 2}px`, width: `${this.tile.width + 4}px`, height: `${this.tile.height + 4}px` });
    const name = this.data.names[index];
    const lines = this.describe(index);
    this.link.href = this.fleet.address(name);
    this.link.setAttribute("aria-label", lines.slice(0, 3).join(", "));
    if (tell) showTip(lines, this.link);
  }

  describe(index) {
    const { planes, unit } = this.fleet;
    const [first, count] = [this.data.slots[index], this.data.cells[index]];
    const mean = (plane) => {
      const known = [...plane.slice(first, first + count)].filter((value) => value !== UNKNOWN);
      return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length / unit : null;
    };
    const shown = (value) => percent(value === UNKNOWN ? null : value / unit, t("unknown"));
    const lines = [t("tile", { name: this.data.names[index], numa: count, pinned: percent(mean(planes.pinned), t("unknown")), busy: percent(mean(planes.busy), t("unknown")) })];
    if (this.data.crossing[index]) lines.push(t("tileCrossing", { count: this.data.crossing[index] }));
    if (this.data.states[index]) lines.push(t(this.data.states[index] === 1 ? "stale" : "noData"));
    for (let cell = 0; cell < Math.min(count, 16); cell += 1) {
      lines.push(t("tileNumaLine", { id: cell, pinned: shown(planes.pinned[first + cell]), busy: shown(planes.busy[first + cell]) }));
    }
    return lines;
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across, Home: -this.at, End: this.data.names.length - 1 - this.at };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const to = this.at + steps[event.key];
    if (to >= 0 && to < this.data.names.length) this.go(to, true);
  }
}

export class Fleet {
  constructor(host, data) {
    this.host = host;
    this.mode = host.dataset.fleet;
    this.metric = "busy";
    this.font = getComputedStyle(document.body).fontFamily;
    this.paintSoon = perFrame(() => this.paint());
    this.take(data);
    this.readColours();
    drawnIn(host, () => this.look());
    new ResizeObserver(() => this.repaint()).observe(host);
    new MutationObserver(() => { this.readColours(); this.repaint(); }).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    document.querySelectorAll("[name=fleet-metric]").forEach((input) =>
      input.addEventListener("change", () => { this.metric = input.value; this.repaint(); }),
    );
  }

  take(data) {
    this.unit = data.unit;
    this.planes = { pinned: decode(data.pinned), busy: decode(data.busy) };
    // All tiles have one size; a node with more NUMA nodes than most has smaller cells in it.
    this.most = Math.min(MOST_CELLS, Math.max(1, ...data.groups.map((group) => Math.max(...group.cells))));
    this.nameWidth = Math.min(120, 12 + 6.1 * Math.max(0, ...data.groups.map((group) => Math.max(...group.names.map((name) => name.length)))));
    this.groups = data.groups.map((group) => new Group(this, group));
    this.owners = []; // by cell
    for (const group of this.groups) {
      group.data.slots.forEach((slot, index) => {
        for (let cell = 0; cell < group.data.cells[index]; cell += 1) this.owners[slot + cell] = { group, index };
      });
    }
    this.host.replaceChildren(...this.groups.map((group) => group.root));
    this.repaint();
  }

  /** Draws everything with the next frame. */
  repaint() {
    this.touched = null;
    this.paintSoon();
  }

  /** Draws the tiles of these cells with the next frame: with 5,000 nodes a tick changes few of them. */
  touch(cells) {
    if (this.touched) cells.forEach((cell) => this.touched.add(cell));
    this.paintSoon();
  }

  /** Places of the touched tiles in each group; null = all. */
  places() {
    if (!this.touched) return null;
    const found = new Map(this.groups.map((group) => [group, new Set()]));
    for (const cell of this.touched) {
      const owner = this.owners[cell];
      if (owner) found.get(owner.group).add(owner.index);
    }
    return found;
  }

  address(name) {
    return this.host.dataset.nodeUrl.replace("__node__", encodeURIComponent(name));
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--nw-${name}`).trim();
    this.colours = {
      ink: read("ink"), quiet: read("quiet"), plane: read("plane"), track: read("memory-free"), pinned: read("pinned"),
      trouble: read("trouble"), heat: [0, 1, 2, 3, 4, 5, 6].map((step) => read(`heat-${step}`)),
    };
  }

  /** The largest scale with which all groups fit a width. */
  fitting(width) {
    const fits = (scale) => this.groups.reduce((sum, group) => sum + group.measure(scale, width, this.most), 0) <= TALLEST;
    return SCALES.find(fits) ?? SCALES[SCALES.length - 1];
  }

  /** The fleet as it is drawn now, as SVG. */
  look() {
    const width = Math.floor(this.host.clientWidth);
    const scale = this.fitting(width);
    const root = svg("svg", { width, "font-family": this.font.replaceAll('"', "'") });
    let height = 0;
    for (const group of this.groups) {
      group.measure(scale, width, this.most);
      height = group.sketch(root, height, scale);
    }
    root.setAttribute("height", height);
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    return onGround(new XMLSerializer().serializeToString(root));
  }

  paint() {
    const width = Math.floor(this.host.clientWidth);
    if (!width || !this.groups.length) return;
    const scale = this.fitting(width);
    const places = this.places();
    this.touched = new Set();
    for (const group of this.groups) {
      group.measure(scale, width, this.most);
      group.draw(scale, places?.get(group));
      if (document.activeElement !== group.link) group.go(Math.min(group.at, group.data.names.length - 1), false);
    }
  }

  /** A binary message: the whole planes, or which cells changed and to what. Returns null for one that it cannot use. */
  message(buffer) {
    const view = new DataView(buffer);
    if (view.byteLength < HEADER || view.getUint16(0) !== MAGIC) return null;
    const [type, epoch, seq] = [view.getUint8(3), view.getUint32(4, true), view.getUint32(8, true)];
    const header = { type, epoch, seq, base: view.getUint32(12, true), cells: view.getUint32(16, true), taken: view.getFloat64(20, true) };
    const bytes = new Uint8Array(buffer, HEADER);
    if (type === 0) this.whole(header, bytes);
    else if (!this.changed(header, bytes)) return null;
    Object.assign(this, { epoch, seq });
    return header;
  }

  whole({ base, cells }, bytes) {
    const needed = base + cells;
    for (const [index, name] of ["pinned", "busy"].entries()) {
      if (this.planes[name].length < needed) {
        const larger = new Uint8Array(needed).fill(UNKNOWN);
        larger.set(this.planes[name]);
        this.planes[name] = larger;
      }
      this.planes[name].set(bytes.subarray(index * cells, (index + 1) * cells), base);
    }
    this.repaint();
  }

  changed({ epoch, seq, base, cells }, bytes) {
    if (epoch !== this.epoch || seq !== this.seq + 1) return false;
    const mapLength = Math.ceil(cells / 8);
    const touched = [];
    let at = 0;
    for (const name of ["pinned", "busy"]) {
      const map = bytes.subarray(at, at + mapLength);
      at += mapLength;
      for (let cell = 0; cell < cells; cell += 1) {
        if ((map[cell >> 3] >> (cell & 7)) & 1) {
          this.planes[name][base + cell] = bytes[at];
          touched.push(base + cell);
          at += 1;
        }
      }
    }
    this.touch(touched);
    return true;
  }
}

export function start() {
  const host = document.querySelector("[data-fleet]");
  const place = document.getElementById("live");
  const data = embedded("fleet");
  const fleet = host && data ? new Fleet(host, data) : null;
  if (!place?.dataset.overview) return;
  let stale = false;
  const renew = () => {
    if (stale) changed(fleet, host);
    stale = false;
  };
  pace.watch(renew);
  const live = new Live(place.dataset.overview, {
    text: (message) => {
      if (message.type === "inventory-changed" || message.type === "resync") stale = true;
      if (pace.following()) renew();
      return message.age;
    },
    binary: (buffer) => {
      const header = fleet ? fleet.message(buffer) : { taken: null };
      if (header === null) live.send({ type: "resync" });
      return 0;
    },
  });
}

async function changed(fleet, host) {
  refreshAll();
  if (!fleet) return;
  const answer = await fetch(host.dataset.source, { redirect: "manual", cache: "no-store" });
  if (answer.ok) fleet.take(await answer.json());
}
