// Loaded before the style sheet, which would hold it up: sets light or dark, and on a page with charts asks for their
// data while the scripts that draw it are still on their way.

import "./theme.js";

const { asks } = document.currentScript.dataset;

if (asks) window.numawebEarly = fetch(asks, { redirect: "manual", cache: "no-store" }).catch(() => null);
