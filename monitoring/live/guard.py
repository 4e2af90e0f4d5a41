"""Whether those who look may look: asked when they come, and again while they stay (sign-outs are seen within seconds,
lost rights within a minute).

Synchronous: consumers and the hub call it in a thread. Whole crowds at once, because a restarted server gets its crowd
back at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare

READ = "monitoring.view_cluster"
RIGHTS = f"{ModelBackend.__module__}.{ModelBackend.__qualname__}"
"""Where rights come from: roles are groups."""


class Person(msgspec.Struct, frozen=True):
    """Who is behind a session."""

    user: int
    may_read: bool
    """Whether this person may see what the sockets carry."""


def people(keys: Collection[str]) -> dict[str, Person]:
    """Who is signed in with each of these sessions; without those that are over or whose password was changed.

    The rules are those of `django.contrib.auth.get_user`; three queries, however many sessions.
    """
    ways = _ways_in()
    decoded = {row.session_key: row.get_decoded() for row in _alive(keys)}
    signed_in = {key: data for key, data in decoded.items() if data.get(auth.BACKEND_SESSION_KEY) in ways}
    numbers = {key: int(data[auth.SESSION_KEY]) for key, data in signed_in.items()}
    users = User.objects.filter(is_active=True).in_bulk(set(numbers.values()))
    allowed: QuerySet[User] = User.objects.with_perm(READ, backend=RIGHTS)
    readers = set(allowed.filter(pk__in=users).values_list("pk", flat=True))
    return {
        key: Person(user.pk, user.pk in readers)
        for key, number in numbers.items()
        if (user := users.get(number)) is not None and _is_theirs(signed_in[key], user)
    }


def ended(keys: Collection[str]) -> set[str]:
    """Those of the sessions that are over: signed out, expired, or removed by an administrator. One query."""
    return set(keys) - set(_alive(keys).values_list("session_key", flat=True))


def forbidden(keys: Collection[str]) -> set[str]:
    """Those of the sessions whose user may not read any more: switched off, another password, rights taken."""
    found = people(keys)
    return {key for key in keys if key not in found or not found[key].may_read}


def _alive(keys: Collection[str]) -> QuerySet[Session]:
    return Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())


def _ways_in() -> set[str]:
    """The ways to sign in that are open and know users."""
    return {
        path for path in settings.AUTHENTICATION_BACKENDS if isinstance(auth.load_backend(path), ModelBackend)
    }


def _is_theirs(data: dict[str, Any], user: User) -> bool:
    """Whether the session was made with the password that the user has now."""
    told = str(data.get(auth.HASH_SESSION_KEY, ""))
    return any(constant_time_compare(told, right) for right in _hashes(user))


def _hashes(user: User) -> Iterator[str]:
    yield user.get_session_auth_hash()
    yield from user.get_session_auth_fallback_hash()
