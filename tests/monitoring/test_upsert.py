"""Rows that are written many at once come back as they went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from monitoring.models import Cluster, Pod
from monitoring.services import upsert

pytestmark = pytest.mark.django_db
CREATED = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=8)))


@pytest.fixture
def cluster() -> int:
    return Cluster.objects.create(slug="lab", name="Lab").pk


def pod(uid: str, **columns: Any) -> dict[str, Any]:
    texts = dict.fromkeys(
        (
            *("kubelet_uid", "namespace", "name", "node_name", "owner_kind", "owner_name", "scheduler"),
            *("qos", "phase", "reason", "message"),
        ),
        "",
    )
    unknown = dict.fromkeys(
        (
            "priority",
            "created",
            "cpu_request",
            "cpu_limit",
            "memory_request",
            "memory_limit",
            "resources",
            "running",
        )
    )
    return {"uid": uid, **texts, **unknown, "resources": {}, "running": {}, **columns}


def read(**which: Any) -> list[dict[str, Any]]:
    return [{**row} for row in Pod.objects.filter(**which).order_by("uid").values()]


def test_values_of_every_kind_and_unknown_ones_come_back_as_they_went(cluster: int) -> None:
    told = pod(
        "a",
        name="\"quoted\" 'twice' \\ %s {}",
        message="line\nline\ttab 容器 🦊",
        priority=-10,
        created=CREATED,
        cpu_request=0.1,
        memory_limit=2**63 - 1,
        resources={"containers": [{"name": "容器", "resources": {"limits": {"cpu": "1"}}, "ready": True}]},
    )
    upsert.pods(cluster, [told, pod("b")])
    first, second = read(cluster=cluster)
    assert told.items() <= first.items()
    assert first["created"].astimezone(UTC) == CREATED
    assert pod("b").items() <= second.items()


def test_a_row_that_is_there_changes_and_one_of_another_cluster_does_not(cluster: int) -> None:
    other = Cluster.objects.create(slug="other", name="Other").pk
    for each in (cluster, other):
        upsert.pods(each, [pod("a", phase="Pending", cpu_limit=2.0)])
    before = read()
    upsert.pods(cluster, [pod("a", phase="Running"), pod("b")])
    assert [row["phase"] for row in read(cluster=cluster)] == ["Running", ""]
    assert read(cluster=cluster)[0]["cpu_limit"] is None
    assert read(cluster=other) == [row for row in before if row["cluster_id"] == other]
    assert read(cluster=cluster)[0]["id"] == before[0]["id"]


def test_no_rows_are_no_query(cluster: int, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        upsert.pods(cluster, [])
