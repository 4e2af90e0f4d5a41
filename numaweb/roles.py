"""The three roles: which permissions each group has, and which role somebody lacks.

A role is a Django group. A viewer reads; an operator also previews, pauses and cleans up (every permission named
`operate_...`); an administrator also changes clusters, settings, users and tokens and reads the audit log.
"""

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

NAMES: tuple[str, str, str] = settings.NUMAWEB_ROLES
VIEWER, OPERATOR, ADMINISTRATOR = NAMES
LABELS = {VIEWER: _("viewer"), OPERATOR: _("operator"), ADMINISTRATOR: _("administrator")}

READS = Q(content_type__app_label="monitoring", codename__startswith="view_")
OPERATES = READS | Q(codename__startswith="operate_")
# The audit log is written by the program alone: nobody has a right to change it.
ALTERS_AUDIT = Q(content_type__app_label="policies", content_type__model__startswith="audit") & ~Q(
    codename__startswith="view_"
)
RULES = {VIEWER: READS, OPERATOR: OPERATES, ADMINISTRATOR: ~ALTERS_AUDIT}

Visitor = AbstractBaseUser | AnonymousUser


def permissions(role: str) -> QuerySet[Permission]:
    return Permission.objects.filter(RULES[role])


def ensure_groups() -> None:
    """Create the groups and give each exactly its permissions; safe to run again and at once from two processes."""
    for role in NAMES:
        group, _created = Group.objects.get_or_create(name=role)
        group.permissions.set(permissions(role))


def of(user: Visitor) -> str | None:
    """The highest role that somebody has, None for nobody in particular."""
    if getattr(user, "is_superuser", False):
        return ADMINISTRATOR
    if not user.pk:
        return None
    held = set(Group.objects.filter(user=user.pk, name__in=NAMES).values_list("name", flat=True))
    return next((role for role in reversed(NAMES) if role in held), None)


def least_with(permission: str) -> str:
    """The lowest role whose group has "app.codename"; administrator for one that no group has."""
    app, _, codename = permission.partition(".")
    holders = set(
        Group.objects.filter(
            permissions__content_type__app_label=app, permissions__codename=codename, name__in=NAMES
        ).values_list("name", flat=True)
    )
    return next((role for role in NAMES if role in holders), ADMINISTRATOR)
