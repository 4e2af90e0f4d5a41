"""`python -m numasim`: run a cluster, write one tree, serve many simulated endpoints, list the server models."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from numasim import cluster, faults, fleet, models, place, podresources, scenario, serving
from numasim.node import Node
from numasim.trees import NodeTree

ERRORS = (
    cluster.ClusterError,
    faults.FaultError,
    models.UnknownModelError,
    place.PlaceError,
    podresources.SocketPathError,
    OSError,
)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.act(options)
    except ERRORS as error:
        print(f"numasim: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="numasim", description="A NUMA cluster that is not there.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a cluster with the real exporter on each node, until a signal")
    run.add_argument("--dir", type=Path, help="a directory for the trees, with a short name (one in memory)")
    run.add_argument(
        "--announce", type=Path, required=True, help="file that gets the exporters' addresses, as JSON"
    )
    run.add_argument("--nodes", type=_positive, default=8, help="how many nodes (8)")
    run.add_argument("--seed", type=int, default=1, help="the same seed gives the same cluster (1)")
    run.add_argument(
        "--period", type=_seconds, default=1.0, help="seconds between two moves of the trees (1)"
    )
    run.add_argument(
        "--models", type=_names, default=[], help="server models, by comma; default: a mixed set"
    )
    run.set_defaults(act=_run)
    tree = commands.add_parser("tree", help="write one tree once")
    tree.add_argument("--model", required=True, help="a server model")
    tree.add_argument("--dir", type=Path, required=True, help="where; must not exist or be empty")
    tree.add_argument("--containers", type=_positive, default=24, help="how many containers (24)")
    tree.add_argument("--seed", type=int, default=1, help="the same seed gives the same tree (1)")
    tree.set_defaults(act=_tree)
    fleet_ = commands.add_parser("fleet", help="serve many endpoints that only answer, until a signal")
    fleet_.add_argument("--announce", type=Path, required=True, help="file that gets the addresses, as JSON")
    fleet_.add_argument("--nodes", type=_positive, default=5000, help="how many endpoints (5000)")
    fleet_.add_argument("--model", default="epyc-nps4", help="server model of all of them (epyc-nps4)")
    fleet_.add_argument("--containers", type=_positive, default=60, help="how many containers on each (60)")
    fleet_.add_argument("--seed", type=int, default=1, help="the same seed gives the same answers (1)")
    fleet_.add_argument(
        "--faults", default="", help=f"shares, as in black-hole:0.05,slow:0.1; of {', '.join(faults.FAULTS)}"
    )
    fleet_.set_defaults(act=_fleet)
    listing = commands.add_parser("models", help="list the server models")
    listing.set_defaults(act=_models)
    return parser


def _run(options: argparse.Namespace) -> None:
    specs = scenario.cluster(options.nodes, options.models)
    directory = options.dir.resolve() if options.dir else None
    cluster.run(directory, specs, options.seed, options.announce.resolve(), options.period)


def _tree(options: argparse.Namespace) -> None:
    spec = scenario.plain(options.model, options.model, options.containers)
    if options.dir.exists() and os.listdir(options.dir):
        raise place.PlaceError(f"{options.dir} is not empty: name an empty or new directory")
    NodeTree(options.dir.resolve(), Node(spec, options.seed), time.time()).write()


def _fleet(options: argparse.Namespace) -> None:
    shares = faults.parse(options.faults)
    made = fleet.Fleet(
        options.nodes, model=options.model, containers=options.containers, seed=options.seed, shares=shares
    )
    serving.run(made, options.announce.resolve())


def _models(_options: argparse.Namespace) -> None:
    for name in models.MODELS:
        print(f"{name:<14} {models.model(name).title}")


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.05 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.05 and 3600 seconds")
    return value


if __name__ == "__main__":
    sys.exit(main())
