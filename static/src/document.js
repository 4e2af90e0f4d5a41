// The raw document: copying it.

import { t } from "./words.js";

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  let words = t("copied");
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Plain http has no clipboard: the text is selected, so that one key copies it.
    window.getSelection().selectAllChildren(source);
    words = document.execCommand("copy") ? t("copied") : t("copyFailed");
  }
  button.querySelector("[data-words]").textContent = words;
}

export function start() {
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
}
