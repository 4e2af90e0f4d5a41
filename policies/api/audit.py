"""The audit log in the REST API: the same rows as its page, for administrators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import django_filters as df
import msgspec
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from monitoring.api import lists, rows, shapes
from monitoring.filters import Moment, Several, Text
from monitoring.models import Cluster
from policies.models import AuditEntry

READ_AUDIT = "policies.view_auditentry"


class AuditRow(msgspec.Struct):
    """One thing that somebody did or tried. `hash` covers it and `previous_hash`: the chain shows any alteration."""

    sequence: int
    at: datetime
    actor: str | None
    address: str | None
    action: str
    target: str | None
    before: Any
    after: Any
    result: str
    detail: str | None
    previous_hash: str
    hash: str


class AuditPage(shapes.Page):
    results: list[AuditRow]


class AuditFilter(df.FilterSet):
    """Entries of the audit log."""

    q = Text(method="search", label=_("Text"))
    actor = Several(field_name="actor", label=_("Who"))
    action = Several(field_name="action", label=_("What"))
    result = Several(field_name="result", choices=list(AuditEntry.Result.choices), label=_("Result"))
    after = Moment(field_name="at", lookup_expr="gte", label=_("From"))
    before = Moment(field_name="at", lookup_expr="lt", label=_("Until"))

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def search(self, found: QuerySet[AuditEntry], _name: str, value: str) -> QuerySet[AuditEntry]:
        named = Q(target__icontains=value) | Q(actor__icontains=value)
        return found.filter(named | Q(detail__icontains=value) | Q(address__icontains=value))


COLUMNS = rows.columns(
    AuditRow,
    blank=("actor", "address", "target", "detail"),
    renamed={},
    make=lambda _keys, _moment: {},
    made=(),
    needed={"key": "pk"},
)
SORTS = {"sequence": "sequence", "at": "at"}


class Audit(lists.ListView):
    """The audit log (administrators)"""

    answers = {"GET": AuditPage}
    columns, sorts, filterset, sort = COLUMNS, SORTS, AuditFilter, "-sequence"
    parameters = lists.asked(AuditFilter, SORTS, COLUMNS.names())

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not request.user.has_perm(READ_AUDIT):
            raise PermissionDenied

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:  # noqa: ARG002 - of no cluster
        return AuditEntry.objects.all()
