"""A door of its own: the exporter, which is always on, never loads this package."""

from __future__ import annotations

import os
import sys

from numaagent.applier import command

if __name__ == "__main__":
    sys.exit(command.main(sys.argv[1:], os.environ))
