"""A control plane that several tests use one after another looks to each of them as if it had just been started."""

from collections.abc import Iterator

from tests.cluster.controlplane import ControlPlane, until
from tests.cluster.rights import NAMESPACE

KEPT_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease", NAMESPACE}
"""Those that every cluster has, and that of our accounts; others come from tests and go as a whole."""
MAKERS = (
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/daemonsets",
    "/apis/apps/v1/namespaces/default/replicasets",
    "/apis/batch/v1/namespaces/default/jobs",
)
"""What would make new pods while the old ones are deleted."""
LEFT = (
    "/api/v1/nodes",
    "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies",
    "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
    "/api/v1/namespaces/default/events",
)


def make_namespace(plane: ControlPlane, name: str) -> None:
    """Returns when its default account is there, without which the API server refuses pods."""
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    until(lambda: plane.api.exists(account), f"an account in {name}")


def clean(plane: ControlPlane) -> None:
    """Returns when all is gone that tests made, roles aside; custom resources that a test took away are served again.

    Namespaces of tests are on their way out: nothing can be made there any more, no pod is left in them, and nobody waits for the rest.
    """
    plane.define()
    for name in _strange_namespaces(plane):
        plane.api.delete(f"/api/v1/namespaces/{name}")
    for path in MAKERS:
        plane.api.delete(path, propagationPolicy="Background")
    until(lambda: _is_clean(plane), "a clean control plane")


def _strange_namespaces(plane: ControlPlane) -> Iterator[str]:
    for each in plane.api.items("/api/v1/namespaces"):
        if each["metadata"]["name"] not in KEPT_NAMESPACES and each["status"]["phase"] == "Active":
            yield each["metadata"]["name"]


def _is_clean(plane: ControlPlane) -> bool:
    """Deletes what is there, and what was still under way the last time; true when there was nothing."""
    inhabited = {each["metadata"]["namespace"] for each in plane.api.items("/api/v1/pods")}
    there = [f"/api/v1/namespaces/{name}/pods" for name in inhabited]
    there += [path for path in LEFT if plane.api.items(path)]
    for path in there:
        plane.api.delete(path, gracePeriodSeconds=0)
    return not there
