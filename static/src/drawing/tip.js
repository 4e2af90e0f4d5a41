// The small box beside what the pointer or the keyboard is on. It repeats what the element's own label says.

import { html } from "../dom.js";

let tip = null;

export function showTip(lines, beside) {
  tip ??= document.body.appendChild(html("div", { class: "nw-tip", "aria-hidden": "true" }));
  tip.replaceChildren(...lines.map((line, index) => html(index ? "div" : "strong", {}, line)));
  tip.hidden = false;
  const target = beside.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(target.left, document.documentElement.clientWidth - own.width - 8);
  const above = target.top - own.height - 8;
  tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
  tip.style.top = `${(above > 0 ? above : target.bottom + 8) + window.scrollY}px`;
}

export function hideTip() {
  if (tip) tip.hidden = true;
}
