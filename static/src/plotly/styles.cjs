// Replaces three functions of Plotly's src/lib/dom.js (see static/build.mjs): the same style rules, held in
// constructed style sheets instead of an inline <style>, so that the content security policy can stay strict.

const sheets = new Map();

function sheetFor(uid) {
  let sheet = sheets.get(uid);
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheets.set(uid, sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  return sheet;
}

function addRelatedStyleRule(uid, selector, declarations) {
  sheetFor(uid).insertRule(`${selector}{${declarations}}`, 0);
}

function addStyleRule(selector, declarations) {
  addRelatedStyleRule("global", selector, declarations);
}

function deleteRelatedStyleRule(uid) {
  const sheet = sheets.get(uid);
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
  sheets.delete(uid);
}

module.exports = { addRelatedStyleRule, addStyleRule, deleteRelatedStyleRule };
