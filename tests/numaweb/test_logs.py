"""Logs: one JSON object a line, with the request's id and without secrets."""

import io
import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.test import RequestFactory

from numaweb import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a process with our configuration writes to standard error."""
    stream = io.StringIO()
    configuration = logs.configuration("INFO")
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
