// A pen that draws SVG elements where a canvas has pixels: what a canvas shows can be saved as lines and shapes, too.
// It knows what the fleet uses of a canvas's pen, and no more.

import { svg } from "./dom.js";

const LETTER = 6.1; // pixels that a letter of 11 px takes at most

export class Sketch {
  constructor(root, left, top) {
    this.root = root.appendChild(svg("g", { transform: `translate(${left} ${top})` }));
    this.globalAlpha = 1;
    this.dashes = null;
  }

  add(name, attributes, ...children) {
    this.root.append(svg(name, { ...attributes, opacity: this.globalAlpha < 1 ? this.globalAlpha : null }, ...children));
  }

  clearRect() {} // nothing is under it

  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.add("rect", { x, y, width, height, fill: this.fillStyle });
  }

  setLineDash(dashes) {
    this.dashes = dashes.join(" ") || null;
  }

  line() {
    return { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-dasharray": this.dashes };
  }

  strokeRect(x, y, width, height) {
    this.add("rect", { x, y, width, height, ...this.line() });
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x} ${y}`;
  }

  lineTo(x, y) {
    this.path += `L${x} ${y}`;
  }

  stroke() {
    this.add("path", { d: this.path, ...this.line() });
  }

  /** As a canvas does, a text that is wider than `most` is drawn narrower. */
  fillText(text, x, y, most = Infinity) {
    const narrower = text.length * LETTER > most;
    this.add("text", { x, y, fill: this.fillStyle, "font-size": 11, textLength: narrower ? most : null, lengthAdjust: narrower ? "spacingAndGlyphs" : null }, text);
  }
}
