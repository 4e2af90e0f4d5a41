// Rows of containers light up with the drawing, and the reverse. A row carries `data-container`, its figures
// `data-figure`; a click on a row selects its container.

import { count, bytes, factor, percent } from "./dom.js";
import * as selection from "./selection.js";
import { t } from "./words.js";

const WRITERS = { cpuUse: count, memory: bytes, locality: percent, cost: factor };

export class Rows {
  constructor(data) {
    this.take(data);
    document.addEventListener("pointerover", (event) => this.over(event));
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("focusin", (event) => this.over(event));
    document.addEventListener("numa:refreshed", () => this.show(this.state));
    selection.watch((state) => this.show(state));
    document.querySelector(".nw-row-selected")?.scrollIntoView({ block: "nearest" });
  }

  take(data) {
    this.data = data;
    this.inside = false;
  }

  rowOf(event) {
    return event.target.closest?.("[data-container]");
  }

  over(event) {
    const row = this.rowOf(event);
    if (row) selection.hover(row.dataset.container);
    else if (this.inside && !event.target.closest?.("[data-drawing]")) selection.hover(null);
    this.inside = Boolean(row);
  }

  click(event) {
    const row = this.rowOf(event);
    if (!row || event.target.closest("a[href], summary")) return;
    const again = this.state.container === row.dataset.container;
    selection.select({ container: again ? null : row.dataset.container });
  }

  show(state) {
    this.state = { ...state };
    const lit = state.hover ?? state.container;
    for (const row of document.querySelectorAll("[data-container]")) {
      row.classList.toggle("nw-row-lit", row.dataset.container === lit);
      const selected = row.dataset.container === state.container;
      row.classList.toggle("nw-row-selected", selected);
      const button = row.matches("[data-pick]") ? row : row.querySelector("[data-pick]");
      if (button) button.setAttribute("aria-pressed", String(selected));
    }
  }

  /** New figures of a container into its row. */
  figures(container) {
    const row = document.querySelector(`[data-container="${CSS.escape(container.id)}"]`);
    if (!row) return;
    for (const cell of row.querySelectorAll("[data-figure]")) {
      const text = WRITERS[cell.dataset.figure](container[cell.dataset.figure], t("unknown"));
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}
