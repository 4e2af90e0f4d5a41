// On a page with charts: asks for their data while the scripts that draw it are still on their way.

const { asks } = document.currentScript.dataset;

window.numawebEarly = fetch(asks, { redirect: "manual", cache: "no-store" }).catch(() => null);
