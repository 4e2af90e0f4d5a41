// One live connection of a page, and the words that say how it stands. It comes back by itself: after a pause that
// grows and is spread at random, so that a thousand browsers do not return to a restarted server in the same moment.

import { html } from "./dom.js";
import * as pace from "./pace.js";
import { t } from "./words.js";

const FRESH = 5; // seconds of age that still count as live
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const SOON_PAUSE = 2000; // the longest of the first attempts: whoever waits for a restart is back within three seconds of it
const SOON = 20; // so many attempts
const SILENCE = 20000; // milliseconds without a message after which the connection counts as dead

// What the server says before it closes, and with which code, as states of ours.
const REASONS = { "signed-out": "signedOut", forbidden: "refused", unknown: "gone", "too-many": "tooMany", restart: "restarting" };
const CODES = { 1001: "restarting", 1012: "restarting", 4401: "signedOut", 4403: "refused", 4404: "gone", 4429: "tooMany" };
const FINAL = ["signedOut", "refused", "gone"];

/** Why a connection was not made, by asking for the page itself: it may be gone, restarting or not ours any more. */
async function diagnose() {
  try {
    const answer = await fetch(window.location.href, { method: "HEAD", redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect" || answer.status === 401) return "signedOut";
    if (answer.status === 403) return "refused";
    return answer.status >= 500 ? "restarting" : "reconnecting";
  } catch {
    return "restarting";
  }
}

export class Live {
  constructor(path, { text, binary = () => {} }) {
    this.url = `${window.location.protocol === "https:" ? "wss" : "ws"}://${window.location.host}${path}`;
    this.handlers = { text, binary };
    this.state = "reconnecting";
    this.source = "ok"; // or why nothing comes although the connection stands
    this.failures = 0;
    this.heard = null;
    this.base = 0;
    this.connect();
    setInterval(() => this.tick(), 1000);
    document.addEventListener("visibilitychange", () => this.visibility());
    pace.watch(() => this.take());
    window.addEventListener("online", () => this.again(0));
    window.addEventListener("pagehide", () => this.leave());
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = null;
    this.socket = new WebSocket(this.url);
    this.socket.binaryType = "arraybuffer";
    this.last = performance.now();
    this.source = "ok";
    this.awaiting = this.heard === null || pace.seconds() < Infinity; // the state that each connection begins with
    this.socket.addEventListener("message", (event) => this.message(event));
    this.socket.addEventListener("close", (event) => this.closed(event));
  }

  message(event) {
    this.failures = 0;
    this.last = performance.now();
    if (event.data instanceof ArrayBuffer) {
      this.figures(() => this.handlers.binary(event.data));
      return;
    }
    const message = JSON.parse(event.data);
    if (message.type === "closing") this.farewell = REASONS[message.reason];
    if (message.type === "refused") this.farewell = REASONS[message.code];
    if (message.type === "state") this.source = message.source;
    if (message.type === "node") this.figures(() => this.handlers.text(message));
    else this.fresh(this.handlers.text(message));
  }

  /** Figures that nobody waits for at this pace are not shown, and no more are wanted. */
  figures(shown) {
    if (pace.following() || this.awaiting) this.fresh(shown());
    else this.send({ type: "pause" });
  }

  /** A handler that returns an age has shown data of that age, in seconds. */
  fresh(age) {
    if (typeof age !== "number") return;
    this.heard = performance.now();
    this.base = Math.max(0, age);
    this.state = "live";
    this.awaiting = false;
    if (!pace.following()) this.send({ type: "pause" });
    this.show();
  }

  async closed(event) {
    if (event.target !== this.socket) return;
    this.failures += 1;
    const farewell = this.farewell ?? CODES[event.code] ?? (document.hidden ? "paused" : await diagnose());
    this.farewell = null;
    this.state = farewell;
    this.show();
    if (FINAL.includes(farewell)) return;
    const longest = this.failures > SOON ? LONGEST_PAUSE : SOON_PAUSE;
    const pause = Math.min(longest, FIRST_PAUSE * 2 ** Math.min(this.failures - 1, 6));
    this.again(pause * (0.5 + Math.random()));
  }

  again(pause) {
    if (this.socket?.readyState === WebSocket.OPEN || this.timer) return;
    this.timer = setTimeout(() => this.connect(), pause);
  }

  /** A page that goes lets its connection go too; one that is only being made goes by itself. */
  leave() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.close();
  }

  visibility() {
    if (document.hidden) this.send({ type: "pause" });
    else if (pace.following()) this.take();
  }

  /** Asks for the newest state, and for what follows. */
  take() {
    if (this.socket?.readyState !== WebSocket.OPEN) {
      this.again(0);
      return;
    }
    this.last = performance.now();
    this.awaiting = true;
    this.send({ type: "resume" });
  }

  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  tick() {
    const open = this.socket?.readyState === WebSocket.OPEN;
    // A lid that was closed leaves a connection that looks open and never speaks again.
    const expecting = pace.following() || this.awaiting;
    if (open && expecting && !document.hidden && performance.now() - this.last > SILENCE) this.socket.close();
    this.show();
  }

  age() {
    return this.heard === null ? null : this.base + (performance.now() - this.heard) / 1000;
  }

  show() {
    const place = document.getElementById("live");
    if (!place) return;
    const age = this.age();
    const old = age === null ? t("noData") : age < 120 ? t("old", { seconds: Math.round(age) }) : t("oldMinutes", { minutes: Math.round(age / 60) });
    const held = this.state === "live" && pace.seconds() === Infinity;
    const live = this.state === "live" && this.source === "ok" && !held && age !== null && age < FRESH + pace.seconds();
    const stalled = this.source !== "ok" && this.socket?.readyState === WebSocket.OPEN;
    const state = held ? "paused" : stalled ? this.source : this.state;
    const words = live && pace.following() ? t("live") : state === "live" ? old : age === null ? t(state) : `${t(state)} · ${old}`;
    const kind = live ? "live" : state === "live" ? "old" : state;
    document.documentElement.classList.toggle("nw-stale", !live && age !== null);
    if (place.dataset.state !== kind) announce(words);
    place.dataset.state = kind;
    place.querySelector("[data-words]").textContent = words;
  }
}

// Said once to screen readers when the state changes, and not at every second of age.
function announce(words) {
  let region = document.getElementById("live-said");
  if (!region) region = document.body.appendChild(html("div", { id: "live-said", class: "visually-hidden", role: "status" }));
  region.textContent = words;
}
