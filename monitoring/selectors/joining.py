"""Names and uids that exporters could not tell, from the watcher's table of pods: three queries at most for any number of nodes,
none where nothing is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from monitoring.models import Node
from monitoring.models import Pod as Row
from numacore import joining
from numacore.facts import Facts
from numacore.joining import Name, Pod

COLUMNS = ("cluster_id", "node_name", "kubelet_uid", "namespace", "name", "running")


def joined(told: Mapping[int, Facts]) -> dict[int, Facts]:
    """The facts of nodes by their number, with what the API server knows of their containers."""
    wanted = {number: joining.wanted(facts.containers) for number, facts in told.items()}
    missing = {number: each for number, each in wanted.items() if each}
    if not missing:
        return dict(told)
    nodes = Node.objects.filter(pk__in=list(missing)).values_list("pk", "cluster_id", "name")
    places = {number: (cluster, name) for number, cluster, name in nodes}
    uids = frozenset[str]().union(*(each.uids for each in missing.values()))
    names = frozenset[Name]().union(*(each.names for each in missing.values()))
    pods = _pods(set(places.values()), uids, names)
    return {
        number: joining.joined(facts, pods.get(places[number], ())) if number in places else facts
        for number, facts in told.items()
    }


def joined_of(node: Node, facts: Facts) -> Facts:
    """The facts of one node, likewise."""
    wanted = joining.wanted(facts.containers)
    if not wanted:
        return facts
    place = (node.cluster_id, node.name)
    return joining.joined(facts, _pods({place}, wanted.uids, wanted.names).get(place, ()))


Place = tuple[int, str]
"""Cluster and name of a node."""


def _pods(
    places: Collection[Place], uids: Collection[str], names: Collection[Name]
) -> dict[Place, list[Pod]]:
    """The pods that are meant, by where they run; those of another node with an equal uid or name are nobody's here."""
    here = Row.objects.filter(cluster__in={cluster for cluster, _ in places})
    rows = list(here.filter(kubelet_uid__in=uids).values_list(*COLUMNS)) if uids else []
    if names:
        named = here.filter(node_name__in={node for _, node in places}, name__in={pod for _, pod in names})
        rows += named.values_list(*COLUMNS)
    found: dict[Place, list[Pod]] = {}
    for cluster, node, uid, namespace, name, running in rows:
        if (cluster, node) in places and (uid in uids or (namespace, name) in names):
            found.setdefault((cluster, node), []).append(Pod(uid, namespace, name, running))
    return found
