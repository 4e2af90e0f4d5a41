// Plotly with the three traces that our figures use (scatter is part of the core) and the Chinese locale.
// The whole library is four times as large and takes ten times as long to start.

require("./attributes.cjs");

const Plotly = require("plotly.js/lib/core");

Plotly.register([
  require("plotly.js/lib/bar"),
  require("plotly.js/lib/heatmap"),
  require("plotly.js/lib/locales/zh-cn"),
]);

module.exports = Plotly;
