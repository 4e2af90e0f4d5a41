"""`make cluster`: a real control plane with a few played nodes, kept until Ctrl-C.

Beside running pods it has what numaweb is there to explain: pods that nodes refused, one that does not start, one that fits nowhere, and a node
whose topology sources contradict each other.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from tests import goprograms, servers
from tests.cluster import bulk, programs, scene
from tests.cluster.controlplane import ControlPlane


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--pods", type=int, default=40)
    parser.add_argument(
        "--listen", default="0.0.0.0:30881", help="where numaweb shows it; empty = without numaweb"
    )
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _told_to_end)
    # Whoever starts it in the background of a script hands an ignored Ctrl-C down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="numaweb-cluster-") as folder:
            _keep(Path(folder), chosen.nodes, chosen.pods, chosen.listen)
    except goprograms.LackingError as lacking:
        print(f"This machine lacks {lacking}", file=sys.stderr)
        return 2
    except pytest.fail.Exception as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Ended")
    return 0


def _keep(folder: Path, nodes: int, pods: int, listen: str) -> None:
    built = programs.control_plane()
    print("Starting the control plane", flush=True)
    with ControlPlane(built, folder, lease_seconds=40 if nodes < 500 else 400) as plane:
        asyncio.run(bulk.create(plane.api, scene.nodes(nodes)))
        asyncio.run(bulk.create(plane.api, scene.pods(nodes, pods)))
        print(
            f"""
Kubernetes {programs.VERSION} at {plane.url}, {nodes} played nodes

  export NUMAWEB_KUBECONFIG={plane.kubeconfig_file}    # what numaweb reads it with
  go -C {programs.KUBERNETES} tool kubectl --kubeconfig {plane.kubeconfig_file} get pods -A -o wide

State and logs are in {folder}; Ctrl-C ends everything and removes them.
""",
            flush=True,
        )
        if listen:
            _show(folder, plane, listen)
        else:
            threading.Event().wait()


def _show(folder: Path, plane: ControlPlane, listen: str) -> None:
    """numaweb on it, as `make run` starts it, without a simulated cluster; ends with it."""
    surroundings = os.environ | {
        "NUMAWEB_KUBECONFIG": str(plane.kubeconfig_file),
        "NUMAWEB_STATE_DIR": str(folder / "numaweb"),
        "NUMAWEB_SIMULATED_NODES": "0",
    }
    command = [sys.executable, "manage.py", "local", "--listen", listen]
    with subprocess.Popen(command, cwd=servers.ROOT, env=surroundings) as numaweb:
        try:
            numaweb.wait()
        finally:
            numaweb.terminate()


def _told_to_end(_signal: int, _frame: object) -> NoReturn:
    """Ends as Ctrl-C does; told twice, it ends at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
