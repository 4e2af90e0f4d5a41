// Strings of the language that the server chose: one catalogue for templates, Python and scripts.

const source = document.getElementById("words");
const words = source ? JSON.parse(source.textContent) : {};

/** The string of a key with {name} filled in; a key that is missing shows itself, which tests look for. */
export function t(key, values = {}) {
  const text = words[key] ?? `[${key}]`;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
