"""The commands of this room."""

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitoring import selectors
from monitoring.models import Connection, Endpoint

pytestmark = pytest.mark.django_db


def test_it_adds_a_cluster_and_changes_it(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    out = io.StringIO()
    call_command(
        "cluster", "prod", "--url", "http://a:1/", "--url", "http://b:1", "--token-file", token, stdout=out
    )
    assert out.getvalue() == "prod: 2 exporters\n"
    assert {(each.url, each.token) for each in Endpoint.objects.all()} == {
        ("http://a:1", "secret"),
        ("http://b:1", "secret"),
    }
    call_command("cluster", "prod", "--name", "Production", "--url", "http://b:1", stdout=out)
    assert selectors.cluster("prod").name == "Production"
    assert {(each.url, each.enabled) for each in Endpoint.objects.all()} == {
        ("http://a:1", False),
        ("http://b:1", True),
    }


@pytest.mark.parametrize(
    "arguments", [("not a slug",), ("prod", "--url", "ftp://a"), ("prod", "--token-file", "/no/such/file")]
)
def test_it_refuses(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command("cluster", *arguments)
    assert not selectors.clusters()


def test_it_connects_the_cluster_that_it_runs_in_and_leaves_its_name_alone(tmp_path: Path) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret\n")
    authority.write_text("PEM\n")
    out = io.StringIO()
    call_command("connect", "here", "--name", "Ours", "--exporter-namespace", "numa", stdout=out)
    cluster = selectors.cluster("here")
    cluster.name = "Renamed"
    cluster.save()
    files = ("--exporter-token-file", token, "--exporter-ca-file", authority)
    call_command("connect", "here", *files, "--exporter-namespace", "numa", "--exporter-name", "e.numa.svc")
    found = Connection.objects.get()
    assert (found.source, found.cluster.name, found.enabled) == ("in-cluster", "Renamed", True)
    assert (found.exporter_namespace, found.exporter_token) == ("numa", "secret")
    assert (found.exporter_https, found.exporter_ca, found.exporter_name) == (True, "PEM", "e.numa.svc")


@pytest.mark.parametrize("arguments", [("not a slug",), ("here", "--exporter-token-file", "/no/such/file")])
def test_it_connects_nothing_when_it_is_told_nonsense(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command("connect", *arguments)
    assert not selectors.clusters()
