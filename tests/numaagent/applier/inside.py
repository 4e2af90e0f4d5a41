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

from numacore.change import editing
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
    first = _start()
    found: dict[str, Any] = {}
    answer = _give(_order(1))
    found["applied"] = _looks(first) | {"outcome": answer["outcome"], "step": answer["step"]}
    restore = {"act": "restore", "keys": {}, "removed": tuple(WISH), "after": orders.sha256(first)}
    found["original"] = {"outcome": _give(_order(2, **restore))["outcome"]} | _looks(first)
    Path("/doomed").touch()
    found["doomed"] = {"outcome": _give(_order(3))["outcome"]} | _looks(first)
    Path("/doomed").unlink()

    order = _order(4, steady_for=20, healthy_within=5, dead_man=60)
    journal = Path("/var/lib/numaweb/changes/4/journal")
    process = _applier(order)
    _until(lambda: journal.exists() and '"health"' in journal.read_text())
    process.kill()
    process.wait()
    found["killed"] = {"new": CONFIG.read_text() != first, "armed": ARMED.exists()}
    gone = _until(lambda: not ARMED.exists(), 100)
    _until(lambda: servers.listens(HEALTH))
    found["dead-man"] = {"in time": gone} | _looks(first)
    found["again"] = {"outcome": _give(order)["outcome"]} | _looks(first)
    json.dump(found, sys.stdout)


def _start() -> str:
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
    _until(lambda: servers.listens(HEALTH) and STATE.exists())
    return CONFIG.read_text()


def _order(epoch: int, **more: Any) -> orders.Order:
    text = CONFIG.read_text()
    given: dict[str, Any] = {
        "act": "apply", "node": "n", "epoch": epoch, "rollout": "r", "path": str(CONFIG), "keys": WISH,
        "before": orders.sha256(text), "state_files": ("cpu_manager_state",), "expires": int(time.time()) + 900,
        "healthy_within": 60, "steady_for": 3, "dead_man": 300,
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


def _looks(first: str) -> dict[str, Any]:
    return {
        "settings": "old" if CONFIG.read_text() == first else "new",
        "policy": json.loads(STATE.read_text())["policyName"],
        "left": sorted(path.name for path in CONFIG.parent.iterdir() if path not in (CONFIG, STATE)),
        "armed": ARMED.exists(),
        "well": servers.listens(HEALTH),
    }


def _until(what: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    main()
