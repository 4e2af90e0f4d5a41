"""Lists of nodes, containers and events, and the search over all of them."""

from collections.abc import Collection
from typing import Literal

import msgspec
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery

from monitoring.models import Cluster, Container, Node, NodeEvent, Pod
from monitoring.selectors import searching

SHORTEST = 2
"""Characters that a search needs."""
MOST_NAMESPACES = 500


class Hit(msgspec.Struct, frozen=True):
    """One find of a search. `node` and `container_id` are set as far as the kind has them."""

    kind: Literal["cluster", "node", "container"]
    label: str
    cluster: str
    """slug"""
    cluster_name: str
    node: str = ""
    container_id: str = ""


def nodes(cluster: Cluster | None = None) -> QuerySet[Node]:
    """Current nodes of a cluster, or of all."""
    found = (
        Node.objects.filter(gone_at=None).select_related("cluster", "topology").defer("topology__document")
    )
    return found if cluster is None else found.filter(cluster=cluster)


def node_ids(wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The ids of current nodes that an exporter told of, by their cluster's slug and their name, in one query; perhaps of others too."""
    slugs, names = zip(*wanted, strict=True) if wanted else ((), ())
    found = Node.objects.filter(gone_at=None, topology__isnull=False, cluster__slug__in=slugs, name__in=names)
    rows = found.values_list("cluster__slug", "name", "pk")
    return {(slug, name): number for slug, name, number in rows}


def containers(cluster: Cluster | None = None) -> QuerySet[Container]:
    """Containers that run now on current nodes of a cluster, or of all, each with the owner of its pod (`owner_kind`, `owner_name`): "" =
    nobody owns it, null = the API server does not tell of its pod."""
    found = Container.objects.filter(node__gone_at=None).select_related("node", "node__cluster")
    owned = {name: Subquery(pod_of_container().values(name)[:1]) for name in ("owner_kind", "owner_name")}
    found = found.annotate(**owned)
    return found if cluster is None else found.filter(node__cluster=cluster)


def pod_of_container() -> QuerySet[Pod]:
    """The pod of a container, within a query of containers: that of its node, whatever has an equal uid elsewhere."""
    here = Pod.objects.filter(cluster=OuterRef("node__cluster"), node_name=OuterRef("node__name"))
    return here.filter(kubelet_uid=OuterRef("pod_uid"))


def namespaces(cluster: Cluster) -> list[str]:
    """Namespaces that containers of a cluster are in now, at most `MOST_NAMESPACES`.

    From each namespace the next one is looked up in the index of namespaces: a cluster has some hundred of them and
    some hundred thousand containers.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NAMESPACES, {"cluster": cluster.pk, "most": MOST_NAMESPACES})
        return [name for (name,) in cursor.fetchall()]


_NAMESPACES = """
WITH RECURSIVE found (namespace) AS (
    SELECT * FROM (
        SELECT container.namespace FROM monitoring_container container
        JOIN monitoring_node node ON node.id = container.node_id
        WHERE node.cluster_id = %(cluster)s AND node.gone_at IS NULL AND container.namespace > ''
        ORDER BY container.namespace LIMIT 1
    ) AS first
    UNION ALL SELECT (
        SELECT container.namespace FROM monitoring_container container
        JOIN monitoring_node node ON node.id = container.node_id
        WHERE node.cluster_id = %(cluster)s AND node.gone_at IS NULL AND container.namespace > found.namespace
        ORDER BY container.namespace LIMIT 1
    ) FROM found WHERE found.namespace IS NOT NULL
)
SELECT namespace FROM found WHERE namespace IS NOT NULL LIMIT %(most)s
"""


def events(node: Node) -> QuerySet[NodeEvent]:
    """What numaweb saw happen to a node, newest first."""
    return NodeEvent.objects.filter(node=node)


def search(text: str, limit: int = 20) -> list[Hit]:
    """Clusters, nodes and containers whose names hold the text, at most `limit` of each kind."""
    text = text.strip()
    if len(text) < SHORTEST or "\0" in text:
        return []
    return [*_clusters(text, limit), *_nodes(text, limit), *_containers(text, limit)]


def _clusters(text: str, limit: int) -> list[Hit]:
    found = Cluster.objects.filter(Q(slug__icontains=text) | Q(name__icontains=text))[:limit]
    return [Hit("cluster", each.name, each.slug, each.name) for each in found]


def _nodes(text: str, limit: int) -> list[Hit]:
    found = nodes().filter(Q(name__icontains=text) | Q(uid__istartswith=text)).order_by("name")[:limit]
    return [Hit("node", each.name, each.cluster.slug, each.cluster.name, each.name) for each in found]


def _containers(text: str, limit: int) -> list[Hit]:
    named = Q(name__icontains=text) | Q(pod__icontains=text) | Q(namespace__iexact=text)
    indexed = Q(names__icontains=text)  # true wherever the line above is, and looked up in one index
    wanted = containers().alias(names=searching.CONTAINER_NAMES)
    wanted = wanted.filter(indexed & named | searching.container_id(text))
    # Whichever are met first: to put them in order, all finds would have to be read.
    found = sorted(wanted.order_by()[:limit], key=str)
    return [
        Hit(
            "container",
            str(each),
            each.node.cluster.slug,
            each.node.cluster.name,
            each.node.name,
            each.container_id,
        )
        for each in found
    ]
