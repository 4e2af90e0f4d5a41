// Entry of every page: our own modules, then the design system's behaviour.

import * as choice from "./choice.js";
import * as documents from "./document.js";
import { whenIdle } from "./dom.js";
import * as figures from "./figures.js";
import * as fleet from "./fleet.js";
import * as history from "./history.js";
import * as keys from "./keys.js";
import * as lists from "./lists.js";
import * as node from "./node.js";
import * as pace from "./pace.js";
import * as planner from "./planner.js";
import * as refresh from "./refresh.js";
import * as shades from "./shades.js";

const LONGEST = 1000; // milliseconds

pace.start();
const charts = history.start();
for (const part of [choice, figures, keys, lists, refresh, shades, node, fleet, documents, planner]) part.start();

// Menus of the design system wait until charts, which people came for, are on the screen, but not for a server that is slow.
if (charts) {
  await Promise.race([charts, new Promise((over) => setTimeout(over, LONGEST))]);
  await new Promise(whenIdle);
}
await import("./menus.js");
