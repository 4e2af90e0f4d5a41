"""What the emulated node is made of, without starting it: half-made things, missing programs, a wire that is taken."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goprograms import LackingError, announce
from tests.node import busybox, cache, debian, machine, needs
from tests.node.disk import Disk
from tests.node.lacking import OPTIONAL, lacks
from tests.servers import ROOT

pytestmark = pytest.mark.short

# In a network of its own, so that a node that runs on this machine is not in the way.
TAKEN = """
import os, signal, subprocess, sys, time
from tests.node.network import DEVICE, HOST, Network, NetworkError

def devices():
    return subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout

held, hold = os.pipe()
holder = os.fork()
if holder == 0:
    with Network():
        os.write(hold, b"1")
        time.sleep(60)
# Not the device's name: while the holder still starts programs for its addresses, these have it, too.
os.read(held, 1)
assert DEVICE in devices()
try:
    with Network():
        print("a second one was made")
except NetworkError as error:
    print(error)
os.kill(holder, signal.SIGKILL)
os.waitpid(holder, 0)
print("left behind" if DEVICE in devices() else "gone")
routes = subprocess.run(["ip", "route", "show", "table", "all"], capture_output=True, text=True).stdout
print("with a route" if HOST.rpartition(".")[0] in routes else "with everything")
"""


def test_a_second_node_is_refused_and_a_killed_run_leaves_nothing() -> None:
    programs = shutil.which("unshare") and shutil.which("ip")
    probe = ["unshare", "--net", "test", "-w", "/dev/net/tun"]
    if not programs or subprocess.run(probe, capture_output=True).returncode:
        lacks("a network of its own for the emulated node: it takes root, unshare, ip and /dev/net/tun")
    command = ["unshare", "--net", sys.executable, "-c", TAKEN]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert told.stderr == ""
    refused, *left = told.stdout.splitlines()
    assert "another run has an emulated node on this machine" in refused
    assert left == ["gone", "with everything"]


@pytest.fixture
def empty_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which nothing is installed and nothing was made before."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_missing_emulator_is_named_with_its_package(empty_path: Path) -> None:
    disk = Disk(empty_path / "disk.raw", empty_path / "vmlinuz", empty_path / "initrd", empty_path / "key")
    with pytest.raises(LackingError, match=r"apt-get install qemu-system-x86"):
        machine.booted(disk, announce)


def test_a_missing_mmdebstrap_is_named_with_its_package(empty_path: Path) -> None:
    with pytest.raises(LackingError, match=r"apt-get install mmdebstrap"):
        debian.tree("trixie", "minbase", ["systemd"], announce)


def test_a_busybox_that_needs_a_library_is_not_taken(empty_path: Path) -> None:
    program = empty_path / "busybox"
    program.write_bytes(b"\x7fELF... /lib64/ld-linux-x86-64.so.2 ...")
    program.chmod(0o755)
    with pytest.raises(LackingError, match=r"apt-get install busybox-static"):
        busybox.program()


def test_what_is_half_made_is_made_again(empty_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError, match=r"the power went"):
        cache.kept("things", "one", fail)
    folder = cache.kept("things", "one", lambda folder: (folder / "whole").touch())
    assert [file.name for file in folder.iterdir()] == ["whole"]
    assert cache.kept("things", "one", fail) == folder


def test_a_key_changes_with_each_part_and_where_it_ends() -> None:
    assert (
        len({cache.key_of("ab", "c"), cache.key_of("a", "bc"), cache.key_of("abc"), cache.key_of("abd")}) == 4
    )


@pytest.mark.parametrize(
    ("said", "end"), [(None, pytest.fail.Exception), ("optional", pytest.skip.Exception)]
)
def test_what_a_machine_lacks_fails_unless_it_was_said_that_it_may(
    said: str | None, end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OPTIONAL, raising=False)
    if said is not None:
        monkeypatch.setenv(OPTIONAL, said)
    with pytest.raises(end, match=r"This machine lacks a kubelet"):
        lacks("a kubelet")


def test_everything_that_a_machine_lacks_is_named_before_minutes_are_spent(
    empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = empty_path / "meminfo"
    little.write_text("MemTotal:        2097152 kB\nMemAvailable:    1048576 kB\n")
    monkeypatch.setattr(needs, "_MEMINFO", little)
    with pytest.raises(LackingError) as lacking:
        needs.check()
    said = str(lacking.value)
    assert "apt-get install e2fsprogs iproute2 mmdebstrap openssh-client qemu-system-x86 qemu-utils" in said
    assert "4 GiB of memory that nobody uses (it has 1.0)" in said
