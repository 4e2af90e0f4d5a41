// Keys of every page: "/" searches, "?" lists the keys, "t" switches the theme, "g" and a letter go to a page.

import { nextTheme } from "./choice.js";

const PATIENCE = 1200; // milliseconds between "g" and its letter

let going = 0;

function typing(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") || target.closest?.("dialog[open]");
}

function go(letter) {
  const link = document.querySelector(`[data-go="${letter}"]`);
  if (link) window.location.assign(link.href);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (performance.now() - going < PATIENCE && /^[a-z]$/.test(event.key)) {
    going = 0;
    go(event.key);
    return;
  }
  const actions = {
    "/": () => document.getElementById("search")?.focus(),
    "?": () => document.getElementById("keys")?.showModal(),
    t: nextTheme,
    g: () => { going = performance.now(); },
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

export function start() {
  document.addEventListener("keydown", press);
  document.querySelectorAll("[data-open-keys]").forEach((button) =>
    button.addEventListener("click", () => document.getElementById("keys").showModal()),
  );
}
