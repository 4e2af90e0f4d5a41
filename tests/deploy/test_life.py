"""A release from its installation to its end, on a real API server whose pods kwok plays: from an earlier chart to this one, back, and away.

The story is told once (`life`); each test looks at one thing in it.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster import rights, things
from tests.cluster.api import Api, Object
from tests.cluster.controlplane import ControlPlane, until
from tests.cluster.rights import Right
from tests.cluster.test_rights import NEVER, WANTED
from tests.deploy.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.deploy.programs import VERSION

EARLIER = Path(__file__).parent / "fixtures" / "volcano-config-service-0.1.0.tgz"
"""Frozen as it was first; it is never made anew."""
ACCOUNTS = {
    "numaweb-web": set[Right](),
    "numaweb-watcher": WANTED["watcher"],
    "numaweb-worker": WANTED["rollouts"] | WANTED["cleaner"],
    "numaweb-applier": WANTED["applier"],
}
KINDS = (
    "/api/v1/namespaces/{}/secrets",
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/serviceaccounts",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
)
KEPT = {
    "persistentvolumeclaims data-numaweb-postgresql-0",
    "persistentvolumeclaims data-numaweb-redis-0",
    "secrets numaweb",
    "secrets numaweb-order-key",
    "secrets numaweb-postgresql",
    "secrets numaweb-redis",
}
"""As docs/en/helm.md lists it."""
CHANGING = {"global.rollouts.enabled": True, "global.cleanup.enabled": True, "worker.replicas": 3}


class Moment(NamedTuple):
    """What was there."""

    objects: frozenset[str]
    secrets: dict[str, dict[str, str]]
    unready: list[str]


class Life(NamedTuple):
    installed: Moment
    upgraded: Moment
    held: dict[str, frozenset[Right]]
    forbidden: dict[str, list[str]]
    back: Moment
    gone: Moment
    again: Moment
    tested: str


@pytest.fixture(scope="module")
def node(plane: ControlPlane) -> Iterator[None]:
    """A machine on which everything runs, and volumes for the databases."""
    machine = things.node("a", cpus=32, labels={"kubernetes.io/arch": "amd64"})
    plane.api.create(machine)
    for name in ("one", "two"):
        plane.api.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "20Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": f"/nowhere/{name}"},
                },
            }
        )
    yield
    plane.api.delete(plane.api.path(machine))


@pytest.fixture(scope="module")
def life(administrator: Helm, plane: ControlPlane, node: None) -> Life:
    helm = administrator
    helm.install(EARLIER, {})
    installed = moment(plane.api)
    helm.upgrade(CHART, CHANGING)
    upgraded = moment(plane.api)
    accounts = {name: Api(plane.service_account(NAMESPACE, name)) for name in ACCOUNTS}
    # The authorizer is a moment behind.
    until(
        lambda: all(held(api) >= ACCOUNTS[name] for name, api in accounts.items()), "the rights of accounts"
    )
    nobody = held(Api(plane.service_account("default", "default")))
    has = {name: held(api) - nobody for name, api in accounts.items()}
    forbidden = {
        name: [str(right) for right in NEVER if right not in ACCOUNTS[name] and may(api, right)]
        for name, api in accounts.items()
    }
    tested = helm.run("test", RELEASE, "--namespace", NAMESPACE)
    helm.run("rollback", RELEASE, "1", "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
    back = moment(plane.api)
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
    gone = moment(plane.api)
    helm.install(CHART, {})
    again = moment(plane.api)
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
    return Life(installed, upgraded, has, forbidden, back, gone, again, tested)


def moment(api: Api) -> Moment:
    found = [(kind.rpartition("/")[2], each) for kind in KINDS for each in api.items(kind.format(NAMESPACE))]
    ours = [(kind, each) for kind, each in found if is_ours(kind, each)]
    return Moment(
        frozenset(f"{kind} {each['metadata']['name']}" for kind, each in ours),
        {
            each["metadata"]["name"]: {
                key: base64.b64decode(value).decode() for key, value in each["data"].items()
            }
            for kind, each in ours
            if kind == "secrets"
        },
        [
            each["metadata"]["name"]
            for kind, each in ours
            if kind in ("deployments", "statefulsets", "daemonsets") and not is_ready(each)
        ],
    )


def is_ours(kind: str, thing: Object) -> bool:
    """Not what every namespace has, and not helm's own records."""
    name = thing["metadata"]["name"]
    if kind.startswith("clusterrole"):
        return bool(name.startswith("numa"))
    return name not in ("kube-root-ca.crt", "default") and not name.startswith("sh.helm.release")


def is_ready(thing: Object) -> bool:
    status = thing["status"]
    wanted = status.get("desiredNumberScheduled", thing["spec"].get("replicas"))
    return bool(status.get("numberReady", status.get("readyReplicas", 0)) == wanted)


def held(api: Api) -> frozenset[Right]:
    return rights.held(api, NAMESPACE)


def may(api: Api, right: Right) -> bool:
    return api.may(right.verb, right.resource, right.group, right.subresource, namespace=NAMESPACE)


def test_an_installation_becomes_ready(life: Life) -> None:
    assert life.installed.unready == []
    assert {"deployments numaweb-web", "daemonsets numa-exporter"} <= life.installed.objects
    assert life.installed.secrets["numaweb-first-password"]["username"] == "admin"


def test_generated_passwords_are_long_and_all_different(life: Life) -> None:
    secrets = life.installed.secrets
    made = {
        secrets["numaweb"]["secret_key"],
        secrets["numaweb-postgresql"]["password"],
        secrets["numaweb-redis"]["password"],
        secrets["numaweb-exporter-token"]["token"],
        secrets["numaweb-first-password"]["password"],
    }
    assert len(made) == 5
    assert min(map(len, made)) >= 20
    assert f":{secrets['numaweb-postgresql']['password']}@" in secrets["numaweb"]["database_url"]
    assert f"requirepass {secrets['numaweb-redis']['password']}\n" in secrets["numaweb-redis"]["redis.conf"]


def test_an_upgrade_keeps_every_password(life: Life) -> None:
    assert life.upgraded.unready == []
    assert {name: life.upgraded.secrets[name] for name in life.installed.secrets} == life.installed.secrets
    assert life.upgraded.secrets["numaweb-order-key"]["order_key"].startswith("-----BEGIN PRIVATE KEY-----")


def test_an_upgrade_leaves_no_job_of_the_installation_behind(life: Life) -> None:
    jobs = {each for each in life.upgraded.objects if each.startswith("jobs")}
    assert jobs == {"jobs numaweb-connect-2"}


def test_helm_test_is_passed(life: Life) -> None:
    assert "Succeeded" in life.tested


@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_holds_what_is_wanted_and_nothing_else(life: Life, account: str) -> None:
    assert life.held[account] == ACCOUNTS[account]


@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_may_not_do_what_nobody_needs(life: Life, account: str) -> None:
    assert life.forbidden[account] == []


def test_a_rollback_brings_the_first_release_back(life: Life) -> None:
    assert life.back.unready == []
    assert life.back.objects - life.installed.objects == {"secrets numaweb-order-key"}
    assert life.installed.objects - life.back.objects == set()
    assert {name: life.back.secrets[name] for name in life.installed.secrets} == life.installed.secrets


def test_what_stays_is_what_the_documents_list(life: Life) -> None:
    assert life.gone.objects == KEPT


def test_who_comes_back_finds_the_data_with_its_password(life: Life) -> None:
    assert life.again.unready == []
    for name in ("numaweb", "numaweb-postgresql", "numaweb-redis"):
        assert life.again.secrets[name] == life.installed.secrets[name]
    # The database has its administrator already: a first password would be a lie.
    assert "numaweb-first-password" not in life.again.secrets


def test_helm_is_the_version_that_is_pinned(helm: Helm) -> None:
    assert helm.run("version", "--template", "{{.Version}}") == VERSION
