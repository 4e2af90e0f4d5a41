"""Runs beside a real systemd, as root of a machine of its own: three changes, and what a person would find after each, as JSON.

Only `test_real_systemd` starts it; it writes below /etc and /var.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from numacore.change import editing, undo
from numacore.change import order as orders
from tests import servers
from tests.numaagent.applier.node import SETTINGS, WISH, envelope, public

CONFIG = Path("/var/lib/kubelet/config.yaml")
STATE = Path("/var/lib/kubelet/cpu_manager_state")
ARMED = Path("/var/lib/numaweb/undo/armed")
UNITS = Path("/etc/systemd/system")
HEALTH = 10248
KEY = Ed25519PrivateKey.generate()
_PLAY = "from pathlib import Path; from tests.numaagent.applier import kubelet; kubelet.main(Path('/'))"


def main() -> None:
    first = start()
    found: dict[str, Any] = {}
    answer = _give(ordered(1))
    found["applied"] = looks(first) | {"outcome": answer["outcome"], "step": answer["step"]}
    restore = {"act": "restore", "keys": {}, "removed": tuple(WISH), "after": orders.sha256(first)}
    found["original"] = {"outcome": _give(ordered(2, **restore))["outcome"]} | looks(first)
    Path("/doomed").touch()
    found["doomed"] = {"outcome": _give(ordered(3))["outcome"]} | looks(first)
    Path("/doomed").unlink()

    # A busy machine may be too slow for the shorter time.
    order, found["killed"], gone = _killed(4, first, steady_for=5)
    if not found["killed"]["new"]:
        order, found["killed"], gone = _killed(5, first, steady_for=60)
    until(lambda: servers.listens(HEALTH))
    found["dead-man"] = {"in time": gone} | looks(first)
    found["again"] = {"outcome": _give(order)["outcome"]} | looks(first)
    json.dump(found, sys.stdout)


def _killed(epoch: int, first: str, steady_for: int) -> tuple[orders.Order, dict[str, Any], bool]:
    """The applier is killed while it looks whether the kubelet lasts: its order, how the node looks then, and whether the dead-man came in time."""
    more = {"steady_for": steady_for, "healthy_within": 5 + steady_for, "dead_man": 40 + 2 * steady_for}
    order = ordered(epoch, **more)
    journal = Path(f"/var/lib/numaweb/changes/{epoch}/journal")
    process = _applier(order)
    until(lambda: journal.exists() and '"health"' in journal.read_text(), order.dead_man)
    process.kill()
    process.wait()
    looked = {"new": CONFIG.read_text() != first, "armed": ARMED.exists(), "cannot": _cannot_copy()}
    return order, looked, until(lambda: not ARMED.exists(), order.dead_man + 40)


def _cannot_copy() -> dict[str, bool]:
    """The way back is tried where its copy cannot be written, as on a full disk: what is left of the node."""
    copy, aside, before = Path(undo.SETTINGS), Path(undo.FOLDER, "aside"), _main_pid()
    copy.rename(aside)
    failed = subprocess.run(["systemctl", "start", undo.SERVICE], capture_output=True).returncode != 0
    aside.rename(copy)
    return {"failed": failed, "armed": ARMED.exists(), "kubelet runs on": _main_pid() == before != "0"}


def _main_pid() -> str:
    command = ["systemctl", "show", "kubelet.service", "--property=MainPID", "--value"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def start() -> str:
    CONFIG.parent.mkdir(exist_ok=True)
    Path("/etc/kubernetes").mkdir(exist_ok=True)
    CONFIG.write_text(SETTINGS.format(health=HEALTH, port=10250))
    (UNITS / "kubelet.service").write_text(
        f'[Service]\nWorkingDirectory={os.getcwd()}\nExecStart={sys.executable} -c "{_PLAY}"\n'
        "Restart=always\nRestartSec=1\nStartLimitIntervalSec=0\n"
    )
    Path("/root/keys.pem").write_bytes(public(KEY))
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "start", "kubelet.service"], check=True)
    until(lambda: servers.listens(HEALTH) and STATE.exists())
    return CONFIG.read_text()


def ordered(epoch: int, **more: Any) -> orders.Order:
    text = CONFIG.read_text()
    given: dict[str, Any] = {
        "act": "apply", "node": "n", "epoch": epoch, "rollout": "r", "path": str(CONFIG), "keys": WISH,
        "before": orders.sha256(text), "state_files": ("cpu_manager_state",), "expires": int(time.time()) + 900,
        "healthy_within": 60, "steady_for": 2, "dead_man": 300,
    }  # fmt: skip
    given |= more
    given.setdefault("after", orders.sha256(editing.edit(text, given["keys"])))
    return orders.Order(**given)


def _applier(order: orders.Order) -> subprocess.Popen[str]:
    Path("/root/order.json").write_bytes(envelope(KEY, orders.encode(order)))
    command = [sys.executable, "-m", "numaagent.applier", "--order=/root/order.json", "--keys=/root/keys.pem"]
    return subprocess.Popen(
        [*command, "--termination-log=/root/log"],
        env={"NODE_NAME": "n", "PATH": "/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _give(order: orders.Order) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(_applier(order).communicate()[0])
    return said


def looks(first: str) -> dict[str, Any]:
    return {
        "settings": "old" if CONFIG.read_text() == first else "new",
        "policy": json.loads(STATE.read_text())["policyName"],
        "left": sorted(path.name for path in CONFIG.parent.iterdir() if path not in (CONFIG, STATE)),
        "armed": ARMED.exists(),
        "well": servers.listens(HEALTH),
    }


def until(what: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    main()
