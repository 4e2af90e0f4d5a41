"""A real systemd with its own D-Bus in namespaces over this machine's own programs, with a layer on top that takes every write; nothing
of it is seen outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.servers import ROOT

# $1: an empty folder; the others: folders that have to be seen inside.
_BOOT = """
set -e
mount --make-rprivate /
top=$1; shift
mount -t tmpfs none "$top"; mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root"
cd "$top/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs none sys/fs/cgroup || true
mount -t cgroup2 none sys/fs/cgroup
for each in run dev tmp; do mount -t tmpfs none $each; done
for each in null zero full random urandom tty; do touch dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/shm dev/pts
for each in "$@"; do mkdir -p ".$each"; mount --bind "$each" ".$each"; done
rm -rf etc/systemd/system/*.wants etc/systemd/system/*.requires
: > etc/fstab
for each in systemd-tmpfiles-setup systemd-tmpfiles-clean systemd-update-utmp systemd-pcrphase systemd-pcrphase-sysinit \
    systemd-journal-flush systemd-udevd systemd-networkd systemd-resolved; do ln -sf /dev/null etc/systemd/system/$each.service; done
for each in dev-hugepages sys-fs-fuse-connections sys-kernel-debug sys-kernel-tracing dev-mqueue; do
    ln -sf /dev/null etc/systemd/system/$each.mount; done
ln -sf /dev/null etc/systemd/system/systemd-tmpfiles-clean.timer
printf '[Unit]\\nWants=dbus.service timers.target\\n' > etc/systemd/system/small.target
echo 0123456789abcdef0123456789abcdef > etc/machine-id
ip link set lo up
exec env -i container=test PATH=/usr/bin:/bin:/usr/sbin:/sbin chroot . "$SYSTEMD" --unit=small.target --log-target=null
"""
_NAMESPACES = ("--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--net", "--kill-child")


def booted() -> Iterator[list[str]]:
    """The beginning of a command that runs beside a real systemd."""
    if os.geteuid() != 0:
        pytest.skip(f"{servers.NOT_HERE} root, and nothing else may boot a systemd in namespaces")
    systemd = servers.program("systemd", "usr/lib/systemd/systemd")
    unshare, enter = servers.program("unshare"), servers.program("nsenter")
    servers.program("dbus-daemon")
    seen = dict.fromkeys((str(ROOT), sys.prefix, sys.base_prefix))
    with tempfile.TemporaryDirectory(prefix="systemd-") as folder:
        process = subprocess.Popen(
            [unshare, *_NAMESPACES, "bash", "-c", _BOOT, "boot", folder, *seen],
            env={**os.environ, "SYSTEMD": str(systemd)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield _until_booted(process, str(enter))
        finally:
            process.kill()
            process.communicate()


def _until_booted(process: subprocess.Popen[str], enter: str) -> list[str]:
    end = time.monotonic() + 90
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.3)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children:
            command = [
                enter,
                "--target",
                children[0],
                "--mount",
                "--pid",
                "--net",
                "--uts",
                "--ipc",
                "--root",
                "--wd",
            ]
            asked = [*command, "/bin/systemctl", "is-active", "dbus.service", "timers.target"]
            if subprocess.run(asked, capture_output=True, text=True).stdout.split() == ["active", "active"]:
                return command
    process.kill()
    words = process.communicate()[1].strip().splitlines() or ["it did not come up"]
    pytest.skip(f"{servers.NOT_HERE} what a systemd in namespaces needs: {words[-1]}")


def python(inside: list[str], module: str) -> subprocess.CompletedProcess[str]:
    """Runs a module of the tests beside that systemd."""
    environ = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONPATH": str(ROOT), "HOME": "/root"}
    return subprocess.run(
        [*inside, "/usr/bin/env", "-i", f"--chdir={ROOT}", *(f"{name}={value}" for name, value in environ.items()),
         sys.executable, "-m", module],
        capture_output=True, text=True,
    )  # fmt: skip
