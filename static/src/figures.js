// Figures save themselves as SVG or PNG. Whoever draws one says how it looks as SVG; the buttons of its card do the rest.

import { download } from "./drawing/export.js";

const looks = new WeakMap();

/** `look` gives the figure in this place as the text of an SVG, or a promise of it, when somebody saves it. */
export const drawnIn = (place, look) => looks.set(place, look);

async function save(button) {
  const place = button.closest(".card")?.querySelector("[data-file]");
  const look = looks.get(place);
  if (look) download(await look(), button.dataset.save, place.dataset.file);
}

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-save]");
    if (button) save(button);
  });
}
