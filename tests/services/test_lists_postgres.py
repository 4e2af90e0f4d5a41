"""Lists of containers on PostgreSQL: the orders that have an index are walked and not sorted, however many rows there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from monitoring import selectors, tables
from monitoring.models import Cluster, Container
from tests.monitoring.api import inventory
from tests.monitoring.api.inventory import Lab

WALKED = {
    "-cost": "container_by_cost",
    "name": "container_by_pod",
    "-name": "container_by_pod",
    "namespace": "container_by_namespace",
    "-namespace": "container_by_namespace",
}
"""By what the page of containers offers to sort by."""


def plan(cluster: Cluster, sort: str) -> str:
    """How the server finds the keys of a first page, if it sorts only where no index has the order."""
    table = tables.ContainerTable(tables.Rows(selectors.containers(cluster)), order_by=sort)
    keys = table.data.data.values("pk")[:10]
    with connection.cursor() as cursor:
        for way in ("seqscan", "bitmapscan", "sort", "incremental_sort", "hashjoin", "mergejoin"):
            cursor.execute(f"SET enable_{way} = off")
        cursor.execute("EXPLAIN " + str(keys.query))
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.usefixtures("on_postgres")
def test_an_index_has_the_orders_that_people_begin_with() -> None:
    lab = Lab(timezone.now())
    for sort, index in WALKED.items():
        found = plan(lab.cluster, sort)
        assert index in found, found
        assert "Sort Key" not in found, found
    assert "Sort Key" in plan(lab.cluster, "-locality")  # or the lines above could not fail


@pytest.mark.usefixtures("on_postgres")
def test_namespaces_are_those_of_the_clusters_current_nodes() -> None:
    lab, now = Lab(timezone.now()), timezone.now()
    other = Cluster.objects.create(slug="other", name="Other", kind="plain")
    away = inventory.node(other, "away", lab.node.topology, now)
    gone = inventory.node(lab.cluster, "gone", lab.node.topology, now)
    for node, namespace in (
        (lab.node, "zoo"),
        (lab.node, "ant"),
        (away, "bee"),
        (gone, "cat"),
        (lab.node, ""),
    ):
        row = inventory.container(node, Container.objects.count() + 50, now)
        Container.objects.filter(pk=row.pk).update(namespace=namespace)
    type(gone).objects.filter(pk=gone.pk).update(gone_at=now)
    found = selectors.namespaces(lab.cluster)
    assert found == sorted(found)
    assert {"zoo", "ant"} <= set(found)
    assert not {"bee", "cat", ""} & set(found)
