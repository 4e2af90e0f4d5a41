"""API tokens: what they open, for how long, and what they leave behind."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from numaweb import tokens
from numaweb.models import ApiToken
from policies.models import AuditEntry

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Thing(APIView):
    """A view with the defaults of the settings, and a change that an operator may make."""

    required_permission = "monitoring.view_cluster"
    required_scope = ApiToken.Scope.OPERATE

    def get(self, request: object) -> Response:
        return Response({"read": True})

    def post(self, request: object) -> Response:
        return Response({"changed": True})


class Unnamed(APIView):
    """Somebody forgot to say what its change needs."""

    def post(self, request: object) -> Response:
        return Response({})


def make(user: User, scope: str = "read", expires: datetime | None = None) -> str:
    token = ApiToken(user=user, name="robot", scope=scope, expires=expires)
    secret = tokens.fill(token)
    token.save()
    return secret


def call(secret: str | None, method: str = "get", view: type[APIView] = Thing) -> Response:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    request = getattr(APIRequestFactory(), method)("/api/v1/thing/", headers=headers)
    return view.as_view()(request).render()


def test_it_keeps_only_a_hash_and_the_beginning(viewer: User) -> None:
    secret = make(viewer)
    stored = ApiToken.objects.values().get()
    assert secret.startswith("numaweb_")
    assert secret not in str(stored)
    assert stored["prefix"] == secret[:14]
    assert len(stored["hash"]) == 64


def test_it_reads_with_a_token(viewer: User) -> None:
    assert call(make(viewer)).data == {"read": True}


@pytest.mark.parametrize("secret", [None, "", "numaweb_wrong", "numaweb_wrong more"])
def test_it_asks_for_a_token(db: None, secret: str | None) -> None:
    answer = call(secret)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="numaweb"'
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.data["title"] == "Unauthorized"


def test_it_refuses_an_expired_token(viewer: User) -> None:
    with time_machine.travel(NOW, tick=False):
        fresh, old = make(viewer, expires=NOW + timedelta(seconds=1)), make(viewer, expires=NOW)
        assert call(fresh).status_code == 200
        assert call(old).status_code == 401
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("wrong token", "GET /api/v1/thing/")
    assert entry.detail == f"{old[:14]}..."


def test_it_refuses_the_token_of_somebody_who_left(viewer: User) -> None:
    secret = make(viewer)
    viewer.is_active = False
    viewer.save()
    assert call(secret).status_code == 401


def test_it_has_no_more_rights_than_its_owner(stranger: User) -> None:
    answer = call(make(stranger, scope="admin"))
    assert answer.status_code == 403
    assert AuditEntry.objects.get().actor == "sten"
    assert AuditEntry.objects.get().target == "GET /api/v1/thing/"


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("operate", 200), ("admin", 200)])
def test_it_changes_only_with_a_scope_that_reaches(administrator: User, scope: str, status: int) -> None:
    assert call(make(administrator, scope=scope), "post").status_code == status


def test_it_refuses_a_change_that_no_permission_was_named_for(administrator: User) -> None:
    assert call(make(administrator, scope="admin"), "post", Unnamed).status_code == 403


def test_it_remembers_its_last_use_without_a_write_at_each_request(
    viewer: User, django_assert_num_queries: object
) -> None:
    secret = make(viewer)
    with time_machine.travel(NOW, tick=False) as clock:
        call(secret)
        assert ApiToken.objects.get().last_used == NOW
        clock.shift(30)
        call(secret)
        assert ApiToken.objects.get().last_used == NOW
        clock.shift(31)
        call(secret)
        assert ApiToken.objects.get().last_used == NOW + timedelta(seconds=61)


def test_it_limits_each_token_by_itself(viewer: User, settings: Settings) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {"caller": "2/min"}}
    busy, calm = make(viewer), make(viewer)
    assert [call(busy).status_code for _ in range(3)] == [200, 200, 429]
    assert call(calm).status_code == 200


def test_a_session_needs_a_csrf_token_to_change(operator: User) -> None:
    request = APIRequestFactory(enforce_csrf_checks=True).post("/api/v1/thing/")
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    request.user, request.session = operator, client.session
    answer = Thing.as_view()(request).render()
    assert answer.status_code == 403
    assert "CSRF" in answer.data["detail"]


def test_an_administrator_makes_one_and_sees_it_once(as_administrator: Client, viewer: User) -> None:
    form = {"user": viewer.pk, "name": "exporter of reports", "scope": "read"}
    page = as_administrator.post("/admin/numaweb/apitoken/add/", form, follow=True).content.decode()
    secret = page.partition("<code>")[2].partition("</code>")[0]
    assert call(secret).status_code == 200
    assert secret not in as_administrator.get("/admin/numaweb/apitoken/").content.decode()
    entry = AuditEntry.objects.get(action="add")
    assert "exporter of reports" in entry.target
    assert entry.after["hash"] == "(hidden)"
    assert secret not in str(entry.__dict__)


def test_an_administrator_revokes_one_and_cannot_alter_it(as_administrator: Client, viewer: User) -> None:
    secret = make(viewer)
    address = f"/admin/numaweb/apitoken/{ApiToken.objects.get().pk}/"
    page = as_administrator.post(f"{address}change/", {"scope": "admin"})
    assert page.status_code == 403
    as_administrator.post(f"{address}delete/", {"post": "yes"})
    assert call(secret).status_code == 401
    assert AuditEntry.objects.get(action="remove").before["name"] == "robot"


def test_it_finds_nothing_for_a_request_without_a_header(db: None) -> None:
    assert tokens.find("", timezone.now()) is None
    assert "Authorization" not in RequestFactory().get("/").headers
