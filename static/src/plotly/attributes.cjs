// A strict content security policy refuses style attributes that are written as text, but allows scripts to set
// the same style through the object model. Plotly draws with d3, so d3's `attr` takes that way for "style".

const { prototype } = require("@plotly/d3").selection;
const original = prototype.attr;

function setStyle(selection, value) {
  return selection.each(function apply(...datum) {
    const text = typeof value === "function" ? value.apply(this, datum) : value;
    this.style.cssText = text ?? "";
  });
}

prototype.attr = function attr(name, ...value) {
  if (typeof name === "object") {
    for (const [key, each] of Object.entries(name)) this.attr(key, each);
    return this;
  }
  if (name === "style" && value.length > 0) return setStyle(this, value[0]);
  return original.call(this, name, ...value);
};
