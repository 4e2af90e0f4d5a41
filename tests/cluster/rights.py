"""The rights that numaweb's processes get in a cluster: the files that are installed, and what they come to.

rules = rights.rules("watcher")
rights.grant(plane, "watcher", without=rules[0])    # everything but one rule
"""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.cluster.api import Api, Object
from tests.cluster.controlplane import ControlPlane
from tests.servers import ROOT

FOLDER = ROOT / "charts" / "volcano-config-service" / "files" / "rbac"
ROLES = tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))
NAMESPACE = "numaweb"
KINDS = ("ClusterRole", "Role")


class Right(NamedTuple):
    """One verb on one kind of thing, as the API server decides about it."""

    verb: str
    group: str
    resource: str
    subresource: str = ""

    def __str__(self) -> str:
        name = "/".join(part for part in (self.resource, self.subresource) if part)
        return f"{self.verb} {name}" + (f".{self.group}" if self.group else "")


class Rule(NamedTuple):
    """One rule of a role's file, by its place there."""

    role: str
    place: int
    rights: frozenset[Right]

    def __str__(self) -> str:
        """For the names of tests: `watcher: nodes/configz`."""
        return f"{self.role}: {'+'.join(sorted({str(right).partition(' ')[2] for right in self.rights}))}"


def objects(role: str) -> list[Object]:
    return list(yaml.safe_load_all(file(role).read_text(encoding="utf-8")))


def file(role: str) -> Path:
    return FOLDER / f"{role}.yaml"


def rules(role: str) -> list[Rule]:
    """The rules of a role's file, in their order there."""
    return [Rule(role, place, rights_of(rule)) for place, rule in enumerate(_raw_rules(role))]


def every_rule() -> list[Rule]:
    return [rule for role in ROLES for rule in rules(role)]


def rights_of(rule: dict[str, Any]) -> frozenset[Right]:
    """What a rule in the form of RBAC comes to."""
    return frozenset(
        Right(verb, group, *name.split("/"))
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [])
        for name in rule.get("resources", [])
    )


def grant(plane: ControlPlane, role: str, *, without: Rule | None = None) -> Api:
    """Installs a role's file, one rule left out if asked, and returns the API server as its account sees it.

    The rules of an earlier call are replaced, since a file is applied as a whole.
    """
    return Api(kubeconfig(plane, role, without=without))


def kubeconfig(plane: ControlPlane, role: str, *, without: Rule | None = None) -> str:
    """As `grant`; the account's kubeconfig, for programs."""
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for thing in objects(role):
        if without is not None and thing["kind"] in KINDS:
            left = _raw_rules(role)
            thing["rules"] = [rule for rule in thing["rules"] if left.index(rule) != without.place]
        plane.api.apply(thing)
    return plane.service_account(NAMESPACE, account(role))


def account(role: str) -> str:
    [name] = [each["metadata"]["name"] for each in objects(role) if each["kind"] == "ServiceAccount"]
    return str(name)


def held(api: Api, namespace: str = NAMESPACE) -> frozenset[Right]:
    """Everything that the API server says an account may do in a namespace, wherever it got it."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)["status"]
    assert not status["incomplete"]
    return frozenset().union(*(rights_of(rule) for rule in status["resourceRules"]))


def _raw_rules(role: str) -> list[dict[str, Any]]:
    return [rule for each in objects(role) if each["kind"] in KINDS for rule in each["rules"]]
