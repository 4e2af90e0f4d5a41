"""Whether those who look may still look: sign-outs are seen within seconds, lost rights within a minute.

Synchronous: the hub calls it in a thread.
"""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

from django.contrib import auth
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils import timezone

READ = "monitoring.view_cluster"


def ended(keys: Collection[str]) -> set[str]:
    """Those of the sessions that are over: signed out, expired, or removed by an administrator. One query."""
    alive = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return set(keys) - set(alive.values_list("session_key", flat=True))


def forbidden(keys: Collection[str]) -> set[str]:
    """Those of the sessions whose user may not read any more: switched off, another password, rights taken."""
    return {key for key in keys if not may_read(_user(key))}


def may_read(user: Any) -> bool:
    """Whether this user may see what the sockets carry."""
    return bool(user.is_authenticated and user.is_active and user.has_perm(READ))


def _user(key: str) -> Any:
    request = SimpleNamespace(session=SessionStore(key))
    return auth.get_user(cast(Any, request))
