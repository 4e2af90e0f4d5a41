// Sets light or dark on the root, before the style sheet is applied, so that no page flashes in the other.

const KEY = "numaweb-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    return window.localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system"; // the browser keeps nothing for this site
  }
}

function apply() {
  const choice = chosen();
  const theme = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.bsTheme = theme;
  document.documentElement.dataset.themeChoice = choice;
}

dark.addEventListener("change", apply);
window.addEventListener("storage", apply);
apply();
