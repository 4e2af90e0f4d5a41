// History charts: asked for from the server as plain figures, drawn by Plotly in the colours of the theme, kept fresh.

import { html, perFrame } from "./dom.js";
import * as pace from "./pace.js";

const AGAIN = 10000; // milliseconds

function themed(figure) {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--nw-${name}`).trim();
  const axis = { gridcolor: read("line"), linecolor: read("line"), zerolinecolor: read("line") };
  const { layout } = figure;
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: read("ink") },
    hoverlabel: { bgcolor: read("surface"), bordercolor: read("line"), font: { color: read("ink") } },
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
    height: 240,
    uirevision: "kept",
  };
}

class History {
  constructor(host) {
    this.host = host;
    this.figures = {};
    this.repaint = perFrame(() => this.paint());
    new MutationObserver(this.repaint).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    this.load();
    if ("over" in host.dataset) return; // the past does not change
    setInterval(() => { if (pace.following()) this.load(); }, AGAIN);
    pace.watch(() => this.load());
  }

  async load() {
    if (document.hidden) return;
    try {
      const answer = (await this.early()) ?? (await fetch(this.host.dataset.history, { redirect: "manual", cache: "no-store" }));
      if (!answer.ok) return;
      this.answer = await answer.json();
    } catch {
      return; // the server is away; the live indicator says so
    }
    this.repaint();
  }

  /** What early.js asked for, the first time. */
  early() {
    const asked = window.numawebEarly;
    window.numawebEarly = undefined;
    return asked;
  }

  paint() {
    if (!this.answer) return;
    for (const place of this.host.querySelectorAll("[data-metric]")) {
      const found = this.answer.charts[place.dataset.metric];
      place.querySelector("[data-note]").textContent = found?.note ?? "";
      const plot = place.querySelector("[data-plot]");
      if (found?.figure) this.plot(plot, found.figure);
      else plot.replaceChildren(html("p", { class: "text-secondary p-3 mb-0" }, found?.empty ?? ""));
    }
  }

  plot(place, figure) {
    const config = { responsive: true, displaylogo: false, locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en", toImageButtonOptions: { format: "svg" }, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
    window.Plotly.react(place, figure.data, themed(figure), config);
  }
}

export function start() {
  document.querySelectorAll("[data-history]").forEach((host) => new History(host));
}
