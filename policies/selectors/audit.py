"""Reads of the audit log, for its page, exports and REST."""

from datetime import datetime

import msgspec
from django.db.models import Q, QuerySet

from policies.models import AuditEntry


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; an empty value does not restrict."""

    text: str = ""
    actor: str = ""
    action: str = ""
    result: str = ""
    since: datetime | None = None
    until: datetime | None = None


def entries(wanted: Filter) -> QuerySet[AuditEntry]:
    """Entries that fit, newest first."""
    exact = {name: getattr(wanted, name) for name in ("actor", "action", "result") if getattr(wanted, name)}
    found = AuditEntry.objects.filter(**exact)
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lte=wanted.until)
    if wanted.text:
        found = found.filter(
            Q(target__icontains=wanted.text)
            | Q(detail__icontains=wanted.text)
            | Q(address__icontains=wanted.text)
            | Q(actor__icontains=wanted.text)
        )
    return found


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("action").values_list("action", flat=True).distinct())
