// Making elements and writing figures. Styles are set through attributes and the object model only: the content
// security policy allows no inline styles.

const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const html = (tag, attributes = {}, ...children) => make(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  make(document.createElementNS(SVG, tag), attributes, children);

/** The JSON that the server put into the page under this id, or null. */
export function embedded(id) {
  const source = document.getElementById(id);
  return source ? JSON.parse(source.textContent) : null;
}

const language = document.documentElement.lang || "en";
const whole = figure({ maximumFractionDigits: 0 });
const tenth = figure({ maximumFractionDigits: 1 });
const hundredth = figure({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Writes numbers in the page's language. The browser takes milliseconds to learn how, so it learns when the first is written. */
function figure(options) {
  let format;
  return (value) => (format ??= new Intl.NumberFormat(language, options)).format(value);
}

/** A share, 0 to 1, as a percentage; `unknown` where nobody knows. */
export const percent = (share, unknown) => (share === null || share === undefined ? unknown : `${whole(share * 100)}%`);

export const factor = (value, unknown) =>
  value === null || value === undefined ? unknown : `${hundredth(value)} ×`;

export const count = (value, unknown) => (value === null || value === undefined ? unknown : tenth(value));

/** Bytes in binary units. */
export function bytes(value, unknown) {
  if (value === null || value === undefined) return unknown;
  const power = Math.min(UNITS.length - 1, value > 0 ? Math.max(0, Math.floor(Math.log2(value) / 10)) : 0);
  const scaled = value / 1024 ** power;
  return `${(scaled < 100 ? tenth : whole)(scaled)} ${UNITS[power]}`;
}

/** Two amounts of bytes, one of the other: the unit is written once where both have it. */
export function bytesOf(part, whole_, unknown) {
  const [left, right] = [bytes(part, unknown), bytes(whole_, unknown)];
  const [amount, unit] = left.split(" ");
  return unit && right.endsWith(` ${unit}`) ? [amount, right] : [left, right];
}

/** Ids of the kernel's list format, "0-3,8". */
export function ids(list) {
  if (!list) return [];
  return list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
  });
}

/** Calls `then` at most once a frame, with the newest arguments. */
export function perFrame(then) {
  let waiting = null;
  return (...values) => {
    if (!waiting) requestAnimationFrame(() => { const now = waiting; waiting = null; then(...now); });
    waiting = values;
  };
}

/** Calls `then` when the browser has nothing better to do, within a second of showing what was drawn until now. */
export function whenIdle(then) {
  const idle = () => {
    if (window.requestIdleCallback) window.requestIdleCallback(() => then(), { timeout: 1000 });
    else setTimeout(then, 100);
  };
  requestAnimationFrame(() => requestAnimationFrame(idle));
}
