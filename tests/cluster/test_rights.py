"""Each of numaweb's accounts may do what its file says, and nothing besides."""

import pytest

from tests.cluster import rights, things
from tests.cluster.api import Api, ApiError
from tests.cluster.controlplane import ControlPlane, until
from tests.cluster.rights import Right, Rule

READ = ("get", "list", "watch")
# Written down here once more: a right that somebody adds to a file has to be wanted twice.
WATCHER = {
    *(Right(verb, "", name) for verb in READ for name in ("nodes", "pods", "events")),
    *(Right(verb, "apps", "daemonsets") for verb in READ),
    *(Right(verb, "nodeinfo.volcano.sh", "numatopologies") for verb in READ),
    *(Right(verb, "topology.node.k8s.io", "noderesourcetopologies") for verb in READ),
    Right("get", "", "nodes", "configz"),
}
CLEANER = {Right("get", "", "pods"), Right("delete", "", "pods")}
APPLIER = {Right("get", "", "nodes", "configz")}
ROLLOUTS = {
    *(Right(verb, "", "nodes") for verb in ("get", "list", "patch")),
    Right("list", "", "pods"),
    Right("create", "", "pods", "eviction"),
    Right("list", "policy", "poddisruptionbudgets"),
    *(Right(verb, "batch", "jobs") for verb in ("get", "create", "delete")),
}
WANTED = {
    "applier": APPLIER,
    "rollouts": ROLLOUTS,
    "watcher": WATCHER,
    "cleaner": CLEANER,
    "web": set[Right](),
}
WRITES = ("create", "update", "patch", "delete", "deletecollection")
NEVER = [
    *(Right(verb, "", "secrets") for verb in (*READ, *WRITES)),
    *(Right(verb, "", "configmaps") for verb in (*READ, *WRITES)),
    *(Right(verb, "", "nodes", "proxy") for verb in ("get", "create")),
    *(Right(verb, "", "nodes") for verb in WRITES),
    *(Right(verb, "", "pods") for verb in ("create", "update", "patch", "deletecollection")),
    *(Right(verb, "", "pods", "exec") for verb in ("get", "create")),
    Right("get", "", "pods", "log"),
    Right("create", "", "pods", "eviction"),
    *(Right(verb, "", "serviceaccounts") for verb in READ),
    Right("create", "", "serviceaccounts", "token"),
    *(
        Right(verb, "rbac.authorization.k8s.io", "clusterroles")
        for verb in (*READ, *WRITES, "bind", "escalate")
    ),
    *(Right(verb, "coordination.k8s.io", "leases") for verb in (*READ, *WRITES)),
    Right("impersonate", "", "users"),
    Right("*", "*", "*"),
]


@pytest.fixture(scope="module")
def nobody(shared_plane: ControlPlane) -> frozenset[Right]:
    """What an account without any role may do: ask about itself."""
    metadata = {"name": "nobody", "namespace": "default"}
    shared_plane.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    return rights.held(Api(shared_plane.service_account("default", "nobody")))


def test_every_role_is_known_here() -> None:
    assert set(rights.ROLES) == set(WANTED)


@pytest.mark.parametrize("role", rights.ROLES)
def test_an_account_holds_what_is_wanted_and_nothing_else(
    role: str, plane: ControlPlane, nobody: frozenset[Right]
) -> None:
    api = rights.grant(plane, role)
    until(lambda: rights.held(api) >= WANTED[role], f"the rights of the {role}")
    assert rights.held(api) - nobody == WANTED[role]


@pytest.mark.parametrize("role", rights.ROLES)
def test_an_account_may_not_do_what_nobody_needs(role: str, plane: ControlPlane) -> None:
    api = rights.grant(plane, role)
    allowed = [str(right) for right in NEVER if right not in WANTED[role] and may(api, right)]
    assert allowed == []


@pytest.mark.parametrize("role", rights.ROLES)
def test_no_file_has_a_wildcard(role: str) -> None:
    assert "*" not in rights.file(role).read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", rights.every_rule(), ids=str)
def test_a_rule_that_is_left_out_takes_exactly_its_rights(rule: Rule, plane: ControlPlane) -> None:
    """The watcher's own tests go through the same rules and say what a page then lacks."""
    api = rights.grant(plane, rule.role, without=rule)
    kept = frozenset(WANTED[rule.role]) - rule.rights
    until(lambda: not any(may(api, right) for right in rule.rights), f"an end of {rule}")
    assert [str(right) for right in kept if not may(api, right)] == []


@pytest.fixture
def refused_pod(plane: ControlPlane, namespace: str) -> str:
    """The path of a pod that its node refused."""
    plane.api.create(things.node("a"))
    pod = things.pod("refused", namespace, node="a", refused="TopologyAffinityError")
    plane.api.create(pod)
    return plane.api.path(pod)


def test_the_watcher_reads_pods_and_cannot_delete_one(plane: ControlPlane, refused_pod: str) -> None:
    watcher = rights.grant(plane, "watcher")
    until(lambda: [each["metadata"]["name"] for each in watcher.items("/api/v1/pods")] == ["refused"], "it")
    with pytest.raises(ApiError, match=r'403.*cannot delete resource "pods"'):
        watcher.delete(refused_pod)


def test_the_cleaner_deletes_a_pod_and_cannot_list_any(plane: ControlPlane, refused_pod: str) -> None:
    cleaner = rights.grant(plane, "cleaner")
    until(lambda: cleaner.get(refused_pod), "the pod")
    with pytest.raises(ApiError, match=r'403.*cannot list resource "pods"'):
        cleaner.items("/api/v1/pods")
    cleaner.delete(refused_pod)
    assert not plane.api.exists(refused_pod)


def test_the_web_is_refused_everything(plane: ControlPlane) -> None:
    web = rights.grant(plane, "web")
    with pytest.raises(ApiError, match=r'403.*cannot list resource "nodes"'):
        web.items("/api/v1/nodes")


def test_who_rolls_out_starts_appliers_in_its_own_namespace_alone(
    plane: ControlPlane, namespace: str
) -> None:
    api = rights.grant(plane, "rollouts")
    until(lambda: rights.held(api) >= ROLLOUTS, "the rights")
    assert not api.may("create", "jobs", "batch", namespace=namespace)


def may(api: Api, right: Right) -> bool:
    """In our own namespace, where an account may more than elsewhere."""
    return api.may(right.verb, right.resource, right.group, right.subresource, namespace=rights.NAMESPACE)
