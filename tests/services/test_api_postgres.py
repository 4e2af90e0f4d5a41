"""The REST API over PostgreSQL: what SQLite takes and PostgreSQL refuses must not become an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from monitoring.api import fleet
from monitoring.hot import stores
from monitoring.models import Container
from numaweb import roles
from tests import cast
from tests.monitoring.api import inventory
from tests.monitoring.api.inventory import Lab

ROOT = "/api/v1/"
READ = [
    *(
        "",
        "clusters/",
        "nodes/",
        "containers/",
        "endpoints/",
        "settings/",
        "search/?q=WEB",
        "clusters/lab/overview/",
    ),
    *("clusters/lab/fleet/", "clusters/lab/nodes/worker-1/", "clusters/lab/nodes/worker-2/"),
    *(
        "clusters/lab/nodes/worker-1/events/?code=rebooted",
        "clusters/lab/nodes/worker-1/history/?metric=pinned",
    ),
    *(
        "nodes/?crossing=true&problems=true&contradictions=false",
        "containers/?crossing=true&cross=memory&cross=cpu",
    ),
    *(
        "containers/?crossing=unknown&kubernetes=true&kind=unknown",
        "nodes/?cpus_min=1e30&memory_allocation_max=1e40",
    ),
    *(
        "containers/?memory_min=9e30&cost_min=1e-40",
        "nodes/?seen_after=3397-12-26T17:12:42-20:12",
        "nodes/?q=%25_%5C",
    ),
    *(
        "nodes/?name=%F0%9F%A6%8A&count=true",
        "containers/?sort=-memory&count=true",
        "endpoints/?sort=-last_ok",
    ),
]
REFUSED = [
    *("nodes/?q=%00", "nodes/?name=%00", "search/?q=a%00b", "nodes/?cursor=AAAA", "nodes/?busy_min=nan"),
    *("nodes/?seen_after=0001-01-01T00:00:00%2B23:00", "nodes/?topology=%00"),
]
MISSING = [
    "nodes/worker-1%00/",
    "clusters/lab/nodes/%00/",
    "topologies/%00/",
    "endpoints/99999999999999999999/",
]


@pytest.fixture
def administrator(on_postgres: None) -> Iterator[Client]:
    stores.store.cache_clear()
    fleet.keeper.cache_clear()
    cache.clear()
    roles.ensure_groups()
    group = Group.objects.get(name=roles.ADMINISTRATOR)
    yield cast.signed_in(cast.person("ada", group))
    stores.store.cache_clear()


def test_the_api_reads_refuses_and_changes(administrator: Client) -> None:
    lab = Lab(timezone.now())
    for paths, status in ((READ, 200), (REFUSED, 400), (MISSING, 404)):
        found = {path: administrator.get(ROOT + path).status_code for path in paths}
        assert set(found.values()) == {status}, found
    assert pages(administrator, lab, "cost") == [1.0, 1.275, None, None]
    assert pages(administrator, lab, "-cost") == [1.275, 1.0, None, None]
    changed(administrator, lab)


def pages(client: Client, lab: Lab, sort: str) -> list[Any]:
    """Costs page by page, one row each; unknown ones last."""
    if Container.objects.count() == 2:
        inventory.container(lab.node, 3, timezone.now(), cost=1.0)
        inventory.container(lab.node, 4, timezone.now())
    path, found = f"{ROOT}containers/?sort={sort}&page_size=1", []
    while path:
        page = client.get(path).json()
        found += [row["cost"] for row in page["results"]]
        path = page["next"]
    return found


def changed(client: Client, lab: Lab) -> None:
    """A row is locked, seen as it is, and changed; two of one name are a conflict and leave the transaction usable."""
    path, json = f"{ROOT}endpoints/{lab.endpoint.pk}/", "application/json"
    tag = {"If-Match": client.get(path).headers["ETag"]}
    assert client.patch(path, {"name": "first"}, content_type=json, headers=tag).status_code == 200
    assert client.patch(path, {"name": "other"}, content_type=json, headers=tag).status_code == 412
    other = {"url": lab.failing.url}
    assert client.patch(path, other, content_type=json, headers={"If-Match": "*"}).status_code == 409
    assert client.delete(path, headers={"If-Match": "*"}).status_code == 204
    assert client.delete(f"{ROOT}clusters/lab/", headers={"If-Match": "*"}).status_code == 204
    assert client.get(f"{ROOT}nodes/").json()["results"] == []
