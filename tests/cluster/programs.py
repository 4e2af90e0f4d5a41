"""The programs of a control plane, each built once: etcd, Kubernetes' own, and kwok, which plays the nodes."""

from pathlib import Path
from typing import NamedTuple

from tests import goprograms
from tests.goprograms import Program, Say

VERSION = "v1.37.2"
ETCD = Path(__file__).parent / "programs" / "etcd"
KUBERNETES = Path(__file__).parent / "programs" / "kubernetes"
"""Holds kubectl too, for a person who looks around: `go tool kubectl`. Tests speak to the API server themselves."""
_MAJOR, _MINOR = VERSION.removeprefix("v").split(".")[:2]
_TOLD = {"gitVersion": VERSION, "gitMajor": _MAJOR, "gitMinor": _MINOR}
"""Without these the API server calls itself v0.0.0, and clients that compare versions misbehave."""
# Nothing here changes how a package is compiled, so packages that the oracle compiled before are not compiled again.
LINKED = (
    "-ldflags",
    " ".join(
        ["-s", "-w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in _TOLD.items())]
    ),
)


class Programs(NamedTuple):
    """The binaries of a control plane."""

    etcd: Path
    apiserver: Path
    controllers: Path
    scheduler: Path
    kwok: Path


def _kubernetes(name: str, package: str) -> Program:
    return Program(name, KUBERNETES, "Kubernetes", package, LINKED)


CONTROL_PLANE = (
    Program("etcd", ETCD, "etcd", "go.etcd.io/etcd/server/v3", ("-ldflags", "-s -w")),
    _kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    _kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    _kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    _kubernetes("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)


def control_plane(say: Say = goprograms.announce) -> Programs:
    """All of them, built if they are not there yet (minutes); errors as in goprograms.built."""
    return Programs(*(goprograms.built(program, say) for program in CONTROL_PLANE))
