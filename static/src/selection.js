// What is selected on a node's page: a container or a CPU (in the address, so that a link carries it) and what the
// pointer is on at the moment. Drawings, rows and the detail card listen.

const listeners = new Set();
const state = { container: null, cpu: null, hover: null, point: null };

const address = () => new URL(window.location.href);

function read() {
  const query = address().searchParams;
  state.container = query.get("container");
  state.cpu = query.get("cpu") === null ? null : Number(query.get("cpu"));
}

function tell() {
  listeners.forEach((listener) => listener(state));
}

/** Calls the listener now and whenever something changes. */
export function watch(listener) {
  listeners.add(listener);
  listener(state);
}

/** Selects a container (its id), a CPU (its id) or nothing; the back button undoes it. */
export function select(change) {
  Object.assign(state, { container: null, cpu: null }, change);
  const url = address();
  for (const key of ["container", "cpu"]) {
    if (state[key] === null) url.searchParams.delete(key);
    else url.searchParams.set(key, state[key]);
  }
  if (url.href !== window.location.href) window.history.pushState(null, "", url);
  carry();
  tell();
}

/** What the pointer or the keyboard is on now: a container and a CPU. Nothing = the selection shows again. */
export function hover(container, cpu = null) {
  if (state.hover === container && state.point === cpu) return;
  state.hover = container;
  state.point = cpu;
  tell();
}

// The tabs of the page keep the selection.
function carry() {
  for (const link of document.querySelectorAll("a[data-carry]")) {
    const url = new URL(link.href);
    for (const key of ["container", "cpu"]) {
      if (state[key] === null) url.searchParams.delete(key);
      else url.searchParams.set(key, state[key]);
    }
    link.href = url.href;
  }
}

export function start() {
  read();
  carry();
  window.addEventListener("popstate", () => {
    read();
    tell();
  });
}
