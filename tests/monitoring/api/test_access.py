"""Who may read and change: the cast by session and by token of each scope, forged requests, rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern
from pytest_django.fixtures import Settings

from monitoring.api import urls
from monitoring.models import Cluster
from policies import audit
from tests.monitoring.api.conftest import ROOT
from tests.monitoring.api.inventory import Lab

Bearer = Callable[[User, str], dict[str, Any]]


def paths(lab: Lab) -> list[str]:
    """Every address of the API, filled in."""
    named = {
        "<slug:cluster>": "lab",
        "<str:node>": "worker-1",
        "<int:endpoint>": str(lab.endpoint.pk),
        "<str:topology>": str(lab.node.topology_id),
    }
    found = []
    for each in urls.patterns(audit.record_request):
        assert isinstance(each, URLPattern)
        route = str(each.pattern)
        for placeholder, value in named.items():
            route = route.replace(placeholder, value)
        found.append(ROOT + route)
    return found


def statuses(client: Client, lab: Lab, **headers: str) -> set[int]:
    return {read(client, path, headers) for path in paths(lab)}


def read(client: Client, path: str, headers: dict[str, str]) -> int:
    """Questions that are too long for an address are asked by POST; they change nothing."""
    if path.endswith(("/plan/", "/lint/")):
        body = {"manifest": {"kind": "Pod", "spec": {"containers": [{"name": "web"}]}}}
        return client.post(path, body, content_type="application/json", headers=headers).status_code
    query = {f"{ROOT}search/": "?q=worker"}
    return client.get(path + query.get(path, ""), headers=headers).status_code


def test_a_stranger_and_nobody_read_nothing(client: Client, as_stranger: Client, lab: Lab) -> None:
    assert statuses(as_stranger, lab) == {403}
    assert statuses(client, lab) == {401}


def test_everybody_with_a_role_reads_everything(
    as_viewer: Client, as_operator: Client, as_administrator: Client, lab: Lab
) -> None:
    for client in (as_viewer, as_operator, as_administrator):
        assert statuses(client, lab) == {200}


def test_a_refusal_is_a_problem(client: Client, as_stranger: Client, lab: Lab) -> None:
    for each, status in ((client, 401), (as_stranger, 403)):
        response = each.get(f"{ROOT}nodes/")
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["status"] == status
        assert response.json()["detail"]
    assert client.get(f"{ROOT}nodes/").headers["WWW-Authenticate"].startswith("Bearer")


CHANGES = [
    ("post", "clusters/", {"slug": "new", "name": "New"}),
    ("patch", "clusters/lab/", {"name": "Changed"}),
    ("delete", "clusters/lab/", None),
    ("post", "clusters/lab/endpoints/", {"url": "http://10.0.0.9:9105"}),
    ("patch", "endpoints/{endpoint}/", {"name": "changed"}),
    ("delete", "endpoints/{endpoint}/", None),
]


def change(client: Client, lab: Lab, method: str, path: str, body: Any, **headers: str) -> int:
    path = ROOT + path.format(endpoint=lab.endpoint.pk)
    sent = getattr(client, method)(
        path, data=body, content_type="application/json", headers={"If-Match": "*", **headers}
    )
    return int(sent.status_code)


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_only_administrators_change_anything(
    as_viewer: Client,
    as_operator: Client,
    as_administrator: Client,
    as_stranger: Client,
    client: Client,
    lab: Lab,
    method: str,
    path: str,
    body: Any,
) -> None:
    assert change(client, lab, method, path, body) == 401
    for each in (as_stranger, as_viewer, as_operator):
        assert change(each, lab, method, path, body) == 403
    assert change(as_administrator, lab, method, path, body) in (200, 201, 204)


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_token_needs_the_role_and_the_scope(
    client: Client,
    operator: User,
    administrator: User,
    bearer: Bearer,
    lab: Lab,
    method: str,
    path: str,
    body: Any,
) -> None:
    for user, scope in ((operator, "admin"), (administrator, "read"), (administrator, "operate")):
        assert change(client, lab, method, path, body, **bearer(user, scope)) == 403
    assert change(client, lab, method, path, body, **bearer(administrator, "admin")) in (200, 201, 204)


def test_a_token_of_any_scope_reads(client: Client, viewer: User, bearer: Bearer, lab: Lab) -> None:
    for scope in ("read", "operate", "admin"):
        assert statuses(client, lab, **bearer(viewer, scope)) == {200}


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer", "Bearer a b", "Bearer \xff", "Basic eDp5", "x" * 8000]
)
def test_a_wrong_token_is_refused(client: Client, lab: Lab, header: str) -> None:
    assert client.get(f"{ROOT}nodes/", headers={"Authorization": header}).status_code == 401


def test_a_wrong_token_is_not_helped_by_a_session(as_viewer: Client, lab: Lab) -> None:
    assert as_viewer.get(f"{ROOT}nodes/", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_change_by_session_needs_the_forgery_token(administrator: User, lab: Lab) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(administrator, backend="django.contrib.auth.backends.ModelBackend")
    response = strict.post(f"{ROOT}clusters/", {"slug": "x", "name": "X"}, content_type="application/json")
    assert response.status_code == 403
    assert "CSRF" in response.json()["detail"]
    assert not Cluster.objects.filter(slug="x").exists()


def test_a_change_by_token_needs_no_forgery_token(administrator: User, bearer: Bearer, lab: Lab) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert change(strict, lab, *CHANGES[0], **bearer(administrator, "admin")) == 201


def test_too_many_requests_are_told_to_wait(as_viewer: Client, lab: Lab, settings: Settings) -> None:
    rates = {"DEFAULT_THROTTLE_RATES": {"caller": "2/min"}}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, **rates}
    seen = [as_viewer.get(f"{ROOT}nodes/") for _ in range(3)]
    assert [each.status_code for each in seen] == [200, 200, 429]
    assert int(seen[2].headers["Retry-After"]) > 0


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "TRACE", "FETCH"])
def test_other_methods_are_refused(as_administrator: Client, lab: Lab, method: str) -> None:
    response = as_administrator.generic(method, f"{ROOT}nodes/")
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_a_head_is_a_get_without_a_body(as_viewer: Client, lab: Lab) -> None:
    head, full = as_viewer.head(f"{ROOT}nodes/?q=worker"), as_viewer.get(f"{ROOT}nodes/?q=worker")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["ETag"] == full.headers["ETag"]
