// History charts: asked for from the server as plain figures, drawn by Plotly in the colours of the theme, kept fresh.

import { html, perFrame, whenIdle } from "./dom.js";
import { onGround } from "./drawing/export.js";
import { drawnIn } from "./figures.js";
import * as pace from "./pace.js";

const AGAIN = 10000; // milliseconds
// The buttons over a chart are a quarter of its drawing and only show under the pointer or the focus: they are made once all charts stand.
const NO_BUTTONS = { remove: ["toImage", "zoom", "pan", "zoomIn", "zoomOut", "resetScale"] };

/** What the theme says of charts. Asking makes the browser style the page, so it is asked once for all of them. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--nw-${name}`).trim();
  const [line, ink, surface] = ["line", "ink", "surface"].map(read);
  const { fontFamily } = getComputedStyle(document.body);
  return {
    axis: { gridcolor: line, linecolor: line, zerolinecolor: line },
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: fontFamily, size: 12, color: ink },
      hoverlabel: { bgcolor: surface, bordercolor: line, font: { color: ink } },
      height: 240,
      uirevision: "kept",
    },
  };
}

function themed({ layout }, { axis, layout: common }) {
  return { ...layout, ...common, xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis } };
}

/** A chart as Plotly would save it, on the ground of the page. */
async function look(plot) {
  const { clientWidth: width, clientHeight: height } = plot;
  const address = await window.Plotly.toImage(plot, { format: "svg", width, height });
  return onGround(decodeURIComponent(address.slice(address.indexOf(",") + 1)));
}

class History {
  constructor(host) {
    this.host = host;
    this.figures = {};
    this.repaint = perFrame(() => this.paint());
    new MutationObserver(this.repaint).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    /** Over when the first charts are there, or cannot be. */
    this.begun = this.load();
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
    this.paint();
    if (!this.buttons) whenIdle(() => this.complete());
  }

  /** What early.js asked for, the first time. */
  early() {
    const asked = window.numawebEarly;
    window.numawebEarly = undefined;
    return asked;
  }

  paint() {
    if (!this.answer) return;
    const colours = theme();
    for (const place of this.host.querySelectorAll("[data-metric]")) this.show(place, colours);
  }

  show(place, colours) {
    const found = this.answer.charts[place.dataset.metric];
    place.querySelector("[data-note]").textContent = found?.note ?? "";
    const plot = place.querySelector("[data-plot]");
    for (const button of place.querySelectorAll("[data-save]")) button.disabled = !found?.figure;
    if (found?.figure) this.plot(plot, found.figure, colours);
    else plot.replaceChildren(html("p", { class: "text-secondary p-3 mb-0" }, found?.empty ?? ""));
  }

  /** Gives each chart its buttons, one chart at a time. */
  complete() {
    if (this.buttons) return;
    this.buttons = true;
    const colours = theme();
    for (const place of this.host.querySelectorAll("[data-metric]")) {
      whenIdle(() => this.show(place, colours));
    }
  }

  plot(place, figure, colours) {
    const config = {
      responsive: true,
      displaylogo: false,
      showSendToCloud: false, // figures of a cluster are not offered to others
      locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en",
      toImageButtonOptions: { format: "svg" },
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    };
    const layout = themed(figure, colours);
    drawnIn(place, () => look(place));
    window.Plotly.react(place, figure.data, this.buttons ? layout : { ...layout, modebar: NO_BUTTONS }, config);
  }
}

/** A promise that is over when the charts of the page are drawn or cannot be; null = it has none. */
export function start() {
  const hosts = [...document.querySelectorAll("[data-history]")];
  return hosts.length > 0 ? Promise.all(hosts.map((host) => new History(host).begun)) : null;
}
