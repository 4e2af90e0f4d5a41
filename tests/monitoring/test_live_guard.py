"""Who may look, asked for a whole crowd at once."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings as project
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import selectors
from monitoring.live import guard
from monitoring.live.guard import Person
from monitoring.models import Cluster
from tests.cast import person

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> str:
    client = Client()
    client.force_login(user, backend=guard.RIGHTS)
    return str(client.cookies[project.SESSION_COOKIE_NAME].value)


def test_it_knows_readers_and_others(viewer: User, stranger: User) -> None:
    root = User.objects.create_superuser("root")
    keys = [signed_in(user) for user in (viewer, root, stranger)]
    assert guard.people([*keys, "nobody"]) == {
        keys[0]: Person(viewer.pk, True),
        keys[1]: Person(root.pk, True),
        keys[2]: Person(stranger.pk, False),
    }
    assert guard.forbidden([*keys, "nobody"]) == {keys[2], "nobody"}
    assert guard.ended([*keys, "nobody"]) == {"nobody"}


def disable(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password("another-long-one")
    user.save()


def expire(_user: User) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))


def remove(user: User) -> None:
    user.delete()


@pytest.mark.parametrize("change", [disable, change_password, expire, remove])
def test_it_knows_nobody_any_more_after(viewer: User, change: Callable[[User], None]) -> None:
    key = signed_in(viewer)
    assert guard.people([key])[key].may_read
    change(viewer)
    assert guard.people([key]) == {}
    assert guard.forbidden([key]) == {key}


def test_it_sees_rights_that_were_taken(viewer: User) -> None:
    key = signed_in(viewer)
    viewer.groups.clear()
    assert guard.people([key]) == {key: Person(viewer.pk, False)}


def test_it_takes_no_session_of_a_way_in_that_was_closed(viewer: User, settings: Settings) -> None:
    key = signed_in(viewer)
    settings.AUTHENTICATION_BACKENDS = ["numaweb.lockout.LockoutBackend"]
    assert guard.people([key]) == {}


def test_it_takes_sessions_from_before_the_secret_key_was_changed(viewer: User, settings: Settings) -> None:
    key = signed_in(viewer)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-one" * 5
    assert guard.people([key])[key].may_read


def test_it_asks_three_questions_however_many_come(groups: dict[str, Group]) -> None:
    keys = [signed_in(person(f"reader-{i}", groups["viewer"])) for i in range(12)]
    with CaptureQueriesContext(connection) as asked:
        assert len(guard.people(keys)) == len(keys)
    assert len(asked) == 3


def test_it_finds_places_by_name() -> None:
    lab = Cluster.objects.create(slug="lab", name="Lab")
    assert selectors.cluster_ids(["lab", "other"]) == {"lab": lab.pk}
    assert selectors.node_ids([("lab", "n1")]) == selectors.node_ids([]) == {}
