// The drawing as SVG elements, and the two ways it changes: a new measurement, or something lights up.

import { bytesOf, percent, svg } from "../dom.js";
import { t } from "../words.js";

// Letters as strokes in a box of 6 x 8: as text they would belong to the name of the cell.
const OWNER_MARK = { r: "M0 8V0H3a2.2 2.2 0 0 1 0 4.4H0M3 4.4L5.6 8", u: "M0.4 2.2a2.4 2.2 0 1 1 3.6 1.8c-0.9 0.5-1.2 0.9-1.2 1.8M2.8 7.4v0.6" };
let drawings = 0;

/** Whether a CPU counts as occupied: exclusive, or busier than the threshold; null = nobody knows. */
export function occupied(owner, busy, threshold) {
  if (owner === "o") return null;
  if (owner === "x") return true;
  return busy === null || busy === undefined ? null : busy > threshold;
}

function hatch(id) {
  const line = svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "nw-hatch-line" });
  return svg("pattern", { id, width: 5, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, line);
}

export class Painting {
  constructor(data, plan, { compact = false, label = "" } = {}) {
    Object.assign(this, { data, plan, compact });
    this.number = ++drawings;
    this.cells = new Map();
    this.nodes = new Map();
    this.root = svg("svg", {
      class: `nw-drawing${compact ? " nw-compact" : ""}`,
      width: Math.ceil(plan.width),
      height: Math.ceil(plan.height),
      viewBox: `0 0 ${Math.ceil(plan.width)} ${Math.ceil(plan.height)}`,
      role: "group",
      "aria-label": label,
      "font-size": 12,
    });
    this.root.append(svg("defs", {}, hatch(this.pattern())));
    plan.sockets.forEach((socket) => this.socket(socket));
  }

  pattern() {
    return `nw-hatch-${this.number}`;
  }

  socket(place) {
    const group = svg("g", { class: `nw-socket nw-${place.socket.kind}` });
    if (place.framed) {
      const { x, y, width, height } = place;
      group.append(svg("rect", { x, y, width, height, rx: 10, class: "nw-socket-frame" }));
    }
    if (place.title) {
      const title = place.socket.kind === "socket" ? t("socket", { id: place.socket.id }) : t(place.socket.kind);
      group.append(svg("text", { x: place.x + place.pad, y: place.y + place.pad + 10, class: "nw-socket-title" }, title));
    }
    place.nodes.forEach((box) => group.append(this.node(box)));
    this.root.append(group);
  }

  node(box) {
    const { x, y, width, height } = box;
    const numa = box.drawn.node;
    const group = svg("g", { class: "nw-numa", "data-numa": numa ? numa.id : null });
    group.append(svg("rect", { x, y, width, height, rx: 8, class: "nw-numa-frame" }));
    const parts = { box, numa, group };
    if (numa) {
      this.header(parts);
      this.nodes.set(numa.id, parts);
    }
    for (const frame of box.frames) group.append(...this.frame(frame));
    group.append(this.grid(box));
    if (numa) {
      group.append(this.memory(parts));
      group.append(...box.devices.map((chip) => this.chip(box, chip)));
    }
    return group;
  }

  header(parts) {
    const { box, numa, group } = parts;
    const [left, line] = [box.x + box.pad, box.y + box.pad + 11];
    const title = svg("text", { x: left, y: line, class: "nw-numa-title" }, t("numa", { id: numa.id }));
    const zoom = svg("g", { class: "nw-zoom", "data-zoom": numa.id, role: "button", tabindex: this.compact ? null : 0 });
    zoom.setAttribute("aria-label", t("zoomTo", { id: numa.id }));
    zoom.append(svg("rect", { x: left - 4, y: line - 14, width: 24 + t("numa", { id: numa.id }).length * 8, height: 20, rx: 4, class: "nw-zoom-area" }), title);
    group.append(this.compact ? title : zoom);
    const below = box.header > 30;
    parts.figures = svg("text", {
      x: below ? left : box.x + box.width - box.pad,
      y: below ? line + 17 : line,
      "text-anchor": below ? "start" : "end",
      class: "nw-numa-figures",
    });
    group.append(parts.figures);
  }

  frame({ label, x, y, width, height }) {
    const frame = svg("rect", { x, y, width, height, rx: 5, class: "nw-group-frame" });
    return this.compact ? [frame] : [frame, svg("text", { x: x + 6, y: y + 13, class: "nw-group-title" }, label)];
  }

  /** The cells of a NUMA node as a grid of rows, so that a screen reader knows where it is. */
  grid(box) {
    const count = box.cells.length;
    const id = box.drawn.node?.id;
    const grid = svg("g", count && !this.compact ? { role: "grid", "aria-label": id === undefined ? t("offline") : t("gridOf", { id, count }) } : {});
    const rows = new Map();
    for (const cell of box.cells) {
      if (!rows.has(cell.y)) rows.set(cell.y, svg("g", this.compact ? {} : { role: "row" }));
      rows.get(cell.y).append(this.cell(cell));
    }
    grid.append(...rows.values());
    return grid;
  }

  cell(place) {
    const { height } = this.plan.size;
    const { width, cpu: at } = place;
    const owner = this.data.cpus.owner[at];
    const group = svg("g", {
      class: `nw-cpu nw-own-${owner}`,
      "data-cpu": at,
      transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`,
      role: this.compact ? null : "gridcell",
    });
    const rx = this.compact ? 2 : 4;
    const inside = { width, height, rx };
    const fill = svg("rect", { width, y: height, height: 0, rx: this.compact ? 1 : 3, class: "nw-busy" });
    group.append(svg("rect", { ...inside, class: "nw-ground" }), fill);
    group.append(svg("rect", { ...inside, fill: `url(#${this.pattern()})`, class: "nw-hatched" }));
    group.append(svg("rect", { x: 0.75, y: 0.75, width: width - 1.5, height: height - 1.5, rx: rx - 0.5, class: "nw-edge" }));
    if (!this.compact) this.labels(group, at, owner, width);
    group.append(svg("rect", { x: -1.25, y: -1.25, width: width + 2.5, height: height + 2.5, rx: rx + 1.5, class: "nw-ring" }));
    const parts = { group, fill, place };
    this.cells.set(at, parts);
    this.busy(at, this.data.cpus.busy[at]);
    return group;
  }

  labels(group, at, owner, width) {
    const { height } = this.plan.size;
    const id = String(this.data.cpus.id[at]);
    const font = Math.min(this.plan.size.font, (width - 3) / (id.length * 0.62));
    if (owner === "x") group.append(svg("path", { d: `M${width - 8} 1H${width - 3}Q${width - 1} 1 ${width - 1} 3V8Z`, class: "nw-corner" }));
    group.append(svg("text", { x: 3, y: font + 1, "font-size": font.toFixed(1), class: "nw-number" }, id));
    const mark = OWNER_MARK[owner];
    const scale = font / 12;
    const place = `translate(${(width - 3 - 6 * scale).toFixed(1)} ${(height - 4 - 8 * scale).toFixed(1)}) scale(${scale.toFixed(2)})`;
    if (mark) group.append(svg("path", { d: mark, transform: place, class: "nw-mark-ground" }), svg("path", { d: mark, transform: place, class: "nw-mark" }));
  }

  /** Shows how busy a CPU was: the height of its fill, and whether it counts as occupied. */
  busy(at, share) {
    const { group, fill } = this.cells.get(at);
    const { height } = this.plan.size;
    const owner = this.data.cpus.owner[at];
    const known = share !== null && share !== undefined && owner !== "o";
    const tall = known ? Math.max(0, Math.min(1, share)) * height : 0;
    fill.setAttribute("y", (height - tall).toFixed(1));
    fill.setAttribute("height", tall.toFixed(1));
    const state = occupied(owner, share, this.data.threshold);
    group.classList.toggle("nw-occupied", state === true);
    group.classList.toggle("nw-idle", state === false);
    group.classList.toggle("nw-unknown-use", state === null && owner !== "o");
  }

  memory(parts) {
    const { box } = parts;
    const [left, width] = [box.x + box.pad, box.width - 2 * box.pad];
    const top = this.compact ? box.memoryTop + 4 : box.memoryTop + 21;
    const height = this.compact ? 6 : 11;
    const group = svg("g", { class: "nw-memory" });
    parts.bar = { left, width, top, height };
    if (!this.compact) parts.memoryText = group.appendChild(svg("text", { x: left, y: box.memoryTop + 15, class: "nw-memory-text" }));
    group.append(svg("rect", { x: left, y: top, width, height, rx: 3, class: "nw-memory-free" }));
    parts.segments = ["huge", "used", "file"].map((kind) => group.appendChild(svg("rect", { y: top, height, class: `nw-memory-${kind}` })));
    parts.share = group.appendChild(svg("rect", { y: top - 2.5, height: height + 5, rx: 3, class: "nw-memory-share" }));
    this.remember(parts);
    return group;
  }

  /** Shows a NUMA node's figures: the header, and the memory bar (huge pages, processes, page cache, free). */
  remember(parts) {
    const { numa, bar, segments } = parts;
    const unknown = t("unknown");
    const { total, used, file, huge } = numa.memory;
    const pool = Math.min(huge ?? 0, used ?? 0);
    const cache = Math.min(file ?? 0, (used ?? 0) - pool);
    const lengths = total && used !== null ? [pool, used - pool - cache, cache].map((part) => (part / total) * bar.width) : [0, 0, 0];
    let x = bar.left;
    segments.forEach((segment, index) => {
      segment.setAttribute("x", x.toFixed(1));
      segment.setAttribute("width", Math.max(0, lengths[index]).toFixed(1));
      x += lengths[index];
    });
    if (parts.memoryText && total === 0) parts.memoryText.textContent = t("noMemory");
    else if (parts.memoryText) {
      const [part, whole] = bytesOf(used, total, unknown);
      parts.memoryText.textContent = t("memoryOf", { used: part, total: whole });
    }
    parts.figures.textContent = this.figures(numa);
  }

  figures(numa) {
    const unknown = t("unknown");
    if (!numa.count) return this.compact ? "" : t("memoryOnly");
    if (this.compact) return percent(numa.busy, "?");
    const busy = t("busyOf", { share: percent(numa.busy, unknown) });
    if (numa.pinnable === null) return busy;
    return `${t("pinnedOf", { pinned: numa.pinned ?? unknown, pinnable: numa.pinnable })} · ${busy}`;
  }

  chip(box, { device, label, x, row, width }) {
    const [left, top] = [box.x + box.pad + x, box.devicesTop + row * 22];
    const group = svg("g", { class: `nw-device nw-device-${device.kind}`, "data-device": device.address });
    group.append(svg("title", {}, `${t(`device.${device.kind}`)} ${device.address}`));
    group.append(svg("rect", { x: left, y: top, width, height: 18, rx: 4, class: "nw-device-frame" }));
    group.append(svg("path", { d: ICONS[device.kind], transform: `translate(${left + 5} ${top + 3.5})`, class: "nw-device-icon" }));
    group.append(svg("text", { x: left + 20, y: top + 13, class: "nw-device-name" }, label));
    return group;
  }

  /** Lights up a container: its CPUs, its share of each memory bar, its devices. `mark` = may-run for floating ones. */
  light(container, cpus) {
    this.dark();
    if (!container) return;
    this.root.classList.add("nw-has-light");
    const kind = container.kind === "exclusive" || container.kind === "narrowed" ? "nw-lit" : "nw-may";
    for (const at of cpus) this.cells.get(at)?.group.classList.add(kind);
    for (const [id, amount] of Object.entries(container.pages ?? {})) this.share(Number(id), amount);
    for (const claim of container.devices) this.claim(claim);
  }

  share(id, amount) {
    const parts = this.nodes.get(id);
    const total = parts?.numa.memory.total;
    if (!total || !amount) return;
    parts.share.setAttribute("x", (parts.bar.left - 1).toFixed(1));
    parts.share.setAttribute("width", Math.max(4, (amount / total) * parts.bar.width).toFixed(1));
    parts.group.classList.add("nw-lit-memory");
  }

  claim(claim) {
    const matches = [...this.root.querySelectorAll(".nw-device")].filter((chip) => claim.ids.includes(chip.dataset.device));
    matches.forEach((chip) => chip.classList.add("nw-lit"));
    for (const id of claim.numa) this.nodes.get(id)?.group.classList.add("nw-lit-device");
  }

  /** Lights up one CPU. */
  point(at) {
    this.root.querySelector(".nw-pointed")?.classList.remove("nw-pointed");
    if (at !== null) this.cells.get(at)?.group.classList.add("nw-pointed");
  }

  dark() {
    this.root.classList.remove("nw-has-light");
    for (const each of this.root.querySelectorAll(".nw-lit, .nw-may, .nw-lit-memory, .nw-lit-device")) {
      each.classList.remove("nw-lit", "nw-may", "nw-lit-memory", "nw-lit-device");
    }
  }
}

const ICONS = {
  network: "M1 2h4v3H1zM6 7h4v3H6zM3 5v2h5v-0",
  storage: "M1 2.5a4.5 1.7 0 0 1 9 0v6a4.5 1.7 0 0 1-9 0zM1 2.5a4.5 1.7 0 0 0 9 0",
  accelerator: "M2 2h7v7H2zM4 0v2M7 0v2M4 9v2M7 9v2M0 4h2M0 7h2M9 4h2M9 7h2",
  other: "M1 1h9v9H1z",
};
