"""The first start: the three groups and the first administrator. Called by `manage.py bootstrap` and `manage.py local`."""

import secrets
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from numaweb import roles
from numaweb.models import FirstPassword
from policies import audit

LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without the ones that look alike
LENGTH = 20


class Made(msgspec.Struct, frozen=True):
    """The administrator that was made now; `password` is None when it was given and need not be shown."""

    username: str
    password: str | None


def bootstrap() -> Made | None:
    """Create what is missing. None when there was an administrator already; of two at once, one makes it."""
    roles.ensure_groups()
    try:
        with transaction.atomic():
            return first_administrator()
    except IntegrityError:  # another process has just made the same user
        return None


def first_administrator() -> Made | None:
    # Locking the group's row makes two processes take turns where the database can.
    group = Group.objects.select_for_update().get(name=roles.ADMINISTRATOR)
    users: Any = get_user_model().objects
    if users.filter(groups=group).exists() or users.filter(is_superuser=True).exists():
        return None
    given = settings.NUMAWEB_ADMIN_PASSWORD
    password = given or "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
    user = users.create_user(settings.NUMAWEB_ADMIN_USER, password=password, is_staff=True)
    user.groups.add(group)
    FirstPassword.objects.create(user=user)
    audit.record(
        audit.Event(action="add", target=f"auth.user {user.pk} {user}", detail="first administrator")
    )
    return Made(user.get_username(), None if given else password)
