"""The audit page and its exports, for administrators."""

import csv
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from django import forms
from django.contrib.auth.mixins import PermissionRequiredMixin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.generic import ListView, View

from policies import audit, selectors, words
from policies.models import AuditEntry

PER_PAGE = 50
EXPORT_ROWS = 100_000
COLUMNS = (
    "sequence",
    "at",
    "actor",
    "address",
    "action",
    "target",
    "before",
    "after",
    "result",
    "detail",
    "hash",
)
# A spreadsheet would run a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class AuditFilter(forms.Form):
    """The filter in the address; what it cannot read it says, and does not filter by it."""

    text = forms.CharField(required=False, max_length=100, label=_("Text"))
    actor = forms.CharField(required=False, max_length=254, label=_("Who"))
    action = forms.CharField(required=False, max_length=64, label=_("What"))
    result = forms.ChoiceField(
        required=False, choices=[("", _("any")), *AuditEntry.Result.choices], label=_("Result")
    )
    since = forms.DateTimeField(
        required=False, label=_("From"), widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    until = forms.DateTimeField(
        required=False, label=_("Until"), widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )

    def wanted(self) -> selectors.Filter:
        self.full_clean()
        return msgspec.convert({k: v for k, v in self.cleaned_data.items() if v}, selectors.Filter)


CRUMBS = ({"label": _("Administration")}, {"label": _("Audit")})


class AuditorsOnly(PermissionRequiredMixin):
    permission_required = "policies.view_auditentry"


class AuditList(AuditorsOnly, ListView[AuditEntry]):
    template_name = "policies/audit.html"
    context_object_name = "entries"
    paginate_by = PER_PAGE

    def get_queryset(self) -> QuerySet[AuditEntry]:
        self.form = AuditFilter(self.request.GET)
        return selectors.entries(self.form.wanted())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kept = self.request.GET.copy()
        kept.pop("page", None)
        given = super().get_context_data(
            form=self.form, query=kept.urlencode(), title=_("Audit"), crumbs=CRUMBS, **kwargs
        )
        actions = [(name, words.action(name)) for name in selectors.actions()]
        return {**given, "actions": actions, "rows": [shown(entry) for entry in given["entries"]]}


class AuditExport(AuditorsOnly, View):
    """The filtered entries as CSV or JSON, newest first; taking them away is itself an entry."""

    def get(self, request: HttpRequest, form: str) -> HttpResponse:
        if form not in WRITERS:
            raise Http404
        asked = AuditFilter(request.GET)
        if not asked.is_valid():
            lines = [f"{field.label}: {error}" for field in asked for error in field.errors]
            return HttpResponse("\n".join(lines), status=400, content_type="text/plain; charset=utf-8")
        wanted = asked.wanted()
        rows = [row(entry) for entry in selectors.entries(wanted)[:EXPORT_ROWS]]
        audit.record_request(request, "export audit log", target=form, detail=f"{len(rows)} entries")
        content_type, write = WRITERS[form]
        response = HttpResponse(content_type=content_type)
        response["Content-Disposition"] = f'attachment; filename="numaweb-audit.{form}"'
        write(response, rows)
        return response


class Shown(msgspec.Struct, frozen=True):
    """An entry as the page shows it: its action in the reader's language, and only what is different."""

    entry: AuditEntry
    action: str
    detail: str
    changes: list[tuple[str, Any, Any]]


def shown(entry: AuditEntry) -> Shown:
    before, after = (value if isinstance(value, dict) else {} for value in (entry.before, entry.after))
    names = sorted({*before, *after})
    pairs = [(name, before.get(name), after.get(name)) for name in names]
    changes = [(name, old, new) for name, old, new in pairs if (old or None) != (new or None)]
    return Shown(entry, words.action(entry.action), words.detail(entry.detail), changes)


def row(entry: AuditEntry) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in COLUMNS}
    values["at"] = entry.at.isoformat()
    return values


def write_csv(response: HttpResponse, rows: list[dict[str, Any]]) -> None:
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    writer.writerows(cells(values) for values in rows)


def cells(values: dict[str, Any]) -> Iterator[str]:
    for value in values.values():
        text = (
            ""
            if value is None
            else value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False)
        )
        yield f"'{text}" if text.startswith(FORMULA_STARTS) else text


def write_json(response: HttpResponse, rows: list[dict[str, Any]]) -> None:
    json.dump(rows, response, ensure_ascii=False, indent=1)


WRITERS = {"csv": ("text/csv; charset=utf-8", write_csv), "json": ("application/json", write_json)}
