"""A node that the API server has and no exporter ever told of: why there is none, and how to get one there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from monitoring.figures import causes, sentences
from monitoring.models import Connection, Endpoint, KubernetesNode

FILE = "docs/kubernetes/numa-exporter.yaml"
COMMAND = f"kubectl apply -f {FILE}"
TOLERATED = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    )
)
"""Taints that every DaemonSet's pods tolerate (kubernetes 1.37, controller/daemon/util `AddOrUpdateDaemonPodTolerations`)."""
REFUSING = ("NoSchedule", "NoExecute")


class Step(NamedTuple):
    """One thing that is known of why there is no exporter, and what to do about it."""

    text: str
    remedy: str = ""
    command: str = ""


def brief(name: str) -> str:
    """One sentence and the remedy, for addresses that only nodes with an exporter have."""
    return _(
        "No numa-exporter ever told of the node %(name)s, so nothing is known of its NUMA nodes. Let the DaemonSet of "
        "numa-exporter run there (%(command)s); the node's page names what may be in the way."
    ) % {"name": name, "command": COMMAND}


def steps(
    connection: Connection | None,
    lacking: Iterable[str],
    told: KubernetesNode | None,
    nodes: int,
    endpoint: Endpoint | None,
) -> list[Step]:
    """What is known of the way to an exporter, the most likely fault first. `nodes`: how many the API server has."""
    found = []
    if endpoint is not None:
        found.append(_silent(endpoint))
    found += _daemonsets(connection, list(lacking), nodes)
    for taint in told.taints if told else ():
        if taint.get("effect") in REFUSING and taint.get("key") not in TOLERATED:
            found.append(_tainted(taint))
    if told is not None and told.ready is not True:
        found.append(
            Step(
                _("Kubernetes does not call this node ready."),
                _(
                    "A pod is started there only once its kubelet reports; the conditions below say what it lacks."
                ),
            )
        )
    return found


def _silent(endpoint: Endpoint) -> Step:
    cause = endpoint.conflict or endpoint.error
    if not endpoint.enabled:
        return Step(
            _("An exporter's address is known for it (%(url)s), and is switched off.")
            % {"url": endpoint.url},
            _("An administrator can switch it on in the administration, under endpoints."),
        )
    if not cause:
        return Step(
            _("An exporter runs there (%(url)s) and was not asked yet.") % {"url": endpoint.url},
            _("Its first answer appears here within seconds if a worker collects."),
        )
    return Step(
        _("An exporter's address is known for it (%(url)s), and it does not answer: %(cause)s")
        % {"url": endpoint.url, "cause": causes.said(cause)},
        sentences.remedy(endpoint.remedy),
    )


def _daemonsets(connection: Connection | None, lacking: list[str], nodes: int) -> list[Step]:
    if lacking:
        return [
            Step(
                _("Whether a DaemonSet runs numa-exporter is unknown: numaweb may not read DaemonSets."),
                _(
                    "Grant its ServiceAccount these rights: %(rights)s. The role is in watcher.yaml of the chart."
                )
                % {"rights": ", ".join(lacking)},
            )
        ]
    sets: list[Mapping[str, Any]] = connection.daemonsets if connection else []
    if not sets:
        return [
            Step(
                _("No DaemonSet of this cluster runs numa-exporter (label app: numa-exporter)."),
                _("Put it on every node:"),
                COMMAND,
            )
        ]
    return [_numbers(each, nodes) for each in sets]


def _numbers(told: Mapping[str, Any], nodes: int) -> Step:
    name = f"{told['namespace']}/{told['name']}"
    text = _(
        "The DaemonSet %(name)s wants numa-exporter on %(desired)d of %(nodes)d nodes; it is ready on %(ready)d."
    ) % {
        "name": name,
        "desired": told["desired"],
        "nodes": nodes,
        "ready": told["ready"],
    }
    if told["desired"] < nodes:
        remedy = _("It leaves nodes out: look at its nodeSelector, its affinity and its tolerations.")
        command = f"kubectl -n {told['namespace']} get daemonset {told['name']} -o yaml"
    else:
        remedy = _("It wants one on every node: look at why its pod on this one does not run.")
        command = f"kubectl -n {told['namespace']} get pods -l app=numa-exporter -o wide"
    return Step(text, remedy, command)


def _tainted(taint: Mapping[str, Any]) -> Step:
    shown = f"{taint.get('key')}={taint['value']}" if taint.get("value") else str(taint.get("key"))
    return Step(
        _("This node has the taint %(taint)s: pods that do not tolerate it stay away.")
        % {"taint": f"{shown}:{taint.get('effect')}"},
        _(
            "Let the DaemonSet tolerate it; the file of the documentation tolerates every taint (operator: Exists)."
        ),
    )
