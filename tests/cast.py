"""The fixed cast of every permission question, as a pytest plugin: viewer, operator, administrator, stranger.

`viewer`, `operator` and `administrator` are users with exactly that role; `stranger` is somebody with an account and
no role. `as_viewer` and so on are Django test clients signed in as them; `client` (pytest-django's) is nobody.
"""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.test import Client, override_settings
from pytest_django import DjangoDbBlocker

from numaweb import roles
from policies import seal


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, as in real life: threads wait for each other there, and fail at once on SQLite's shared memory."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Tests that commit are cleaned up by emptying tables, which the audit log's seal would refuse."""
    with django_db_blocker.unblock():
        seal.lift(connection)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Rates and budgets of one test are not those of the next."""
    cache.clear()


@pytest.fixture(scope="session", autouse=True)
def _fast_passwords() -> Iterator[None]:
    """The real hasher costs 50 ms and more on purpose."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture
def groups(db: None) -> dict[str, Group]:
    roles.ensure_groups()
    return {group.name: group for group in Group.objects.filter(name__in=roles.NAMES)}


def person(name: str, *groups: Group) -> User:
    user = User(username=name, is_staff=any(group.name == roles.ADMINISTRATOR for group in groups))
    user.set_unusable_password()
    user.save()
    user.groups.set(groups)
    return user


@pytest.fixture
def viewer(groups: dict[str, Group]) -> User:
    return person("vera", groups[roles.VIEWER])


@pytest.fixture
def operator(groups: dict[str, Group]) -> User:
    return person("otto", groups[roles.OPERATOR])


@pytest.fixture
def administrator(groups: dict[str, Group]) -> User:
    return person("ada", groups[roles.ADMINISTRATOR])


@pytest.fixture
def stranger(groups: dict[str, Group]) -> User:
    return person("sten")


def signed_in(user: User) -> Client:
    """Somebody who signed in long ago: the audit log is still empty."""
    client = Client()
    with override_settings(AXES_ENABLED=False):
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def as_viewer(viewer: User) -> Client:
    return signed_in(viewer)


@pytest.fixture
def as_operator(operator: User) -> Client:
    return signed_in(operator)


@pytest.fixture
def as_administrator(administrator: User) -> Client:
    return signed_in(administrator)


@pytest.fixture
def as_stranger(stranger: User) -> Client:
    return signed_in(stranger)
