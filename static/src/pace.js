// How often a page takes new figures: live (as they come), every so many seconds, or not at all. What is chosen is
// remembered by the browser, and stands in the address, so that a link to a wall's screen carries it.

const KEY = "numaweb-refresh";
const NAME = "refresh";
const LIVE = "live";

const listeners = new Set();
let choice = LIVE;
let timer = null;

/** Whether the page follows each change by itself. Otherwise it waits for the next beat. */
export const following = () => choice === LIVE;

/** Seconds between two beats; 0 = as it comes, infinite = paused. */
export const seconds = () => (following() ? 0 : Number(choice) || Infinity);

/** Calls the listener whenever new figures are due, and when the choice changes to another than a pause. */
export const watch = (listener) => listeners.add(listener);

const beat = () => { if (!document.hidden) listeners.forEach((listener) => listener()); };

function stored() {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null; // the browser keeps nothing for this site
  }
}

function store() {
  try {
    window.localStorage.setItem(KEY, choice);
  } catch {
    return; // it counts for this page, and the address carries it
  }
}

function keepTime() {
  clearInterval(timer);
  if (Number.isFinite(seconds()) && !following()) timer = setInterval(beat, seconds() * 1000);
}

function show() {
  const url = new URL(window.location.href);
  if (following()) url.searchParams.delete(NAME);
  else url.searchParams.set(NAME, choice);
  if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
}

function choose(value) {
  choice = value;
  store();
  show();
  keepTime();
  if (seconds() < Infinity) beat();
}

/** Before anything else of a page starts: what it shows first depends on it. */
export function start() {
  const select = document.querySelector("[data-pace]");
  if (!select) return;
  const there = [...select.options].map((option) => option.value);
  const wanted = [new URL(window.location.href).searchParams.get(NAME), stored()];
  choice = wanted.find((value) => there.includes(value)) ?? LIVE;
  select.value = choice;
  show();
  keepTime();
  select.addEventListener("change", () => choose(select.value));
  document.addEventListener("visibilitychange", () => { if (seconds() < Infinity && !following()) beat(); });
}
