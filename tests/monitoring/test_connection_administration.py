"""The administration of connections to Kubernetes: secrets go in and never come out, faults name their field, and one can ask now."""

from __future__ import annotations

import html
import re
from io import StringIO
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.core.management import call_command
from django.db import connection as database
from django.test import Client
from django.urls import reverse

from monitoring.models import Cluster, Connection
from policies.models import AuditEntry

TOKEN = "hush-token-of-an-account"
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
users: [{{name: u, user: {{token: {TOKEN}}}}}]
"""
ADD = reverse("admin:monitoring_connection_add")


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(slug="east", name="East", kind="kubernetes")


@pytest.fixture
def stored(cluster: Cluster) -> Connection:
    return Connection.objects.create(cluster=cluster, source="kubeconfig", kubeconfig=KUBECONFIG)


def form(cluster: Cluster, **given: str) -> dict[str, str]:
    return {"cluster": str(cluster.pk), "source": "kubeconfig", "enabled": "on", **given}


def faults(client: Client, url: str, data: dict[str, str]) -> str:
    """What the form complains about."""
    answer = client.post(url, data)
    assert answer.status_code == 200, "it was taken"
    page = html.unescape(answer.content.decode())
    assert TOKEN not in page
    return " ".join(re.findall(r'<ul class="errorlist.*?</ul>', page, re.S))


def change(client: Client, row: Connection, **given: str) -> Connection:
    url = reverse("admin:monitoring_connection_change", args=[row.pk])
    answer = client.post(url, form(row.cluster, **given))
    assert answer.status_code == 302, re.findall(r"errorlist.*?</ul>", answer.content.decode())
    return Connection.objects.get(pk=row.pk)


def test_a_pasted_kubeconfig_is_stored_sealed(as_administrator: Client, cluster: Cluster) -> None:
    assert as_administrator.post(ADD, form(cluster, kubeconfig=KUBECONFIG)).status_code == 302
    assert TOKEN in Connection.objects.get().kubeconfig
    with database.cursor() as cursor:
        cursor.execute("SELECT kubeconfig FROM monitoring_connection")
        assert TOKEN not in cursor.fetchone()[0]


def test_secrets_go_in_and_never_come_out(as_administrator: Client, stored: Connection) -> None:
    Connection.objects.update(token="hush-2", exporter_token="hush-3")
    page = as_administrator.get(
        reverse("admin:monitoring_connection_change", args=[stored.pk])
    ).content.decode()
    assert TOKEN not in page
    assert "hush" not in page
    assert "is stored and is not shown" in page


def test_it_keeps_replaces_and_removes_them(as_administrator: Client, stored: Connection) -> None:
    assert TOKEN in change(as_administrator, stored).kubeconfig
    other = KUBECONFIG.replace(TOKEN, "another-one")
    assert "another-one" in change(as_administrator, stored, kubeconfig=other).kubeconfig
    moved = {"source": "token", "server": "https://127.0.0.1:6443", "token": "t", "forget_kubeconfig": "on"}
    assert change(as_administrator, stored, **moved).kubeconfig == ""


def test_no_secret_gets_into_the_audit_log(as_administrator: Client, stored: Connection) -> None:
    change(as_administrator, stored, kubeconfig=KUBECONFIG, exporter_token="hush", exporter_namespace="numa")
    entries = [f"{entry.before} {entry.after} {entry.detail}" for entry in AuditEntry.objects.all()]
    assert any("new kubeconfig" in entry for entry in entries)
    assert not any(TOKEN in entry or "hush" in entry for entry in entries)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kubeconfig": ""}, "kubeconfig"),
        (
            {"kubeconfig": KUBECONFIG.replace(f"token: {TOKEN}", "exec: {command: x}")},
            "numaweb starts no programs",
        ),
        ({"kubeconfig": KUBECONFIG.replace("https://127.0.0.1:1", "https://169.254.169.254")}, "server"),
        ({"kubeconfig": KUBECONFIG, "context": "there"}, "there is no context “there”"),
        ({"source": "token", "server": "http://10.0.0.1", "token": "t"}, "in the clear"),
        ({"source": "token", "server": "https://10.0.0.1", "token": ""}, "kubectl create token"),
        (
            {"source": "token", "server": "https://10.0.0.1", "token": "t", "ca": "no"},
            "no certificate in PEM form",
        ),
        ({"source": "in-cluster"}, "this process runs in no pod"),
        ({"kubeconfig": KUBECONFIG, "exporter_token": "t"}, "the token goes only to pods of this namespace"),
        ({"kubeconfig": KUBECONFIG, "exporter_service": "exporters.numa:port"}, "no HOST:PORT"),
        ({"kubeconfig": KUBECONFIG, "exporter_ca": "no"}, "no certificate in PEM form"),
    ],
)
def test_a_fault_is_named_before_anything_is_stored(
    given: dict[str, str],
    words: str,
    as_administrator: Client,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert words in faults(as_administrator, ADD, form(cluster, **given))
    assert not Connection.objects.exists()


def test_asking_now_tells_why_nobody_answers(as_administrator: Client, stored: Connection) -> None:
    data = {"action": "try_now", "_selected_action": [str(stored.pk)]}
    answer = as_administrator.post(reverse("admin:monitoring_connection_changelist"), data)
    [told] = [str(message) for message in get_messages(answer.wsgi_request)]
    assert told.startswith("East: ")
    assert "Check that the API server runs" in told
    assert TOKEN not in told
    assert Connection.objects.get().state == "new"


def test_the_health_is_shown(as_administrator: Client, stored: Connection) -> None:
    right = {"verb": "list", "group": "", "resource": "pods", "subresource": "", "why": "pods"}
    Connection.objects.update(
        missing=[right], state="failing", error="refused", remedy="check-api-server-runs"
    )
    stored.watches.create(resource="pods", state="forbidden", since="2026-11-30T08:00:00Z")
    page = as_administrator.get(
        reverse("admin:monitoring_connection_change", args=[stored.pk])
    ).content.decode()
    said = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert "list pods pods, refused ones among them" in said
    assert "refused Check that the API server runs" in said
    assert "pods has no right No right to read them." in said
    cluster = as_administrator.get(reverse("admin:monitoring_cluster_change", args=[stored.cluster_id]))
    assert f"/admin/monitoring/connection/{stored.pk}/change/" in cluster.content.decode()


def test_only_administrators_get_there(as_operator: Client, as_viewer: Client, stored: Connection) -> None:
    for client in (as_operator, as_viewer):
        assert client.get(ADD, follow=True).status_code == 403


def test_every_sealed_field_is_sealed_anew(stored: Connection, settings: Any) -> None:
    Connection.objects.update(token="t", exporter_token="e")
    before = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [before]
    output = StringIO()
    call_command("reseal", stdout=output)
    assert "3 " in output.getvalue()
    settings.SECRET_KEY_FALLBACKS = []
    found = Connection.objects.get()
    assert (TOKEN in found.kubeconfig, found.token, found.exporter_token) == (True, "t", "e")
