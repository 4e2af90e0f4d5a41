"""The three roles and the first administrator."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.management import call_command
from django.db import connection
from pytest_django.fixtures import Settings

from numaweb import bootstrapping, roles
from numaweb.models import FirstPassword
from policies.models import AuditEntry


def test_a_viewer_reads_and_nothing_else(viewer: User) -> None:
    assert viewer.has_perm("monitoring.view_cluster")
    assert not viewer.has_perm("monitoring.change_cluster")
    assert not viewer.has_perm("policies.view_auditentry")
    assert not viewer.has_perm("auth.view_user")


def test_an_operator_reads_too_and_changes_no_settings(operator: User) -> None:
    assert operator.has_perm("monitoring.view_cluster")
    assert not operator.has_perm("monitoring.change_cluster")
    assert not operator.has_perm("policies.view_auditentry")


def test_an_administrator_does_everything_but_alter_the_audit_log(administrator: User) -> None:
    held = administrator.get_all_permissions()
    assert {"monitoring.change_cluster", "auth.change_user", "numaweb.add_apitoken"} <= held
    assert [name for name in held if "audit" in name] == ["policies.view_auditentry"]


def test_a_stranger_may_not_even_read(stranger: User) -> None:
    assert stranger.get_all_permissions() == set()


def test_it_names_the_highest_role(viewer: User, groups: dict[str, Group], stranger: User) -> None:
    assert roles.of(viewer) == "viewer"
    viewer.groups.add(groups["operator"])
    assert roles.of(viewer) == "operator"
    assert roles.of(stranger) is None
    assert roles.of(AnonymousUser()) is None
    stranger.is_superuser = True
    assert roles.of(stranger) == "administrator"


def test_it_names_the_lowest_role_with_a_permission(groups: dict[str, Group]) -> None:
    assert roles.least_with("monitoring.view_cluster") == "viewer"
    assert roles.least_with("policies.view_auditentry") == "administrator"
    assert roles.least_with("nothing.of_the_kind") == "administrator"


def test_it_takes_away_what_a_role_no_longer_has(groups: dict[str, Group], viewer: User) -> None:
    groups["viewer"].permissions.set(roles.permissions("administrator"))
    roles.ensure_groups()
    assert not User.objects.get(pk=viewer.pk).has_perm("auth.change_user")


def test_it_makes_one_administrator_with_a_password_shown_once(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("bootstrap")
    shown = capsys.readouterr().out
    password = shown.strip().rpartition(" ")[2]
    admin = User.objects.get()
    assert (admin.username, admin.is_staff, admin.is_superuser) == ("admin", True, False)
    assert admin.check_password(password)
    assert len(password) == 20
    assert FirstPassword.objects.filter(user=admin).exists()
    call_command("bootstrap")
    assert "an administrator already" in capsys.readouterr().out
    assert User.objects.count() == 1


def test_it_never_keeps_the_password_anywhere_else(db: None, caplog: pytest.LogCaptureFixture) -> None:
    made = bootstrapping.bootstrap()
    assert made is not None
    assert made.password
    assert made.password not in caplog.text
    assert made.password not in str(list(AuditEntry.objects.values()))


def test_it_uses_a_given_password_and_does_not_show_it(
    db: None, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.NUMAWEB_ADMIN_PASSWORD = "given by the chart"
    call_command("bootstrap")
    assert "given by the chart" not in capsys.readouterr().out
    assert User.objects.get().check_password("given by the chart")


def test_it_needs_no_administrator_where_a_superuser_is(db: None) -> None:
    User.objects.create_superuser("root", password="x")
    assert bootstrapping.bootstrap() is None


def test_two_processes_at_once_make_one_administrator(transactional_db: None) -> None:
    def start() -> bootstrapping.Made | None:
        try:
            return bootstrapping.bootstrap()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        made = [found for found in pool.map(lambda _: start(), range(4)) if found]
    assert len(made) == 1
    assert User.objects.count() == 1
    assert Group.objects.count() == 3
