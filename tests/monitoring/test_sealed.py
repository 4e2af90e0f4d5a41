"""Tokens of exporters and of Prometheus are encrypted in the database, and what no key opens is told and not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command, load_command_class
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from monitoring.models import Cluster, Endpoint, Settings
from monitoring.models.sealed import Unreadable, seal, unseal
from monitoring.selectors import timeline
from monitoring.services import sealing
from monitoring.sources import exporter, failures
from monitoring.sources.failures import SourceError

SECRET = "a-token-that-an-exporter-wants"
BEFORE = [("monitoring", "0002_lease_seen")]
OLD, NEW = "o" * 50, "n" * 50


def raw(table: str = "monitoring_endpoint", column: str = "token") -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {table}")
        return str(cursor.fetchone()[0])


@pytest.fixture
def endpoint(db: None, settings: Any) -> Endpoint:
    settings.SECRET_KEY = OLD
    cluster = Cluster.objects.create(slug="east", name="East")
    return Endpoint.objects.create(cluster=cluster, url="http://node:9100", token=SECRET)


def test_the_database_holds_no_token(endpoint: Endpoint) -> None:
    assert SECRET not in raw()
    assert Endpoint.objects.get().token == SECRET
    assert list(Endpoint.objects.values_list("token", flat=True)) == [SECRET]


def test_equal_tokens_do_not_look_equal() -> None:
    assert seal(SECRET) != seal(SECRET)


def test_no_token_stays_none(endpoint: Endpoint) -> None:
    Endpoint.objects.update(token="")
    assert raw() == ""
    assert not Endpoint.objects.exclude(token="").exists()


def test_an_earlier_key_still_reads_and_the_present_one_writes(endpoint: Endpoint, settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert Endpoint.objects.get().token == SECRET
    output = StringIO()
    call_command("reseal", stdout=output)
    assert "1 secrets" in output.getvalue()
    settings.SECRET_KEY_FALLBACKS = []
    assert Endpoint.objects.get().token == SECRET


def test_the_command_says_what_it_encrypts() -> None:
    """Each column that it goes through is named in its help, by the word that people know it by."""
    words = {
        "token": "bearer tokens of exporters",
        "prometheus_token": "and of Prometheus",
        "kubeconfig": "kubeconfig",
        "exporter_token": "exporters' token",
        "private": "private key of orders",
    }
    assert {column for _model, column in sealing.columns()} == words.keys()
    help_text = load_command_class("monitoring", "reseal").help
    assert [word for word in (*words.values(), "ServiceAccount token") if word not in help_text] == []


def test_every_sealed_column_is_encrypted_anew() -> None:
    found = {f"{model.__name__}.{column}" for model, column in sealing.columns()}
    assert found == {
        "Endpoint.token",
        "Settings.prometheus_token",
        "Connection.kubeconfig",
        "Connection.token",
        "Connection.exporter_token",
        "OrderKey.private",
    }


def test_with_another_key_the_exporter_is_not_asked_and_the_remedy_is_named(
    endpoint: Endpoint, settings: Any
) -> None:
    settings.SECRET_KEY = NEW
    token = Endpoint.objects.get().token
    assert isinstance(token, Unreadable)
    with (
        asyncio.Runner() as runner,
        pytest.raises(SourceError, match="encrypted with another secret key") as refused,
    ):
        exporter.Asker(endpoint.url, token, exporter.Limits(1.0, 1024, 1024), runner.get_loop())
    assert refused.value.remedy == failures.SEALED_TOKEN


def test_saving_a_row_whose_token_cannot_be_read_keeps_it_for_its_key(
    endpoint: Endpoint, settings: Any
) -> None:
    settings.SECRET_KEY = NEW
    row = Endpoint.objects.get()
    row.name = "renamed"
    row.save()
    with pytest.raises(
        CommandError, match=r"No key opens: token of endpoint renamed\..*NUMAWEB_SECRET_KEY_FALLBACKS"
    ):
        call_command("reseal")
    settings.SECRET_KEY = OLD
    assert Endpoint.objects.get().token == SECRET


def test_what_was_altered_cannot_be_read(endpoint: Endpoint) -> None:
    assert isinstance(unseal(raw()[:-4] + "AAA="), Unreadable)
    assert isinstance(unseal(SECRET), Unreadable)


def test_prometheus_is_not_asked_with_a_token_that_cannot_be_read(endpoint: Endpoint, settings: Any) -> None:
    Settings.objects.create(pk=1, prometheus_url="http://prometheus.example", prometheus_token=SECRET)
    assert SECRET not in raw("monitoring_settings", "prometheus_token")
    assert timeline.configured() is not None
    settings.SECRET_KEY = NEW
    assert timeline.configured() is None


def test_the_administration_says_that_it_has_to_be_entered_again(as_administrator: Client) -> None:
    cluster = Cluster.objects.create(slug="east", name="East")
    endpoint = Endpoint.objects.create(
        cluster=cluster, url="http://node:9100", token=Unreadable("of another key")
    )
    assert raw() == "of another key"
    page = as_administrator.get(f"/admin/monitoring/endpoint/{endpoint.pk}/change/").content.decode()
    assert "The stored token cannot be read: it was encrypted with another secret key. Enter it again" in page


@pytest.fixture
def before() -> Iterator[Any]:
    """The tables as they were before this migration; at the end they are as they should be."""
    executor = MigrationExecutor(connection)
    yield executor.migrate(BEFORE).apps
    call_command("migrate", verbosity=0)  # other rooms, whose tables stand on these, went back too


@pytest.mark.django_db(transaction=True)
def test_the_migration_encrypts_what_is_there_and_gives_it_back(before: Any) -> None:
    cluster = before.get_model("monitoring", "Cluster").objects.create(slug="east", name="East")
    endpoints = before.get_model("monitoring", "Endpoint").objects
    endpoints.create(cluster=cluster, url="http://node:9100", token=SECRET)
    before.get_model("monitoring", "Settings").objects.create(pk=1, prometheus_token=SECRET)
    call_command("migrate", "monitoring", verbosity=0)
    assert SECRET not in raw() + raw("monitoring_settings", "prometheus_token")
    assert Endpoint.objects.get().token == Settings.objects.get().prometheus_token == SECRET
    MigrationExecutor(connection).migrate(BEFORE)
    assert endpoints.get().token == SECRET
