"""Changes of clusters and endpoints: checked, against lost updates, and each in the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from monitoring.models import Cluster, Endpoint, Node
from policies.models import AuditEntry
from tests.cluster.certificates import Authority
from tests.monitoring.api.conftest import ROOT
from tests.monitoring.api.inventory import SECRET, Lab

JSON = "application/json"


def send(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    return getattr(client, method)(ROOT + path, data=body, content_type=JSON, headers=headers)


def last() -> AuditEntry:
    entry = AuditEntry.objects.order_by("-sequence").first()
    assert entry is not None
    return entry


def test_a_cluster_is_added(as_administrator: Client, db: None) -> None:
    response = send(as_administrator, "post", "clusters/", {"slug": "east", "name": "East"})
    assert response.status_code == 201
    assert response.headers["Location"] == f"{ROOT}clusters/east/"
    assert response.json()["kind"] == "kubernetes"
    assert as_administrator.get(response.headers["Location"]).json() == response.json()
    entry = last()
    assert (entry.action, entry.actor, entry.before) == ("add", "ada", None)
    assert entry.after == {"slug": "east", "name": "East", "kind": "kubernetes", "enabled": True}
    assert "monitoring.cluster" in entry.target


def test_a_cluster_is_changed_by_who_has_seen_it(as_administrator: Client, lab: Lab) -> None:
    tag = as_administrator.get(f"{ROOT}clusters/lab/").headers["ETag"]
    response = send(as_administrator, "patch", "clusters/lab/", {"name": "Laboratory"}, If_Match=tag)
    assert response.status_code == 200
    assert response.json()["name"] == "Laboratory"
    assert response.json()["nodes"] == 2
    assert response.headers["ETag"] != tag
    assert (last().before["name"], last().after["name"]) == ("Lab", "Laboratory")
    again = send(as_administrator, "patch", "clusters/lab/", {"name": "Other"}, If_Match=tag)
    assert again.status_code == 412
    assert "Get it again" in again.json()["detail"]
    assert Cluster.objects.get(slug="lab").name == "Laboratory"


@pytest.mark.parametrize(
    ("method", "path"), [("patch", "clusters/lab/"), ("delete", "clusters/lab/"), ("delete", "endpoints/{}/")]
)
def test_a_change_says_what_it_has_seen(as_administrator: Client, lab: Lab, method: str, path: str) -> None:
    path = path.format(lab.endpoint.pk)
    assert send(as_administrator, method, path, {}).status_code == 428
    assert send(as_administrator, method, path, {}, If_Match='"other"').status_code == 412
    assert send(as_administrator, method, path, {}, If_Match="rubbish").status_code == 412
    assert send(as_administrator, method, path, {}, If_Match='W/"other"').status_code == 412
    assert Cluster.objects.filter(slug="lab").exists()


def test_a_collectors_note_does_not_outdate_what_was_seen(as_administrator: Client, lab: Lab) -> None:
    path = f"endpoints/{lab.endpoint.pk}/"
    tag = as_administrator.get(ROOT + path).headers["ETag"]
    Endpoint.objects.filter(pk=lab.endpoint.pk).update(failures=3, state="failing")
    assert send(as_administrator, "patch", path, {"enabled": False}, If_Match=tag).status_code == 200
    assert Endpoint.objects.get(pk=lab.endpoint.pk).failures == 3


def test_a_cluster_is_removed_with_all_that_is_in_it(as_administrator: Client, lab: Lab) -> None:
    assert send(as_administrator, "delete", "clusters/lab/", If_Match="*").status_code == 204
    assert not Node.objects.exists()
    assert not Endpoint.objects.exists()
    assert (last().action, last().after) == ("remove", None)
    assert last().before["slug"] == "lab"


def test_two_things_of_one_name_are_a_conflict(as_administrator: Client, lab: Lab) -> None:
    assert send(as_administrator, "post", "clusters/", {"slug": "lab", "name": "x"}).status_code == 409
    same = {"url": lab.endpoint.url}
    response = send(as_administrator, "post", "clusters/lab/endpoints/", same)
    assert response.status_code == 409
    assert "this address already" in response.json()["detail"]
    path = f"endpoints/{lab.failing.pk}/"
    assert send(as_administrator, "patch", path, same, If_Match="*").status_code == 409
    assert AuditEntry.objects.filter(action__in=("add", "change")).count() == 0


def test_an_endpoint_is_added_and_its_token_never_shown(as_administrator: Client, lab: Lab) -> None:
    body = {"url": "https://node-3.example.org:9105/", "name": "third", "token": "an-other-secret"}
    response = send(as_administrator, "post", "clusters/lab/endpoints/", body)
    assert response.status_code == 201
    assert response.json()["url"] == "https://node-3.example.org:9105"
    assert response.json()["state"] == "new"
    assert response.json()["has_token"] is True
    assert "an-other-secret" not in response.content.decode()
    assert Endpoint.objects.get(pk=response.json()["id"]).token == "an-other-secret"
    assert last().after["token"] == "(hidden)"


def test_a_changed_token_is_noted_without_being_told(as_administrator: Client, lab: Lab) -> None:
    path = f"endpoints/{lab.endpoint.pk}/"
    response = send(as_administrator, "patch", path, {"token": "fresh-token"}, If_Match="*")
    assert response.status_code == 200
    assert response.json()["state"] == "new"
    entry = last()
    assert entry.detail == "new token"
    assert (entry.before["token"], entry.after["token"]) == ("(hidden)", "(hidden)")
    assert SECRET not in str(entry.before) + str(entry.after)
    assert Endpoint.objects.get(pk=lab.endpoint.pk).token == "fresh-token"


def test_an_endpoint_is_removed_and_its_node_stays(as_administrator: Client, lab: Lab) -> None:
    path = f"endpoints/{lab.endpoint.pk}/"
    assert send(as_administrator, "delete", path, If_Match="*").status_code == 204
    assert as_administrator.get(ROOT + path).status_code == 404
    assert Node.objects.filter(pk=lab.node.pk).exists()


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        ({}, "slug", "required"),
        ({"slug": "a b", "name": "x"}, "slug", "valid"),
        ({"slug": "a/../b", "name": "x"}, "slug", "valid"),
        ({"slug": "x" * 64, "name": "x"}, "slug", "63"),
        ({"slug": "x", "name": ""}, "name", "blank"),
        ({"slug": "x", "name": "n" * 201}, "name", "200"),
        ({"slug": "x", "name": "\x00"}, "name", "Null"),
        ({"slug": "x", "name": {"a": 1}}, "name", "valid string"),
        ({"slug": "x", "name": "x", "kind": "odd"}, "kind", "valid choice"),
        ({"slug": "x", "name": "x", "enabled": "perhaps"}, "enabled", "valid boolean"),
        ({"slug": "x", "name": "x", "colour": "red"}, "colour", "There is no such field"),
        ([], "non_field_errors", "dictionary"),
        ('"text"', "non_field_errors", "dictionary"),
    ],
)
def test_a_wrong_field_is_named(
    as_administrator: Client, db: None, body: Any, field: str, remedy: str
) -> None:
    problem = send(as_administrator, "post", "clusters/", body)
    assert problem.status_code == 400
    assert remedy.lower() in " ".join(problem.json()["errors"][field]).lower()
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"nonsense", b'{"slug":' + b"[" * 50_000])
def test_a_body_that_is_no_json_is_a_problem(as_administrator: Client, db: None, data: bytes) -> None:
    response = as_administrator.generic("POST", f"{ROOT}clusters/", data, content_type=JSON)
    assert response.status_code == 400
    assert response.json()["status"] == 400


def test_a_huge_body_is_refused(as_administrator: Client, db: None) -> None:
    response = send(as_administrator, "post", "clusters/", {"slug": "x", "name": "x" * 100_000})
    assert response.status_code == 400
    assert "more than 65536 bytes" in response.json()["detail"]


def test_a_body_of_another_kind_is_refused(as_administrator: Client, db: None) -> None:
    response = as_administrator.post(f"{ROOT}clusters/", {"slug": "x", "name": "x"})
    assert response.status_code == 415


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "10.0.0.1:9105",
            "ftp://10.0.0.1",
            "http://",
            "http://:9105",
            "http://host:99999",
            "http://169.254.169.254",
        ),
        *(
            "http://user:pass@host",
            "http://host/?a=1",
            "http://host/#x",
            "http://ho st",
            "http://hö.st",
            "file:///etc",
        ),
        *("http://host\r\nX: y", "http://[::1", "javascript:alert(1)", "http://" + "x" * 500),
    ],
)
def test_an_address_that_is_none_is_refused(as_administrator: Client, lab: Lab, url: str) -> None:
    problem = send(as_administrator, "post", "clusters/lab/endpoints/", {"url": url})
    assert problem.status_code == 400
    assert problem.json()["errors"]["url"]


@pytest.mark.parametrize("url", ["http://[fd00::1]:9105", "https://node.example/numa", "http://10.0.0.7"])
def test_other_addresses_are_taken(as_administrator: Client, lab: Lab, url: str) -> None:
    assert send(as_administrator, "post", "clusters/lab/endpoints/", {"url": url}).status_code == 201


def test_a_token_with_a_line_end_is_refused(as_administrator: Client, lab: Lab) -> None:
    body = {"url": "http://10.0.0.8:9105", "token": "a\r\nX-Other: b"}
    problem = send(as_administrator, "post", "clusters/lab/endpoints/", body)
    assert "no blanks" in problem.json()["errors"]["token"][0]


def test_whose_certificate_an_exporter_needs_is_set_shown_and_taken_back(
    as_administrator: Client, lab: Lab
) -> None:
    pem = Authority().pem.strip()
    body = {"url": "https://10.0.0.8:9105", "ca": f"\n{pem}\n", "server_name": "exporters.numaweb.svc"}
    made = send(as_administrator, "post", "clusters/lab/endpoints/", body)
    assert made.status_code == 201
    assert (made.json()["ca"], made.json()["server_name"]) == (pem, "exporters.numaweb.svc")
    assert last().after["server_name"] == "exporters.numaweb.svc"
    path = f"endpoints/{made.json()['id']}/"
    Endpoint.objects.filter(pk=made.json()["id"]).update(state="failing")
    tag = made.headers["ETag"]
    changed = send(as_administrator, "patch", path, {"ca": "", "server_name": ""}, If_Match=tag)
    assert (changed.json()["ca"], changed.json()["server_name"], changed.json()["state"]) == (
        None,
        None,
        "new",
    )
    assert changed.headers["ETag"] != tag
    held = Endpoint.objects.get(pk=made.json()["id"])
    assert (held.ca, held.server_name) == ("", "")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ca", "no certificate"),
        ("ca", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
        *(("server_name", name) for name in (".svc", "a..b", "a b", "hö.st", "a/b", "x" * 64, "http://a")),
    ],
)
def test_what_no_certificate_has_is_refused(
    as_administrator: Client, lab: Lab, field: str, value: str
) -> None:
    path = f"endpoints/{lab.endpoint.pk}/"
    problem = send(as_administrator, "patch", path, {field: value}, If_Match="*")
    assert problem.status_code == 400
    assert "certificate" in problem.json()["errors"][field][0]
    assert getattr(Endpoint.objects.get(pk=lab.endpoint.pk), field) == ""


@pytest.mark.parametrize("name", ["10.0.0.1", "fd00::1", "numa_exporter", "a.b.svc.cluster.local."])
def test_names_of_certificates_are_taken(as_administrator: Client, lab: Lab, name: str) -> None:
    path = f"endpoints/{lab.endpoint.pk}/"
    response = send(as_administrator, "patch", path, {"server_name": name}, If_Match="*")
    assert response.json()["server_name"] == name


def test_the_slug_of_a_cluster_stays(as_administrator: Client, lab: Lab) -> None:
    problem = send(as_administrator, "patch", "clusters/lab/", {"slug": "other"}, If_Match="*")
    assert problem.status_code == 400
    assert "slug" in problem.json()["errors"]
