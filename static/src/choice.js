// The theme switch: system, light, dark, in turn. theme.js applies what is chosen here.

const ORDER = ["system", "light", "dark"];
const KEY = "numaweb-theme";

export function nextTheme() {
  const root = document.documentElement;
  const next = ORDER[(ORDER.indexOf(root.dataset.themeChoice) + 1) % ORDER.length];
  try {
    window.localStorage.setItem(KEY, next);
  } catch {
    return; // the browser keeps nothing for this site
  }
  window.dispatchEvent(new StorageEvent("storage"));
  label();
}

function label() {
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    const name = button.dataset[document.documentElement.dataset.themeChoice];
    button.setAttribute("aria-label", name);
    button.title = name;
  }
}

export function start() {
  document.querySelectorAll("[data-theme-switch]").forEach((button) => button.addEventListener("click", nextTheme));
  label();
}
