"""Runs beside a real systemd, as root of a machine of its own: a person's scripts, and what a person would find after each, as JSON.

Only `test_script` starts it; it writes below /etc and /var.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from numacore.change import editing, script
from numacore.change import order as orders
from numacore.change.script import Given
from tests.numaagent.applier.inside import ARMED, CONFIG, looks, ordered, start, until
from tests.numaagent.applier.node import WISH
from tests.servers import listens

FILE = Path("/root/change.sh")
HEALTH = 10248
TIMES = {"healthy_within": 10, "steady_for": 2, "dead_man": 60}


def main() -> None:
    first = start()
    found: dict[str, Any] = {}
    found["look"] = _run(_change(1), "look") | looks(first)
    found["applied"] = _run(_change(1), "apply") | looks(first)
    found["again"] = _run(_change(1), "apply") | looks(first)
    found["restored"] = _run(_restore(2, first), "apply") | looks(first)
    found["old"] = _run(_change(1), "apply") | looks(first)

    Path("/doomed").touch()
    found["doomed"] = _run(_change(3), "apply") | looks(first)
    Path("/doomed").unlink()

    altered = _change(4)
    found["altered"] = _run(altered.replace("# The operator's own words", "# Other words"), "apply") | looks(
        first
    )
    CONFIG.write_text(first + "# later\n")
    found["changed since"] = _run(altered, "apply")
    CONFIG.write_text(first)

    found["ended"] = _ended(_change(5, steady_for=20, dead_man=120), signal.SIGTERM) | looks(first)
    found["killed"] = _ended(_change(6, steady_for=20, healthy_within=5, dead_man=40), signal.SIGKILL)
    found["unfinished"] = _run(_change(7), "apply")
    gone = until(lambda: not ARMED.exists(), 100)
    until(lambda: listens(HEALTH))
    found["dead-man"] = {"in time": gone} | looks(first)
    json.dump(found, sys.stdout)


def _change(epoch: int, **more: int) -> str:
    text = CONFIG.read_text()
    given: dict[str, Any] = {"machine_id": Path("/etc/machine-id").read_text().strip()} | TIMES | more
    new = editing.edit(text, WISH)
    return script.script(Given(order=ordered(epoch, **given), text=new, intended=dict(WISH)))


def _restore(epoch: int, first: str) -> str:
    order = ordered(epoch, act="restore", keys={}, removed=tuple(WISH), after=orders.sha256(first), **TIMES)
    return script.script(Given(order=order, text=None, intended={"cpuManagerPolicy": None}))


def _run(text: str, word: str) -> dict[str, Any]:
    FILE.write_text(text)
    done = subprocess.run(["/bin/sh", str(FILE), word], capture_output=True, text=True)
    return {"status": done.returncode, "says": (done.stdout + done.stderr).strip().splitlines()[-1]}


def _ended(text: str, by: signal.Signals) -> dict[str, Any]:
    """The script while it waits whether the kubelet lasts."""
    FILE.write_text(text)
    process = subprocess.Popen(
        ["/bin/sh", str(FILE), "apply"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(lambda: "single-numa-node" in CONFIG.read_text() and listens(HEALTH))
    process.send_signal(by)
    process.communicate()
    return {"status": process.returncode}


if __name__ == "__main__":
    main()
