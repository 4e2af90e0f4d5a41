"""The simulated fleet of numasim, which also answers `/metrics`: the same machine as text, for Prometheus.

`python -m benchmarks.fleet NODES CONTAINERS ANNOUNCE [TEXT]` serves until it is stopped; TEXT is the page of a real
exporter on a server of the same model with as many containers. `/counts` tells how often which path was asked for.
"""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

from numasim import serving
from numasim.endpoint import Reply
from numasim.fleet import Fleet


class Both(Fleet):
    """Answers snapshots that move, and a page of text that stands still (which flatters Prometheus)."""

    def __init__(self, nodes: int, containers: int, text: bytes) -> None:
        super().__init__(nodes, containers=containers)
        self.packed = gzip.compress(text, 1)
        self.asked: Counter[str] = Counter()

    def answer(self, index: int, target: str) -> Reply:
        path = target.partition("?")[0]
        self.asked[path] += 1
        if path == "/metrics":
            return Reply(self.packed, head=b"Content-Encoding: gzip\r\n")
        if path == "/counts":
            return Reply(json.dumps(self.asked).encode())
        return super().answer(index, target)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    parser.add_argument("nodes", type=int)
    parser.add_argument("containers", type=int)
    parser.add_argument("announce", type=Path)
    parser.add_argument("text", type=Path, nargs="?")
    options = parser.parse_args()
    text = options.text.read_bytes() if options.text else b""
    serving.run(Both(options.nodes, options.containers, text), options.announce)


if __name__ == "__main__":
    main()
