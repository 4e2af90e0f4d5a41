// Entry of every page: the design system's behaviour and our own modules.

import "@tabler/core/dist/js/tabler.esm.js";

import * as choice from "./choice.js";
import * as documents from "./document.js";
import * as fleet from "./fleet.js";
import * as history from "./history.js";
import * as keys from "./keys.js";
import * as lists from "./lists.js";
import * as node from "./node.js";
import * as pace from "./pace.js";
import * as planner from "./planner.js";
import * as refresh from "./refresh.js";
import * as shades from "./shades.js";

for (const part of [pace, choice, keys, lists, refresh, shades, node, fleet, history, documents, planner]) part.start();
