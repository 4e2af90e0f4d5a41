"""`python -m numaagent PROGRAM ...`."""

from __future__ import annotations

import os
import sys

from numaagent.exporter import command

PROGRAMS = {"exporter": command.main}


def main() -> int:
    """Runs the program named by the first argument; the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] not in PROGRAMS:
        print(f"usage: python -m numaagent {{{','.join(PROGRAMS)}}} ...", file=sys.stderr)
        return 2
    return PROGRAMS[sys.argv[1]](sys.argv[2:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
