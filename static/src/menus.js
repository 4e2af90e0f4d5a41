// The design system's behaviour: menus, collapsing parts, tooltips.

import "@tabler/core/dist/js/tabler.esm.js";
