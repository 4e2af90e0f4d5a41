"""`python -m numaagent exporter`: one snapshot to look at, or the server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import Mapping

import msgspec

from numaagent import config
from numaagent.config import Config, ConfigError
from numaagent.exporter import server
from numaagent.exporter.node import Node
from numacore import wire

NOT_USABLE = 2
"""Exit status for arguments or a configuration that cannot be used."""


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Runs the exporter; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        told = config.load(environ, root=options.root, listen=options.listen)
        _check(told)
    except ConfigError as error:
        return _refuse(error)
    return once(told) if options.once else _serve(told)


def once(told: Config) -> int:
    """Prints one snapshot as JSON, indented where a person reads it."""
    node = Node(told, started=time.time())
    node.adopt(node.survey(time.monotonic(), time.time()))
    data = wire.encode(node.snapshot(time.monotonic(), time.time(), {}))
    node.close()
    sys.stdout.write((msgspec.json.format(data, indent=2) if sys.stdout.isatty() else data).decode() + "\n")
    return 0


def _serve(told: Config) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    def ready(port: int) -> None:
        logging.getLogger(__name__).info("listening on %s:%d", told.host, port)

    try:
        asyncio.run(server.serve(told, ready))
    except ConfigError as error:
        return _refuse(error)
    return 0


def _refuse(error: ConfigError) -> int:
    sys.stderr.write(f"numaagent exporter: {error}\n")
    return NOT_USABLE


def _check(told: Config) -> None:
    """Refuses a root that is no machine. Folders named one by one are taken as they are."""
    roots = told.roots
    if not os.path.isdir(roots.root):
        raise ConfigError(f"--root or NUMAAGENT_ROOT: {roots.root} is not a folder")
    if not os.path.isdir(roots.sysfs) and not os.path.isdir(roots.proc):
        raise ConfigError(
            f"--root or NUMAAGENT_ROOT: there is neither {roots.sysfs} nor {roots.proc}; "
            "name the folder that holds the machine's sys and proc"
        )


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name}\n      {text}" for name, text in config.SETTINGS.items())
    parser = argparse.ArgumentParser(
        prog="python -m numaagent exporter",
        description="Tells where every container and CPU of this node sits on its NUMA nodes. It only reads.",
        epilog=f"environment variables:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--root", metavar="DIR", help="read the trees below DIR (sys, proc, var, ...); default /"
    )
    parser.add_argument("--once", action="store_true", help="print one snapshot as JSON and end")
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help=f"default 0.0.0.0:{config.DEFAULT_PORT}")
    return parser
