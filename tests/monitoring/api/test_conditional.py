"""ETags: an answer that the caller has is not sent again, and an age alone is no change."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.models import Node
from tests.monitoring.api import inventory
from tests.monitoring.api.conftest import LAB, ROOT
from tests.monitoring.api.inventory import Lab

PATHS = [
    *("nodes/", "containers/", "endpoints/", "fleet/", "nodes/worker-1/", "nodes/worker-1/topology/"),
    *("nodes/worker-1/containers/", "nodes/worker-1/kubelet/", "nodes/worker-1/document/"),
    *("nodes/worker-1/events/", "nodes/worker-2/", "nodes/worker-1/distances/"),
]


@pytest.mark.parametrize("path", PATHS)
def test_what_the_caller_has_is_not_sent_again(as_viewer: Client, lab: Lab, path: str) -> None:
    first = as_viewer.get(LAB + path)
    tag = first.headers["ETag"]
    again = as_viewer.get(LAB + path, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert "no-cache" in again.headers["Cache-Control"]
    assert as_viewer.get(LAB + path, headers={"If-None-Match": 'W/"other"'}).status_code == 200
    assert as_viewer.get(LAB + path, headers={"If-None-Match": "rubbish"}).status_code == 200


@pytest.mark.parametrize("path", ["nodes/", "containers/", "nodes/worker-1/", "nodes/worker-1/containers/"])
def test_a_new_answer_of_the_exporter_is_a_change(as_viewer: Client, lab: Lab, path: str) -> None:
    tag = as_viewer.get(LAB + path).headers["ETag"]
    inventory.hear(lab.node, lab.endpoint, timezone.now())
    Node.objects.filter(pk=lab.node.pk).update(busy=0.5)
    lab.web.cost = 2.0
    lab.web.save()
    assert as_viewer.get(LAB + path, headers={"If-None-Match": tag}).status_code == 200


def test_a_filter_is_another_answer(as_viewer: Client, lab: Lab) -> None:
    tag = as_viewer.get(f"{LAB}nodes/").headers["ETag"]
    other = as_viewer.get(f"{LAB}nodes/?q=worker-1", headers={"If-None-Match": tag})
    assert other.status_code == 200


def test_copies_are_for_the_caller_alone(as_viewer: Client, lab: Lab) -> None:
    assert as_viewer.get(f"{ROOT}nodes/").headers["Cache-Control"] == "private, no-cache"


def test_the_fleet_is_made_once_a_round(
    as_viewer: Client, lab: Lab, django_assert_max_num_queries: object
) -> None:
    first = as_viewer.get(f"{LAB}fleet/")
    Node.objects.filter(pk=lab.node.pk).update(busy=0.5)
    assert as_viewer.get(f"{LAB}fleet/").content == first.content
