// Parts of a page that come anew: on their period, or when the server says that something changed, or at the pace that
// somebody chose. A part that somebody is working in stays as it is until the focus leaves it.

import * as pace from "./pace.js";

const REDIRECTED = "opaqueredirect";

function busy(part) {
  const active = document.activeElement;
  return part.contains(active) && active !== document.body;
}

/** Puts new content in place; a `<template data-for="id">` in it is the content of another part. */
function put(part, text) {
  const fresh = document.createElement("template");
  fresh.innerHTML = text;
  const others = [...fresh.content.querySelectorAll("template[data-for]")];
  others.forEach((other) => other.remove());
  swap(part, fresh.content);
  for (const other of others) {
    const place = document.getElementById(other.dataset.for);
    if (place && !busy(place)) swap(place, other.content);
  }
}

function swap(place, content) {
  place.replaceChildren(content);
  window.htmx?.process(place);
  place.dispatchEvent(new CustomEvent("numa:refreshed", { bubbles: true }));
}

/** Fetches a part again and puts it in place. Without a change nothing moves on the page. */
export async function refresh(part) {
  if (document.hidden || busy(part) || part.dataset.loading) return;
  part.dataset.loading = "1";
  try {
    const url = part.dataset.source ? new URL(part.dataset.source, window.location.href) : window.location.href;
    const answer = await fetch(url, { headers: { "HX-Request": "true" }, redirect: "manual", cache: "no-store" });
    if (answer.type === REDIRECTED || !answer.ok || busy(part)) return;
    const text = await answer.text();
    if (text === part.refreshedText) return;
    part.refreshedText = text;
    put(part, text);
  } catch {
    // The server is away; the live indicator says so, and the next period tries again.
  } finally {
    delete part.dataset.loading;
  }
}

export const refreshAll = () => document.querySelectorAll("[data-refresh]").forEach((part) => refresh(part));

const period = (part) => Number(part.dataset.refresh);

export function start() {
  const parts = [...document.querySelectorAll("[data-refresh]")].filter((part) => period(part) > 0);
  for (const part of parts) setInterval(() => { if (pace.following()) refresh(part); }, period(part) * 1000);
  pace.watch(() => parts.forEach(refresh));
}
