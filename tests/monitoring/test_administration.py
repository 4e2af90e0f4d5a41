"""The administration: clusters, exporters with secrets that never come back, and settings."""

import re

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from monitoring import selectors
from monitoring.models import Cluster, Endpoint, Node, Settings, Topology
from policies.models import AuditEntry
from tests.monitoring import exporters

pytestmark = pytest.mark.django_db
SECRET = "s3cret-token-of-an-exporter"


@pytest.fixture
def endpoint() -> Endpoint:
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    return Endpoint.objects.create(cluster=cluster, url="http://node-1:9117", token=SECRET)


def form(endpoint: Endpoint, **changes: str) -> dict[str, str]:
    return {
        "cluster": str(endpoint.cluster_id),
        "url": endpoint.url,
        "name": "",
        "enabled": "on",
        "token": "",
        **changes,
    }


def change(client: Client, endpoint: Endpoint, **changes: str) -> Endpoint:
    url = reverse("admin:monitoring_endpoint_change", args=[endpoint.pk])
    answer = client.post(url, form(endpoint, **changes))
    assert answer.status_code == 302, re.findall(r"errorlist.*?</ul>", answer.content.decode())
    endpoint.refresh_from_db()
    return endpoint


def test_it_never_shows_a_token(as_administrator: Client, endpoint: Endpoint) -> None:
    for name, arguments in (("change", [endpoint.pk]), ("changelist", [])):
        page = as_administrator.get(
            reverse(f"admin:monitoring_endpoint_{name}", args=arguments)
        ).content.decode()
        assert SECRET not in page
    assert (
        "A token is stored"
        in as_administrator.get(
            reverse("admin:monitoring_endpoint_change", args=[endpoint.pk])
        ).content.decode()
    )


def test_it_keeps_replaces_and_removes_a_token(as_administrator: Client, endpoint: Endpoint) -> None:
    assert change(as_administrator, endpoint, name="first").token == SECRET
    assert change(as_administrator, endpoint, token="another-one").token == "another-one"
    assert change(as_administrator, endpoint, forget="on").token == ""


def test_it_writes_no_token_into_the_audit_log(as_administrator: Client, endpoint: Endpoint) -> None:
    change(as_administrator, endpoint, token="another-one")
    entries = [f"{entry.before} {entry.after} {entry.detail}" for entry in AuditEntry.objects.all()]
    assert any("new token" in entry for entry in entries)
    assert not any(SECRET in entry or "another-one" in entry for entry in entries)


@pytest.mark.parametrize(
    "url", ["ftp://node-1", "http://user:pw@node-1", "node-1:9117", "http://node-1/?x=1"]
)
def test_it_refuses_addresses_that_cannot_be_asked(
    as_administrator: Client, endpoint: Endpoint, url: str
) -> None:
    answer = as_administrator.post(
        reverse("admin:monitoring_endpoint_change", args=[endpoint.pk]), form(endpoint, url=url)
    )
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()


def ask_now(client: Client, endpoint: Endpoint) -> list[str]:
    answer = client.post(
        reverse("admin:monitoring_endpoint_changelist"),
        {"action": "try_now", "_selected_action": [str(endpoint.pk)]},
    )
    return [str(message) for message in get_messages(answer.wsgi_request)]


def test_it_asks_an_exporter_now_and_tells_what_it_is(as_administrator: Client, endpoint: Endpoint) -> None:
    with exporters.fleet(1) as fleet:
        Endpoint.objects.update(url=fleet.urls[0], token="")
        [told] = ask_now(as_administrator, endpoint)
    assert "node-00000" in told


def test_it_asks_an_exporter_now_and_tells_why_it_does_not_answer(
    as_administrator: Client, endpoint: Endpoint
) -> None:
    with exporters.fleet(1, faults={0: "redirect"}) as fleet:
        Endpoint.objects.update(url=fleet.urls[0], token="")
        [told] = ask_now(as_administrator, endpoint)
    assert "redirects are not followed" in told


def test_it_leads_from_the_list_of_settings_to_the_one_row(as_administrator: Client) -> None:
    answer = as_administrator.get(reverse("admin:monitoring_settings_changelist"), follow=True)
    assert answer.status_code == 200
    assert Settings.objects.count() == 1


def test_it_changes_settings(as_administrator: Client) -> None:
    as_administrator.get(reverse("admin:monitoring_settings_changelist"))
    data = {
        "busy_threshold": "0.25",
        "detail_hours": "12",
        "minute_days": "7",
        "quarter_days": "100",
        "placement_days": "10",
        "event_days": "3",
        "failure_days": "60",
        "gone_hours": "48",
        "prometheus_url": "https://prometheus.example.org/",
        "prometheus_token": SECRET,
    }
    url = reverse("admin:monitoring_settings_change", args=[1])
    assert as_administrator.post(url, data).status_code == 302
    row = selectors.settings()
    assert (row.busy_threshold, row.prometheus_url) == (0.25, "https://prometheus.example.org")
    assert (row.event_days, row.failure_days) == (3, 60)
    assert row.prometheus_token == SECRET
    assert SECRET not in as_administrator.get(url).content.decode()
    assert as_administrator.post(url, {**data, "busy_threshold": "7"}).status_code == 200


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("http://169.254.169.254", "metadata"),
        ("http://[::ffff:169.254.169.254]:9090", "metadata"),
        ("http://127.0.0.1:9090", "NUMAWEB_PROMETHEUS_ALLOW"),
        ("file:///etc/passwd", "http://"),
    ],
)
def test_it_refuses_a_prometheus_that_would_never_be_asked(
    as_administrator: Client, address: str, cause: str
) -> None:
    as_administrator.get(reverse("admin:monitoring_settings_changelist"))
    url = reverse("admin:monitoring_settings_change", args=[1])
    answer = as_administrator.post(url, {"prometheus_url": address})
    assert cause in str(answer.context["adminform"].form.errors["prometheus_url"])
    assert selectors.settings().prometheus_url == ""


def test_it_refuses_an_exporter_that_would_never_be_asked(
    as_administrator: Client, endpoint: Endpoint
) -> None:
    url = reverse("admin:monitoring_endpoint_change", args=[endpoint.pk])
    data = {"cluster": endpoint.cluster.pk, "url": "http://169.254.169.254", "enabled": "on"}
    answer = as_administrator.post(url, data)
    assert "metadata" in str(answer.context["adminform"].form.errors["url"])
    endpoint.refresh_from_db()
    assert "169.254" not in endpoint.url


def test_it_removes_only_nodes_that_left(as_administrator: Client, endpoint: Endpoint) -> None:
    topology = Topology.objects.create(hash="t", document=b"{}", cpus=2, numa_nodes=1, sockets=1)
    now = endpoint.cluster.created
    node = Node.objects.create(
        cluster=endpoint.cluster, name="n1", topology=topology, slot=0, first_seen=now, last_seen=now
    )
    url = reverse("admin:monitoring_node_delete", args=[node.pk])
    assert as_administrator.get(url).status_code == 403
    Node.objects.update(gone_at=now)
    assert as_administrator.post(url, {"post": "yes"}).status_code == 302
    assert not Node.objects.exists()


@pytest.mark.parametrize("name", ["cluster", "endpoint", "settings", "node"])
def test_it_is_closed_to_viewers(as_viewer: Client, endpoint: Endpoint, name: str) -> None:
    answer = as_viewer.get(reverse(f"admin:monitoring_{name}_changelist"))
    assert answer.status_code in (302, 403)
