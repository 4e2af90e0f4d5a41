// Widths that come with the page as figures (`data-width`, percent): the content security policy allows no inline
// styles, and a class for each percent would be silly.

const apply = (root) => root.querySelectorAll("[data-width]").forEach((bar) => { bar.style.width = `${bar.dataset.width}%`; });

export function start() {
  apply(document);
  for (const event of ["numa:refreshed", "htmx:afterSwap"]) document.addEventListener(event, (change) => apply(change.target));
}
