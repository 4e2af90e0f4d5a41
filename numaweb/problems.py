"""What somebody sees when something goes wrong: a page with the cause and the remedy, or problem details for programs.

Pages for 400, 403, 404, 500, 503 and forged requests; `application/problem+json` (RFC 9457) under /api/.
"""

import sys
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.csrf import requires_csrf_token
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from monitoring.services import storing
from numaweb import metrics, refusals, roles
from policies import audit

CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"


def details(status: int, detail: str, **extra: Any) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **extra,
    }


def answer(request: HttpRequest, status: int, title: str, detail: str, remedy: str) -> HttpResponse:
    if request.path.startswith(API_PREFIX):
        return JsonResponse(details(status, detail), status=status, content_type=CONTENT_TYPE)
    request_id = getattr(request, "request_id", "")
    context = {
        "status": status,
        "title": title,
        "detail": detail,
        "remedy": remedy,
        "request_id": request_id,
    }
    # The page of an unexpected error asks for nothing that may be what failed: no user, no menu, no database.
    if status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE):
        return HttpResponse(render_to_string("500.html", context), status=status)
    return render(request, "problem.html", context, status=status)


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django names it
    return answer(
        request,
        400,
        _("Bad request"),
        _("The server could not understand this request."),
        _("Go back and try again."),
    )


@requires_csrf_token
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    role = missing_role(request)
    note_refusal(request, "forbidden", f"needs the role {role}" if role else str(exception))
    return answer(
        request, 403, _("Not permitted"), lacking(request, role), _("Ask an administrator for this role.")
    )


def lacking(request: HttpRequest, role: str | None) -> str:
    if role is None:
        return _("Your account may not do this.")
    held = roles.of(request.user)
    if held is None:
        return _("This needs the role “%(role)s”; your account has no role.") % {"role": roles.LABELS[role]}
    return _("This needs the role “%(role)s”; yours is “%(held)s”.") % {
        "role": roles.LABELS[role],
        "held": roles.LABELS[held],
    }


def missing_role(request: HttpRequest) -> str | None:
    """The lowest role that the refused view asks for, from its `permission_required`."""
    view = getattr(getattr(request.resolver_match, "func", None), "view_class", None)
    required = getattr(view, "permission_required", None)
    if not required:
        return None
    wanted = [required] if isinstance(required, str) else list(required)
    lacks = [roles.least_with(name) for name in wanted if not request.user.has_perm(name)]
    return max(lacks, key=roles.NAMES.index, default=None)


@requires_csrf_token
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """With what the page says is missing; an address that no page has comes without words."""
    missing = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    return answer(
        request,
        404,
        _("Not found"),
        " ".join(part for part in (_("There is nothing at this address."), missing) if part),
        _("It may have been removed or renamed; the search knows what is there."),
    )


@requires_csrf_token
def failed(request: HttpRequest) -> HttpResponse:
    """Django calls it while the error is being handled, without naming it."""
    error = sys.exc_info()[1]
    metrics.FAILURES.labels(kind=type(error).__name__).inc()
    if isinstance(error, DatabaseError):
        metrics.DATABASE_ERRORS.inc()
    if isinstance(error, OperationalError):
        return without_database(request, error)
    return answer(
        request,
        500,
        _("Something went wrong here"),
        _("The server met an error that it did not expect; it has been logged."),
        _("Try again; if it stays, give an administrator the number of this request: the log has it."),
    )


def without_database(request: HttpRequest, error: OperationalError) -> HttpResponse:
    """The database is away, busy or full: nothing was changed, and trying again may help."""
    kind = storing.kind_of(error)
    if kind == "full":
        detail = _("The disk of the database is full. Nothing was changed.")
        remedy = _("An administrator must free space; then try again.")
    elif kind == "locked":
        detail = _("The database is busy with other writes. Nothing was changed.")
        remedy = _("Try again in a moment.")
    else:
        detail = _("The database cannot be reached. Nothing was changed.")
        remedy = _(
            "Try again in a moment; if it stays, an administrator should look at /readyz and at the log."
        )
    response = answer(request, 503, _("The database does not answer"), detail, remedy)
    response["Retry-After"] = "5"
    return response


@requires_csrf_token
def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token or origin is not ours (CSRF)."""
    note_refusal(request, "forged request", reason)
    return answer(
        request,
        403,
        _("This form cannot be accepted"),
        _("It did not come from this site, or it was open for too long: %(reason)s") % {"reason": reason},
        _("Load the page again and repeat what you did. Cookies must be allowed."),
    )


def note_refusal(request: HttpRequest, action: str, detail: str) -> None:
    refusals.note(
        action=action,
        actor=audit.actor(request),
        address=request.META.get("REMOTE_ADDR", ""),
        target=f"{request.method} {request.path}",
        detail=detail,
    )


def api_problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's exception handler."""
    response = exception_handler(error, context)
    if response is None:
        set_rollback()
        return None
    request = context["request"]._request
    extra: dict[str, Any] = {}
    if isinstance(error, ValidationError):
        extra["errors"] = error.detail
    if response.status_code == HTTPStatus.FORBIDDEN:
        request.user = context["request"].user
        note_refusal(request, "forbidden", text_of(error))
    response.data = details(response.status_code, text_of(error), **extra)
    response.content_type = CONTENT_TYPE
    return response


def text_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _("Some values are not acceptable; “errors” names them.")
    if isinstance(error, APIException) and isinstance(error.detail, str):
        return str(error.detail)
    if isinstance(error, Http404):
        return _("There is nothing at this address.")
    if isinstance(error, PermissionDenied):
        return _("Your account may not do this.")
    return str(error)
