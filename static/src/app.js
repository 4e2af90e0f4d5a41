// Entry of every page: the design system's behaviour and our own modules.

import "@tabler/core/dist/js/tabler.esm.js";
