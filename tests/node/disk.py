"""The node's disk, its kernel, and the key with which one enters: made once of a Debian tree, our programs, our images and the files in guest/.

Who the node is in a cluster (its certificates and kubeconfig) is not on it: that comes with each control plane.
"""

import gzip
import lzma
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.goprograms import LackingError, Say
from tests.node import busybox, cache, debian, images, network
from tests.node.programs import NodePrograms

HERE = Path(__file__).parent
GUEST = HERE / "guest"
"""Files of the node as they lie there; @NODE@ and the like are filled in."""
INIT = HERE / "guest-init"
SIZE = "3G"
LABEL = "numaweb-node"

_SUITE = "trixie"
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "udev", "kmod", "iproute2", "iptables", "ca-certificates"),
    *("containernetworking-plugins", "runc", "linux-image-cloud-amd64", "openssh-server", "procps"),
    *("numactl", "util-linux", "tar"),
)
_ON = ("systemd-networkd", "ssh", "containerd", "images")
_OFF = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("e2scrub_reap.service", "fstrim.timer", "getty@tty1.service", "serial-getty@ttyS0.service"),
    *("systemd-networkd-wait-online.service", "ldconfig.service", "systemd-hwdb-update.service"),
    *("systemd-journal-catalog-update.service", "systemd-pcrlock-make-policy.service"),
)
"""What would only keep the emulated processors busy."""
_GENERATORS = "usr/lib/systemd/system-generators"
"""Programs that systemd starts, one and all, whenever it reads its units again; this machine needs none of them."""
_PATIENT = (
    *("systemd-journald", "systemd-modules-load", "systemd-sysctl", "systemd-udevd", "systemd-networkd"),
    *("systemd-tmpfiles-setup", "systemd-tmpfiles-setup-dev", "systemd-remount-fs", "systemd-logind"),
)
"""Services with a patience of their own, which ends too early for emulated processors on a busy machine."""
_PATIENCE = "[Service]\nTimeoutStartSec=15min\nWatchdogSec=0\n"
_FILLED = {
    "@NODE@": network.NODE,
    "@HOST@": network.HOST,
    "@PODS@": network.PODS,
    "@PREFIX_LENGTH@": str(network.PREFIX_LENGTH),
}


class Disk(NamedTuple):
    """Files from which a machine starts; the disk is only read."""

    image: Path
    kernel: Path
    initrd: Path
    key: Path
    """The private key of root."""
    booted: Path | None = None
    """A disk on top of it, with a machine saved in it that was booted already."""


def disk(programs: NodePrograms, say: Say) -> Disk:
    """Made if it is not there yet.

    Raises:
        LackingError: a program or a Debian mirror is missing.
    """
    for program, package in (("mke2fs", "e2fsprogs"), ("ssh-keygen", "openssh-client")):
        if shutil.which(program) is None:
            raise LackingError(f"{program} (apt-get install {package})")
    archives = images.waits(), images.python(say)
    tree = debian.tree(_SUITE, "minbase", _PACKAGES, say)
    made_of = [str(path) for path in (tree, *programs, *archives)]
    own = [*GUEST.rglob("*"), INIT, Path(__file__)]
    key = cache.key_of(*made_of, *_FILLED.values(), cache.contents(HERE, own))

    def make(folder: Path) -> None:
        say("Making the node's disk, once")
        with tempfile.TemporaryDirectory(prefix="numaweb-tree-") as name:
            root = Path(name)
            _call("tar", "--extract", "--preserve-permissions", f"--file={tree}", f"--directory={root}")
            _kernel(root, folder)
            _keys(root, folder)
            _furnish(root, programs, archives)
            _call(
                *("mke2fs", "-q", "-t", "ext4", "-O", "^metadata_csum", "-L", LABEL, "-d", str(root)),
                *("-E", "lazy_itable_init=1,lazy_journal_init=1", str(folder / "disk.raw"), SIZE),
            )

    folder = cache.kept("disks", key, make)
    return Disk(folder / "disk.raw", folder / "vmlinuz", folder / "initrd", folder / "key")


def _kernel(root: Path, folder: Path) -> None:
    """The kernel out of the tree, and an initial file system of 1 MB that knows this one disk."""
    [kernel] = root.glob("boot/vmlinuz-*")
    shutil.copy(kernel, folder / "vmlinuz")
    [driver] = root.glob("usr/lib/modules/*/kernel/drivers/block/virtio_blk.ko.xz")
    with tempfile.TemporaryDirectory() as name:
        initial = Path(name)
        for each in ("bin", "dev", "proc", "new"):
            (initial / each).mkdir()
        shutil.copy(busybox.program(), initial / "bin" / "busybox")
        (initial / "virtio_blk.ko").write_bytes(lzma.decompress(driver.read_bytes()))
        shutil.copy(INIT, initial / "init")
        (initial / "init").chmod(0o755)
        files = "\n".join(str(path.relative_to(initial)) for path in sorted(initial.rglob("*")))
        packed = subprocess.run(
            [str(busybox.program()), "cpio", "-o", "-H", "newc"],
            cwd=initial,
            input=files.encode(),
            capture_output=True,
            check=True,
        ).stdout
    (folder / "initrd").write_bytes(gzip.compress(packed, compresslevel=1))
    for unwanted in (*root.glob("boot/*"), *root.glob("vmlinuz*"), *root.glob("initrd*")):
        unwanted.unlink()


def _keys(root: Path, folder: Path) -> None:
    """One for us to enter as root, and a fresh one of the machine itself."""
    for file in root.glob("etc/ssh/ssh_host_*"):
        file.unlink()
    for file in (folder / "key", root / "etc/ssh/ssh_host_ed25519_key"):
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "numaweb-node", "-f", str(file))
    ours = root / "root/.ssh"
    ours.mkdir(mode=0o700, exist_ok=True)
    (ours / "authorized_keys").write_bytes((folder / "key.pub").read_bytes())
    (root / "root").chmod(0o700)


def _furnish(root: Path, programs: NodePrograms, archives: Sequence[Path]) -> None:
    """Our files, programs and images, and which units run."""
    for file in GUEST.rglob("*"):
        if file.is_file():
            text = file.read_text()
            for mark, value in _FILLED.items():
                text = text.replace(mark, value)
            place = root / file.relative_to(GUEST)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    for name in _PATIENT:
        folder = root / f"etc/systemd/system/{name}.service.d"
        folder.mkdir(exist_ok=True)
        (folder / "patience.conf").write_text(_PATIENCE)
    masks = root / "etc/systemd/system-generators"
    masks.mkdir()
    for generator in (root / _GENERATORS).iterdir():
        (masks / generator.name).symlink_to("/dev/null")
    for program in programs:
        shutil.copy(program, root / "usr/local/bin")
    shelf = root / "opt/images"
    shelf.mkdir()
    for archive in archives:
        shutil.copy(archive, shelf)
    (root / "etc/kubernetes/manifests").mkdir(parents=True)
    # No name server: the node reaches nobody who has a name.
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").write_text("")
    _call("chroot", str(root), "systemctl", "--quiet", "enable", *_ON)
    _call("chroot", str(root), "systemctl", "--quiet", "mask", *_OFF)


def _call(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
