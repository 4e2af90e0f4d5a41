"""Pods that a real kubelet can run: the images are on the node, and pods are bound to it by name."""

from tests.cluster.api import Object
from tests.cluster.things import pod
from tests.node.images import WAITS
from tests.node.lab import NAME


def pinned(name: str, *, cpus: int, memory: str = "64Mi", namespace: str = "default") -> Object:
    """A Guaranteed pod with whole CPUs, so that it gets them for itself."""
    resources = {"cpu": str(cpus), "memory": memory}
    return waiting(name, namespace=namespace, resources={"requests": resources, "limits": resources})


def waiting(name: str, *, namespace: str = "default", resources: Object | None = None) -> Object:
    """A pod that does nothing; without `resources` it is BestEffort."""
    made = pod(name, namespace, node=NAME, restartPolicy="Never", enableServiceLinks=False)
    made["spec"]["terminationGracePeriodSeconds"] = 5
    made["spec"]["containers"] = [
        {"name": "main", "image": WAITS, "imagePullPolicy": "Never", "resources": resources or {}}
    ]
    return made
