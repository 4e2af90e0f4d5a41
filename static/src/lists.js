// Lists: the filter form and the export links follow the address, whatever changed it (a chip, a column, the form).

const KEPT = ["sort", "per_page", "order", "tab", "container", "cpu", "refresh"];

/** What the form asks for: no empty fields, and the order and size that the list has now. */
function ask(event) {
  if (event.target.id !== "filter") return;
  const { formData } = event.detail;
  for (const [name, value] of [...formData.entries()]) if (value === "") formData.delete(name);
  const now = new URL(window.location.href).searchParams;
  for (const name of KEPT) if (now.has(name)) formData.set(name, now.get(name));
}

function follow() {
  const query = new URL(window.location.href).searchParams;
  for (const control of document.getElementById("filter").elements) {
    if (control.name && control !== document.activeElement) control.value = query.get(control.name) ?? "";
  }
  query.delete("page");
  query.delete("per_page");
  query.delete("refresh");
  for (const link of document.querySelectorAll("[data-export]")) link.search = query.toString();
}

export function start() {
  if (!document.getElementById("filter")) return;
  document.body.addEventListener("htmx:configRequest", ask);
  document.body.addEventListener("htmx:pushedIntoHistory", follow);
}
