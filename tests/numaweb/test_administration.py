"""The admin site: every change becomes an audit entry with before and after, and no secret gets in."""

from axes.models import AccessAttempt
from django.contrib.auth.models import Group, User
from django.test import Client

from policies.models import AuditEntry


def entry(action: str) -> AuditEntry:
    return AuditEntry.objects.get(action=action)


def user_form(user: User, **changed: object) -> dict[str, object]:
    return {
        "username": user.username,
        "date_joined_0": "2026-11-30",
        "date_joined_1": "12:00:00",
        "is_active": "on",
        **changed,
    }


def test_it_records_a_change_with_before_and_after(
    as_administrator: Client, viewer: User, groups: dict[str, Group]
) -> None:
    form = user_form(viewer, email="vera@example.org", groups=[groups["operator"].pk])
    assert as_administrator.post(f"/admin/auth/user/{viewer.pk}/change/", form).status_code == 302
    change = entry("change")
    assert (change.actor, change.result) == ("ada", "done")
    assert change.target == f"auth.user {viewer.pk} vera"
    assert (change.before["email"], change.after["email"]) == ("", "vera@example.org")
    assert (change.before["groups"], change.after["groups"]) == (["viewer"], ["operator"])
    assert change.before["password"] == change.after["password"] == "(hidden)"


def test_it_records_nothing_for_a_form_with_a_mistake(as_administrator: Client, viewer: User) -> None:
    form = user_form(viewer, email="not an address")
    assert as_administrator.post(f"/admin/auth/user/{viewer.pk}/change/", form).status_code == 200
    assert not AuditEntry.objects.exists()


def test_it_records_a_new_person(as_administrator: Client) -> None:
    form = {
        "username": "new",
        "usable_password": "true",
        "password1": "a long enough one",
        "password2": "a long enough one",
    }
    assert as_administrator.post("/admin/auth/user/add/", form).status_code == 302
    added = entry("add")
    assert added.before is None
    assert added.after["username"] == "new"
    assert "a long enough one" not in str(added.__dict__)


def test_it_records_a_removal(as_administrator: Client, viewer: User) -> None:
    as_administrator.post(f"/admin/auth/user/{viewer.pk}/delete/", {"post": "yes"})
    gone = entry("remove")
    assert gone.target == f"auth.user {viewer.pk} vera"
    assert gone.before["groups"] == ["viewer"]


def test_it_records_each_of_several_removals(as_administrator: Client, viewer: User, operator: User) -> None:
    form = {"action": "delete_selected", "_selected_action": [viewer.pk, operator.pk], "post": "yes"}
    as_administrator.post("/admin/auth/user/", form)
    targets = set(AuditEntry.objects.filter(action="remove").values_list("target", flat=True))
    assert targets == {f"auth.user {viewer.pk} vera", f"auth.user {operator.pk} otto"}


def test_it_records_a_password_set_by_an_administrator(as_administrator: Client, viewer: User) -> None:
    form = {"usable_password": "true", "password1": "a new long one 42", "password2": "a new long one 42"}
    assert as_administrator.post(f"/admin/auth/user/{viewer.pk}/password/", form).status_code == 302
    assert entry("set password").target == f"auth.user {viewer.pk} vera"


def test_it_takes_the_change_back_when_it_cannot_be_recorded(
    as_administrator: Client, viewer: User, monkeypatch: object
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("policies.audit.record", fail)  # type: ignore[attr-defined]
    as_administrator.raise_request_exception = False
    form = user_form(viewer, email="vera@example.org")
    assert as_administrator.post(f"/admin/auth/user/{viewer.pk}/change/", form).status_code == 500
    viewer.refresh_from_db()
    assert viewer.email == ""


def test_removing_an_attempt_lets_somebody_try_again(as_administrator: Client) -> None:
    attempt = AccessAttempt.objects.create(
        username="vera",
        ip_address="192.0.2.1",
        user_agent="x",
        failures_since_start=5,
        get_data="",
        post_data="",
    )
    assert "192.0.2.1" in as_administrator.get("/admin/axes/accessattempt/").content.decode()
    as_administrator.post(f"/admin/axes/accessattempt/{attempt.pk}/delete/", {"post": "yes"})
    assert not AccessAttempt.objects.exists()
    assert "axes.accessattempt" in entry("remove").target


def test_every_page_of_the_administration_opens(as_administrator: Client) -> None:
    index = as_administrator.get("/admin/")
    for app in index.context["app_list"]:
        for model in app["models"]:
            if model["admin_url"]:
                page = as_administrator.get(model["admin_url"], follow=True)
                assert page.status_code == 200, model["object_name"]


def test_the_administration_needs_nothing_inline(as_administrator: Client, viewer: User) -> None:
    for address in (
        "/admin/",
        "/admin/auth/user/",
        f"/admin/auth/user/{viewer.pk}/change/",
        "/admin/auth/user/add/",
    ):
        page = as_administrator.get(address).content.decode()
        assert "<script>" not in page
        assert " onclick=" not in page
        assert " style=" not in page
