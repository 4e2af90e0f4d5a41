// The Planner: what was typed into the manifest and not yet sent goes along when the form beside it is sent.

export function start() {
  document.querySelectorAll("form[data-takes]").forEach((form) => {
    const source = document.getElementById(form.dataset.takes);
    form.addEventListener("submit", () => {
      form.elements.namedItem(source.name).value = source.value;
    });
  });
}
