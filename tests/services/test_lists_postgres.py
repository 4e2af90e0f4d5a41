"""Lists on PostgreSQL: orders that have an index are walked and not sorted, and texts are looked up, however many rows there are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from monitoring import filters, selectors, services, tables
from monitoring.models import Cluster, Container, Pod
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
    return explained(
        str(keys.query), "seqscan", "bitmapscan", "sort", "incremental_sort", "hashjoin", "mergejoin"
    )


def explained(query: str, *without: str) -> str:
    """The plan of a query of a server that does without some ways of reading if it can."""
    with connection.cursor() as cursor:
        for way in without:
            cursor.execute(f"SET enable_{way} = off")
        cursor.execute("EXPLAIN " + query)
        found = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("RESET ALL")
    return found


def asked(question: Callable[[], object], words: str) -> str:
    """The first query of a question that has these words in it."""
    with CaptureQueriesContext(connection) as caught:
        question()
    return next(each["sql"] for each in caught if words in each["sql"])


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


@pytest.mark.usefixtures("on_postgres")
def test_the_worst_containers_of_an_overview_are_walked_to() -> None:
    lab = Lab(timezone.now())
    query = asked(lambda: selectors.overview(lab.cluster, timezone.now()), '"cost" > ')
    found = explained(query, "seqscan", "bitmapscan", "sort", "incremental_sort", "hashjoin", "mergejoin")
    assert "container_by_cost" in found, found
    assert "Sort Key" not in found, found


@pytest.mark.usefixtures("on_postgres")
def test_texts_and_beginnings_of_ids_are_looked_up_in_indexes() -> None:
    lab = Lab(timezone.now())
    row = inventory.container(lab.node, 7, timezone.now(), pod="Ada-1", pod_uid="ab12")
    pod = Pod.objects.create(cluster=lab.cluster, uid="u-1", namespace="ml", name="x-1", owner_name="trainer")
    call_command("bootstrap", verbosity=0)
    # Whole tables: beside a join of so few rows no index is worth anything.
    by_text = {"container_by_text": "ADA", "container_by_beginning": "ContainerD://0007", "pod_uid": "AB12"}
    for index, text in by_text.items():
        found = filters.ContainerFilter({"q": text}, Container.objects.order_by()).qs
        plan = explained(asked(found.count, "COUNT"), "seqscan")
        assert f"Bitmap Index Scan on {index}" in plan.replace("monitoring_container_", ""), plan
        assert list(found) == [row]
        assert list(filters.ContainerFilter({"q": text}, selectors.containers(lab.cluster)).qs) == [row]
        assert [hit.container_id for hit in selectors.search(text)] == [row.container_id]
    pods = filters.PodFilter({"q": "TRAIN"}, Pod.objects.order_by()).qs
    assert "Bitmap Index Scan on pod_by_text" in explained(asked(pods.count, "COUNT"), "seqscan")
    assert list(pods) == [pod]


@pytest.mark.usefixtures("on_postgres")
def test_who_may_not_add_the_extension_is_told_and_finds_texts_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab = Lab(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain")
        cursor.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
        cursor.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain")
        cursor.execute("GRANT CREATE ON SCHEMA public TO plain")
        cursor.execute("ALTER TABLE monitoring_container OWNER TO plain")
        cursor.execute("ALTER TABLE monitoring_pod OWNER TO plain")
        cursor.execute("SET ROLE plain")
    try:
        call_command("bootstrap")
        told = capsys.readouterr().err
        assert "permission denied to create extension" in told
        assert "CREATE EXTENSION pg_trgm" in told
        assert [hit.container_id for hit in selectors.search("web-0")] == [lab_web(lab)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")
            cursor.execute("REASSIGN OWNED BY plain TO CURRENT_USER")
            cursor.execute("DROP OWNED BY plain")
            cursor.execute("DROP ROLE plain")
    assert services.index_texts() == ""  # once it may


def lab_web(lab: Lab) -> str:
    return Container.objects.get(node=lab.node, pod="web-0").container_id


@pytest.mark.usefixtures("on_postgres")
@pytest.mark.parametrize("style", ["ISO, MDY", "SQL, DMY"])
def test_moments_and_documents_of_a_file_are_those_of_the_rows(style: str) -> None:
    lab = Lab(timezone.now())
    row = inventory.container(lab.node, 7, timezone.now())
    inventory.container(lab.node, 8, timezone.now())
    columns = (
        "container_id",
        "memory_nodes",
        "updated",
        "cost",
        "crossing",
        "owner_name",
        "node__attributes",
    )
    whole = datetime(2026, 2, 1, 8, 30, tzinfo=UTC)
    for updated in (whole, whole.replace(microsecond=610_000)):
        found = Container.objects.filter(pk=row.pk)
        found.update(updated=updated, memory_nodes={"1": 2**40, "0": None, "z": 1.5})
        ordered = selectors.containers(lab.cluster).order_by("-pk")
        expected = list(ordered.values_list(*columns))
        with connection.cursor() as cursor:
            cursor.execute(f"SET DateStyle = '{style}'")
            rows = [tuple(each) for each in selectors.values_in_order(ordered, columns, 2)]
            cursor.execute("RESET DateStyle")
        assert rows == expected
        assert str(updated) in {str(each[2]) for each in rows}
