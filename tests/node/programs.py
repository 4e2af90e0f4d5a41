"""The programs of the emulated node, each built once: the kubelet of the control plane's version, and containerd.

containerd and its shim run beside Debian's own runc. All are linked against this machine's C library, which must not be newer than the node's.
"""

from pathlib import Path
from typing import NamedTuple

from tests import goprograms
from tests.cluster.programs import KUBERNETES, LINKED
from tests.goprograms import Program, Say

CONTAINERD = Path(__file__).parent / "programs" / "containerd"
# Storage on btrfs and device mapper wants C libraries that nothing here uses.
_RUNTIME = ("-tags", "no_btrfs,no_devmapper", "-ldflags", "-s -w")


class NodePrograms(NamedTuple):
    """The binaries that lie in the node's /usr/local/bin."""

    kubelet: Path
    containerd: Path
    shim: Path
    ctr: Path


def _containerd(name: str) -> Program:
    return Program(
        name, CONTAINERD, "containerd", f"github.com/containerd/containerd/v2/cmd/{name}", _RUNTIME
    )


NODE = (
    Program("kubelet", KUBERNETES, "Kubernetes", "k8s.io/kubernetes/cmd/kubelet", LINKED),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
)


def node(say: Say = goprograms.announce) -> NodePrograms:
    """All of them, built if they are not there yet (minutes); errors as in goprograms.built."""
    return NodePrograms(*(goprograms.built(program, say) for program in NODE))
