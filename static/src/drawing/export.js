// A drawing as SVG that looks as it does on the page without our style sheet, and such a text as an SVG or PNG file.

const PROPERTIES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linecap", "stroke-linejoin", "opacity", "display",
  "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "visibility",
];
const PNG_SCALE = 2;

/** A drawing as text: a copy with every computed style written into it. */
export function standalone(root) {
  const copy = root.cloneNode(true);
  const sources = [root, ...root.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
    const computed = getComputedStyle(sources[index]);
    for (const name of PROPERTIES) {
      const value = computed.getPropertyValue(name);
      if (value) element.setAttribute(name, value.replaceAll('"', "'"));
    }
    for (const name of ["class", "tabindex", "role"]) element.removeAttribute(name);
  });
  for (const hidden of copy.querySelectorAll('[display="none"]')) hidden.remove();
  return onGround(new XMLSerializer().serializeToString(copy));
}

/** The text of an SVG, on the ground of the page. As a text: parsed here, its styles would be refused as those of a page are. */
export function onGround(text) {
  const colour = getComputedStyle(document.body).backgroundColor;
  return text.replace(/^<svg[^>]*>/, (start) => `${start}<rect width="100%" height="100%" fill="${colour}"/>`);
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Saves the text of an SVG in this form. */
export function download(text, form, name) {
  if (form === "svg") {
    save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
    return;
  }
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = document.createElement("canvas");
    canvas.width = image.width * PNG_SCALE;
    canvas.height = image.height * PNG_SCALE;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
