"""“Ask now” of a connection, as an administrator meets it, against a real API server: what it says when all is well, and when it is not."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
import yaml
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from monitoring.models import Cluster, Connection
from tests.cluster import kubeconfig, rights
from tests.cluster.api import Object
from tests.cluster.certificates import Authority
from tests.cluster.controlplane import ControlPlane

pytestmark = pytest.mark.django_db(transaction=True)
PERSON = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user"
"""Lets everybody who signed in ask what they may."""


def ask(client: Client, text: str, language: str = "en") -> list[str]:
    """What the administration says after a kubeconfig was entered and its server asked."""
    cluster = Cluster.objects.create(slug="real", name="Real <east> & west", kind=Cluster.Kind.KUBERNETES)
    row = Connection.objects.create(cluster=cluster, source=Connection.Source.KUBECONFIG, kubeconfig=text)
    data = {"action": "try_now", "_selected_action": [str(row.pk)]}
    changes = reverse("admin:monitoring_connection_changelist")
    answer = client.post(changes, data, headers={"accept-language": language})
    said = [str(message) for message in get_messages(answer.wsgi_request)]
    shown = html.unescape(re.sub(r"<[^>]+>", "", client.get(changes).content.decode()))
    assert Connection.objects.get().state == "new"  # asking changes nothing
    secret = yaml.safe_load(text)["users"][0]["user"].get("token")
    assert secret is None or secret not in "".join([*said, shown])
    Cluster.objects.all().delete()
    return said


def test_it_answers_with_its_version(plane: ControlPlane, as_administrator: Client) -> None:
    [told] = ask(as_administrator, rights.kubeconfig(plane, "watcher"))
    assert re.fullmatch(r"Real <east> & west answers: Kubernetes v1\.37\.\d+\S* in \d+ ms\.", told)


def test_it_names_every_right_that_is_missing(plane: ControlPlane, as_administrator: Client) -> None:
    rule = next(
        each for each in rights.rules("watcher") if any(right.resource == "pods" for right in each.rights)
    )
    answered, lacking = ask(as_administrator, rights.kubeconfig(plane, "watcher", without=rule))
    assert "answers: Kubernetes v1.37" in answered
    named, _, remedy = lacking.removeprefix("Real <east> & west: missing rights: ").partition(". ")
    assert set(named.split(", ")) == {"list pods", "watch pods"}  # it looks up no single pod
    assert remedy == "watcher.yaml of the chart has the whole role."


def test_a_token_that_counts_no_more_is_refused(plane: ControlPlane, as_administrator: Client) -> None:
    text = kubeconfig.text(plane.url, plane.authority.pem, "watcher", "a-token-of-yesterday")
    [told] = ask(as_administrator, text)
    assert told.startswith("Real <east> & west: Unauthorized")
    assert "Enter a new token or kubeconfig for this cluster in the administration" in told


@pytest.fixture
def nobody_may_ask(plane: ControlPlane) -> Iterator[None]:
    before: Object = plane.api.get(PERSON)
    plane.api.delete(PERSON)
    yield
    kept = {name: before[name] for name in ("apiVersion", "kind", "roleRef", "subjects")}
    plane.api.create({**kept, "metadata": {"name": before["metadata"]["name"]}})


def test_a_question_that_is_forbidden_is_told_with_the_right(
    plane: ControlPlane, nobody_may_ask: None, as_administrator: Client
) -> None:
    [told] = ask(as_administrator, rights.kubeconfig(plane, "watcher"))
    assert "selfsubjectaccessreviews" in told
    assert "Give the ServiceAccount of numaweb this right" in told


@pytest.mark.parametrize(
    ("language", "remedy"),
    [
        ("en", "Check the certificate of the API server, the certificate authority that was given"),
        ("zh-hans", "证书"),
    ],
)
def test_a_server_of_another_authority_is_not_believed(
    plane: ControlPlane, as_administrator: Client, language: str, remedy: str
) -> None:
    text = kubeconfig.text(plane.url, Authority().pem, "watcher", "a-token-that-stays-here")
    [told] = ask(as_administrator, text, language)
    assert remedy in told
    assert "certificate" in told.lower() or language != "en"
