"""Logs: one JSON object a line, with the request's id and without secrets."""

import contextlib
import io
import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client, RequestFactory
from django.urls import reverse

from monitoring.models import Cluster, Connection
from monitoring.models.sealed import SealedField
from numaweb import logs, tokens
from numaweb.models import ApiToken
from policies.models import AuditEntry


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a process with our configuration writes to standard error."""
    with writing("INFO") as stream:
        yield stream


@contextlib.contextmanager
def writing(level: str) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configuration = logs.configuration(level)
    configuration["handlers"]["stderr"]["stream"] = stream
    kept = logging.root.handlers[:]
    logging.config.dictConfig(configuration)
    yield stream
    logs.configure(settings.LOGGING)
    logging.root.handlers[:] = kept


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_it_writes_one_object_a_line(written: io.StringIO) -> None:
    structlog.get_logger("a").info("collected", nodes=3, text="two\nlines")
    logging.getLogger("b").warning("plain %s", "words", extra={"node": "n1"})
    first, second = lines(written)
    assert (first["event"], first["nodes"], first["text"], first["level"]) == (
        "collected",
        3,
        "two\nlines",
        "info",
    )
    assert (second["event"], second["level"], second["logger"]) == ("plain words", "warning", "b")
    assert first["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    "name", ["password", "api_token", "Authorization", "client_secret", "cookies", "redis_password"]
)
def test_it_hides_what_is_named_like_a_secret(written: io.StringIO, name: str) -> None:
    structlog.get_logger("a").info("said", **{name: "hunter2"})
    assert "hunter2" not in written.getvalue()
    assert lines(written)[0][name] == "(hidden)"


def test_it_names_the_request_in_every_line(written: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        structlog.get_logger("a").info("x")
        logging.getLogger("b").info("y")
    assert [line["request_id"] for line in lines(written)] == ["r1", "r1"]


def test_it_writes_the_cause_of_an_error_and_nothing_of_the_request(written: io.StringIO) -> None:
    request = RequestFactory().post(
        "/nodes/", {"password": "hunter2"}, headers={"Authorization": "Bearer hunter2"}
    )
    try:
        raise ValueError("the cause")
    except ValueError:
        logging.getLogger("django.request").exception(
            "failed", extra={"request": request, "status_code": 500}
        )
    (line,) = lines(written)
    assert "ValueError: the cause" in line["exception"]
    assert (line["path"], line["status_code"]) == ("/nodes/", 500)
    assert "Bearer" not in written.getvalue()


HUSH = "hush-7Qm3zK9w"
"""In every secret of the story below, and in nothing else."""
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
users: [{{name: u, user: {{token: {HUSH}-account}}}}]
"""


@pytest.fixture
def everything() -> Iterator[io.StringIO]:
    """All that is written at the lowest level."""
    with writing("DEBUG") as stream:
        yield stream


def sign_in(client: Client, password: str) -> int:
    form = {"username": "ada", "password": password}
    return client.post("/accounts/login/", form).status_code


def test_no_secret_is_in_any_line_whether_things_go_well_or_fail(
    everything: io.StringIO, administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    administrator.set_password(f"{HUSH}-password")
    administrator.save()
    browser = Client(raise_request_exception=False)
    assert sign_in(browser, f"{HUSH}-wrong") == 200
    assert sign_in(browser, f"{HUSH}-password") == 302

    token = ApiToken(user=administrator, name="script", scope=ApiToken.Scope.READ)
    bearer = tokens.fill(token)
    token.save()
    program = Client(raise_request_exception=False)
    for given, status in ((bearer, 200), (f"numaweb_aaaaaa{HUSH}", 401), (bearer[:-2], 401)):
        answer = program.get("/api/v1/clusters/", headers={"Authorization": f"Bearer {given}"})
        assert answer.status_code == status

    cluster = Cluster.objects.create(slug="east", name="East", kind="kubernetes")
    page = reverse("admin:monitoring_connection_add")
    form = {"cluster": str(cluster.pk), "source": "kubeconfig", "enabled": "on"}
    refused = f"exec: {{command: {HUSH}-program}}"
    broken = KUBECONFIG.replace(f"token: {HUSH}-account", refused)
    assert browser.post(page, {**form, "kubeconfig": broken}).status_code == 200
    assert browser.post(page, {**form, "kubeconfig": KUBECONFIG}).status_code == 302
    connection = Connection.objects.get()
    url = reverse("admin:monitoring_connection_change", args=[connection.pk])

    def fails(*_: object) -> str:
        raise DatabaseError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(SealedField, "get_prep_value", fails)
        assert browser.post(url, {**form, "kubeconfig": KUBECONFIG}).status_code == 500

    text = everything.getvalue()
    assert HUSH not in text
    assert bearer not in text
    assert bearer[tokens.SHOWN : -2] not in text
    assert (browser.session.session_key or "no session") not in text
    said = [json.loads(line) for line in text.splitlines()]
    assert {line["status"] for line in said if line["event"] == "request"} == {200, 302, 401, 500}
    assert all("request_id" in line for line in said if line["logger"].startswith("numaweb"))
    assert any("disk full" in line.get("exception", "") for line in said)
    assert AuditEntry.objects.filter(action="wrong token").exists(), "the story was told"
