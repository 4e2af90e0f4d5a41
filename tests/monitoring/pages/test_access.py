"""Who gets to see a page, and what is said to those who may not or look for what is not there."""

import pytest
from django.test import Client

from monitoring.models import Cluster

PAGES = [
    "/c/east/",
    "/c/east/fleet.json",
    "/c/east/monitoring/",
    "/c/east/monitoring/nodes.csv",
    "/c/east/containers/",
    "/c/east/containers/containers.json",
    "/c/east/nodes/node-07/",
    "/c/east/nodes/node-07/?tab=distances",
    "/c/east/nodes/node-07/?tab=containers",
    "/c/east/nodes/node-07/?tab=history",
    "/c/east/nodes/node-07/?tab=kubelet",
    "/c/east/nodes/node-07/?tab=events",
    "/c/east/nodes/node-07/?tab=document&form=yaml",
    "/c/east/nodes/node-07/drawing.json",
    "/c/east/nodes/node-07/history.json?range=10m",
    "/c/east/nodes/node-07/document.json",
    "/c/east/nodes/solo/",
    "/c/east/nodes/silent/",
    "/c/east/nodes/silent/?tab=containers",
    "/c/east/failures/",
    "/c/east/failures/starting/",
    "/c/east/failures/failures.csv",
    "/c/east/cleanups/",
    "/c/east/planner/",
    "/clusters/",
    "/search/?q=node",
]


@pytest.mark.parametrize("path", PAGES)
def test_it_shows_every_page_to_every_role(
    path: str, east: Cluster, as_viewer: Client, as_operator: Client, as_administrator: Client
) -> None:
    for client in (as_viewer, as_operator, as_administrator):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_it_asks_nobody_in_particular_to_sign_in_first(path: str, east: Cluster, client: Client) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/?next=/")


@pytest.mark.parametrize("path", PAGES)
def test_it_tells_a_stranger_which_role_is_missing(path: str, east: Cluster, as_stranger: Client) -> None:
    answer = as_stranger.get(path)
    assert answer.status_code == 403
    assert "viewer" in answer.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/c/west/",
        "/c/west/monitoring/",
        "/c/west/nodes/node-07/",
        "/c/east/nodes/node-99/",
        "/c/east/nodes/node-99/drawing.json",
        "/c/east/nodes/node-99/history.json",
        "/c/east/nodes/node-07/document.xml",
        "/c/east/monitoring/nodes.xlsx",
        "/c/east/containers/containers.pdf",
    ],
)
def test_it_says_that_there_is_nothing(path: str, east: Cluster, as_viewer: Client) -> None:
    answer = as_viewer.get(path)
    assert answer.status_code == 404
    assert "There is nothing at this address." in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("/c/east/nodes/node-99/", "There is no node node-99 in this cluster."),
        ("/c/west/", "There is no cluster west."),
    ],
)
def test_it_says_what_is_not_there(path: str, missing: str, east: Cluster, as_viewer: Client) -> None:
    assert missing in as_viewer.get(path).content.decode()


def test_it_does_not_tell_a_stranger_which_clusters_there_are(east: Cluster, as_stranger: Client) -> None:
    assert as_stranger.get("/c/west/").status_code == 403


def test_it_starts_at_the_first_cluster_that_has_nodes(east: Cluster, as_viewer: Client) -> None:
    Cluster.objects.create(slug="aaa", name="Aaa")
    assert as_viewer.get("/")["Location"] == "/c/east/"


def test_it_says_how_to_begin_without_any_cluster(as_viewer: Client, as_administrator: Client) -> None:
    assert as_viewer.get("/")["Location"] == "/clusters/"
    page = as_viewer.get("/clusters/").content.decode()
    assert "No cluster yet" in page
    assert "Ask an administrator to add one." in page
    assert "disabled" in page
    assert "/admin/monitoring/cluster/add/" in as_administrator.get("/clusters/").content.decode()
