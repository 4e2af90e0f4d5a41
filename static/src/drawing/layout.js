// Where everything goes: the arrangement with the least height that fits a width, in pixels, without touching the page.

const PAD = 8;
const GAP = 8;
const SOCKET_TITLE = 22;
const GROUP_TITLE = 15;
const CHIP = 22;

// The largest cells are taken with which the drawing stays below TALL; the smallest still hold a number of four digits
// and a finger. Widths give way within bounds, so that rows fill their box.
const TALL = 560;
const SIZES = [
  { least: 44, most: 88, height: 48, font: 15 },
  { least: 38, most: 64, height: 38, font: 13 },
  { least: 32, most: 52, height: 32, font: 12 },
  { least: 29, most: 46, height: 29, font: 11 },
  { least: 26, most: 40, height: 26, font: 10.5 },
  { least: 24, most: 38, height: 24, font: 10 },
];
const COMPACT = { least: 8, most: 14, height: 11, font: 0 };

const range = (to) => Array.from({ length: to }, (_, index) => index + 1);
const best = (choices) => choices.reduce((least, each) => (each.height < least.height - 0.5 ? each : least));

/** Sizes to try, the largest first; a phone is too narrow for the largest. */
function sizes(width, compact) {
  if (compact) return [COMPACT];
  return width < 480 ? SIZES.slice(1) : SIZES;
}

/** Cores of a group in rows, as even as possible. */
function coreGrid(group, width, size) {
  const threads = Math.max(1, ...group.cores.map((core) => core.length));
  const gap = threads > 1 ? 4 : 3;
  const least = threads * size.least + (threads - 1);
  const most = Math.max(1, Math.floor((width + gap) / (least + gap)));
  const rows = Math.max(1, Math.ceil(group.cores.length / most));
  const columns = Math.max(1, Math.ceil(group.cores.length / rows));
  const fitting = ((width + gap) / columns - gap - (threads - 1)) / threads;
  const cell = Math.max(size.least, Math.min(size.most, fitting));
  const core = threads * cell + (threads - 1);
  return { rows, columns, cell, core, gap, width: columns * (core + gap) - gap, height: rows * (size.height + 3) - 3 };
}

/** Groups of a NUMA node in columns; without groups one block of cores. */
function groupGrid(groups, width, size, compact) {
  if (!groups.some((group) => group.cores.length)) return { columns: 1, width: 0, height: 0, inner: width, framed: false };
  const framed = groups.length > 1;
  const frame = framed ? (compact ? 3 : 6) : 0;
  const title = framed && !compact ? GROUP_TITLE : 0;
  return best(
    range(groups.length).map((columns) => {
      const inner = (width - (columns - 1) * 6) / columns - 2 * frame;
      if (columns > 1 && inner < size.least) return { height: Infinity };
      const grids = groups.map((group) => coreGrid(group, inner, size));
      const tall = Math.max(...grids.map((grid) => grid.height)) + 2 * frame + title;
      const wide = Math.max(...grids.map((grid) => grid.width)) + 2 * frame;
      const rows = Math.ceil(groups.length / columns);
      return {
        columns, frame, title, framed, wide, tall, inner,
        width: columns * wide + (columns - 1) * 6,
        height: rows * tall + (rows - 1) * 6,
      };
    }),
  );
}

function chips(drawn, width, compact) {
  if (compact || !drawn.node || !drawn.node.devices.length) return [];
  const placed = [];
  let x = 0;
  let row = 0;
  for (const device of drawn.node.devices) {
    const label = device.names.join(", ") || device.address;
    const wide = Math.min(width, 26 + label.length * 7.1);
    if (x && x + wide > width) { x = 0; row += 1; }
    placed.push({ device, label, x, row, width: wide });
    x += wide + 6;
  }
  return placed;
}

/** One NUMA node's box for an outer width. */
function nodeBox(drawn, width, size, compact) {
  const pad = compact ? 6 : PAD;
  const inner = width - 2 * pad;
  const header = compact ? 16 : inner < 250 && drawn.node ? 38 : 22;
  const grid = groupGrid(drawn.groups, inner, size, compact);
  const memory = drawn.node ? (compact ? 10 : 36) : 0;
  const devices = chips(drawn, inner, compact);
  const deviceRows = devices.length ? devices[devices.length - 1].row + 1 : 0;
  const upper = pad + header + grid.height;
  const lower = memory + deviceRows * CHIP + (deviceRows ? 4 : 0) + pad;
  return { drawn, grid, header, upper, lower, memory, devices, pad, content: grid.width + 2 * pad };
}

/** A socket's NUMA nodes in columns for an outer width. */
function socketBox(socket, width, size, compact, least) {
  const framed = socket.kind !== "several";
  const pad = framed ? (compact ? 4 : PAD) : 0;
  const title = framed && !compact ? SOCKET_TITLE : 0;
  return best(
    range(socket.nodes.length).map((columns) => {
      const each = (width - 2 * pad - (columns - 1) * GAP) / columns;
      if (columns > 1 && each < least) return { height: Infinity };
      const nodes = socket.nodes.map((drawn) => nodeBox(drawn, each, size, compact));
      const content = Math.min(each, Math.max(least, ...nodes.map((node) => node.content)));
      const rows = [];
      for (let at = 0; at < nodes.length; at += columns) {
        const row = nodes.slice(at, at + columns);
        const upper = Math.max(...row.map((node) => node.upper));
        rows.push({ upper, height: upper + Math.max(...row.map((node) => node.lower)) });
      }
      return {
        socket, nodes, columns, rows, content, pad, title, framed,
        width: columns * content + (columns - 1) * GAP + 2 * pad,
        height: rows.reduce((sum, row) => sum + row.height + GAP, 0) - GAP + 2 * pad + title,
      };
    }),
  );
}

/** All boxes as {width, height, sockets: [...]}; every box and cell has its place from the upper left corner. */
export function layout(boxes, width, compact = false) {
  const choices = sizes(width, compact);
  let plan = null;
  for (const size of choices) {
    plan = { size, ...arrange(boxes, width, size, compact) };
    if (plan.height <= TALL) break;
  }
  return place(plan, plan.size);
}

function arrange(boxes, width, size, compact) {
  const few = boxes.reduce((sum, box) => sum + box.nodes.length, 0) <= 2;
  const least = Math.min(width - 4 * PAD, compact ? 84 : few ? 300 : 168);
  return best(
    range(boxes.length).map((columns) => {
      const each = (width - (columns - 1) * GAP) / columns;
      if (columns > 1 && each < least + 2 * PAD) return { height: Infinity };
      const sockets = boxes.map((box) => socketBox(box, each, size, compact, least));
      let height = -GAP;
      for (let at = 0; at < sockets.length; at += columns) {
        height += Math.max(...sockets.slice(at, at + columns).map((socket) => socket.height)) + GAP;
      }
      return { sockets, columns, height };
    }),
  );
}

function place(arranged, size) {
  let [x, y, tallest, width] = [0, 0, 0, 0];
  arranged.sockets.forEach((socket, index) => {
    if (index && index % arranged.columns === 0) [x, y, tallest] = [0, y + tallest + GAP, 0];
    Object.assign(socket, { x, y });
    placeNodes(socket, size);
    x += socket.width + GAP;
    width = Math.max(width, x - GAP);
    tallest = Math.max(tallest, socket.height);
  });
  return { sockets: arranged.sockets, width, height: y + tallest, size };
}

function placeNodes(socket, size) {
  let y = socket.y + socket.pad + socket.title;
  socket.nodes.forEach((box, index) => {
    const [column, row] = [index % socket.columns, Math.floor(index / socket.columns)];
    if (column === 0 && row) y += socket.rows[row - 1].height + GAP;
    Object.assign(box, {
      x: socket.x + socket.pad + column * (socket.content + GAP),
      y,
      width: socket.content,
      height: socket.rows[row].height,
      memoryTop: y + socket.rows[row].upper,
    });
    placeCells(box, size);
  });
}

function placeCells(box, size) {
  const { grid, pad } = box;
  const top = box.y + pad + box.header;
  box.cells = [];
  box.frames = [];
  if (grid.height) {
    box.drawn.groups.forEach((group, index) => {
      const [column, row] = [index % grid.columns, Math.floor(index / grid.columns)];
      const x = box.x + pad + column * (grid.wide + 6);
      const y = top + row * (grid.tall + 6);
      if (grid.framed) box.frames.push({ label: group.label, x, y, width: grid.wide, height: grid.tall });
      const inner = coreGrid(group, grid.inner, size);
      group.cores.forEach((core, number) => {
        const left = x + grid.frame + (number % inner.columns) * (inner.core + inner.gap);
        const line = Math.floor(number / inner.columns);
        core.forEach((cpu, thread) => {
          box.cells.push({
            cpu,
            width: inner.cell,
            x: left + thread * (inner.cell + 1),
            y: y + grid.frame + grid.title + line * (size.height + 3),
          });
        });
      });
    });
  }
  box.devicesTop = box.memoryTop + box.memory + 4;
}
