"""Answers of the REST API over 5,000 nodes in PostgreSQL, ours and its peers in turns: `python -m benchmarks.answering`
within an installation's environment; prints its figures as JSON.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.utils import timezone  # noqa: E402
from rest_framework import generics, serializers  # noqa: E402
from rest_framework.pagination import PageNumberPagination  # noqa: E402
from rest_framework.test import APIRequestFactory, force_authenticate  # noqa: E402

from benchmarks import inside  # noqa: E402
from benchmarks.measure import ROUNDS  # noqa: E402
from monitoring import hot, selectors  # noqa: E402
from monitoring.api import cluster, fleet, lists  # noqa: E402
from monitoring.models import Cluster, Node, Topology  # noqa: E402

NODES = 5000
PAGES, WHOLE, ANEW = 20, 20, 1
"""Requests of one round."""

Answer = Callable[[], bytes]


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    class Meta:
        model = Cluster
        fields = ("slug", "name", "kind", "enabled")


class TopologySerializer(serializers.ModelSerializer[Topology]):
    class Meta:
        model = Topology
        fields = ("hash", "cpus", "numa_nodes", "sockets", "threads_per_core")


class FlatSerializer(serializers.ModelSerializer[Node]):
    class Meta:
        model = Node
        exclude = ("attributes",)


class NestedSerializer(FlatSerializer):
    cluster = ClusterSerializer()
    topology = TopologySerializer()


class Hundred(PageNumberPagination):
    page_size = 100


class Nested(generics.ListAPIView[Node]):
    """What one writes first with the REST framework: a page of nodes with their cluster and topology in them."""

    serializer_class = NestedSerializer
    pagination_class = Hundred
    filter_backends = ()

    def get_queryset(self) -> Any:
        return selectors.nodes()


class Flat(generics.ListAPIView[Node]):
    serializer_class = FlatSerializer
    pagination_class = None
    filter_backends = ()

    def get_queryset(self) -> Any:
        return selectors.nodes()


def fill() -> None:
    """Nodes with every figure known, heard just now."""
    now = timezone.now()
    cells = inside.Cells(inside.SLUG, NODES)
    machine = Topology.objects.create(hash="0" * 32, document=b"{}", cpus=384, numa_nodes=8, sockets=2)
    amounts = {
        field.name: 8
        for field in Node._meta.concrete_fields
        if field.get_internal_type() in ("PositiveIntegerField", "BigIntegerField", "FloatField")
    }
    policies = {"topology_policy": "best-effort", "cpu_policy": "static", "memory_policy": "Static"}
    Node.objects.bulk_create(
        [
            Node(
                **{**amounts, "slot": number * inside.NUMA},
                **policies,
                cluster=cells.cluster,
                topology=machine,
                name=f"node-{number:05}",
                uid=f"uid-{number:05}",
                first_seen=now,
                last_seen=now,
            )
            for number in range(NODES)
        ],
        batch_size=1000,
    )
    hot.store().put_cells(cells.cluster.pk, 0, cells.block())


def asked(view: Any, user: User, query: str = "", **headers: str) -> Answer:
    """A request that is answered by the view itself: sign-in and middleware cost all of them the same."""
    made = APIRequestFactory().get(f"/{query}", headers=headers)

    def answer() -> bytes:
        force_authenticate(made, user)
        response = view(made)
        if hasattr(response, "render"):
            response.render()
        assert response.status_code in (200, 304), response.content
        return bytes(response.content)

    return answer


def cost(work: Callable[[], object], times: int) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def reader() -> User:
    user = User.objects.create_user("reader")
    user.groups.add(Group.objects.get(name="viewer"))
    user.get_all_permissions()
    return user


def main() -> None:
    fill()
    user, of = reader(), Cluster.objects.get(slug=inside.SLUG)

    def whole(**headers: str) -> Answer:
        return asked(lambda request: cluster.Fleet.as_view()(request, cluster=inside.SLUG), user, **headers)

    rows = msgspec.json.decode(whole()())["results"]
    assert len(rows) == NODES
    works: dict[str, tuple[Callable[[], object], int]] = {
        "page": (asked(lists.AllNodes.as_view(), user), PAGES),
        "nested": (asked(Nested.as_view(), user), 2),
        "whole": (whole(), WHOLE),
        "same": (whole(If_None_Match=fleet.of(of).tag), WHOLE),
        "encode": (lambda: msgspec.json.encode(rows), WHOLE),
        "anew": (lambda: fleet.make(of), ANEW),
        "flat": (asked(Flat.as_view(), user), ANEW),
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, (work, times) in works.items():
            found[name].append(cost(work, times))
    found["bytes"] = [float(len(whole()())), float(len(asked(lists.AllNodes.as_view(), user)()))]
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
