"""Wrong passwords: what is counted, who is locked out, and what the audit log gets. Used by django-axes by name.

Failures count per user name *and* address, so that nobody can lock out an administrator from elsewhere. Behind a
shared address that is not enough: a browser that signed in before carries a signed cookie and is counted apart, so
its owner still gets in while a stranger at the same address is locked out.

Signs-in and signs-out reach us through the axes handler, whichever door (page or OpenID Connect) they came by.
"""

import hashlib
from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.crypto import get_random_string

from numaweb import metrics, refusals
from policies import audit

COOKIE = "numaweb_browser"
COOKIE_AGE = 365 * 24 * 3600
SALT = "numaweb.lockout.browser"


class LockoutBackend(AxesStandaloneBackend):
    """Comes first and refuses whoever is locked out; it grants nothing."""

    def get_user(self, _user_id: object) -> None:
        return None

    def has_perm(self, *_: object, **__: object) -> bool:
        return False

    def with_perm(self, *_: object, **__: object) -> QuerySet[User]:
        return User.objects.none()


class AuditedHandler(AxesDatabaseHandler):
    def user_login_failed(
        self, sender: str, credentials: dict[str, Any], request: HttpRequest | None = None, **rest: Any
    ) -> None:
        refused_before = request is not None and getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **rest)
        if request is None:
            return
        locked = getattr(request, "axes_locked_out", False)
        metrics.SIGN_INS.labels(result="locked out" if locked else "wrong password").inc()
        if not refused_before:  # the lock-out itself is one entry, not one for each try after it
            self.write(request, "lock-out" if locked else "sign-in", credentials)

    def write(self, request: HttpRequest, action: str, credentials: dict[str, Any]) -> None:
        refusals.note(
            action=action,
            actor=str(credentials.get("username") or ""),
            address=address(request),
            target="",
            detail="too many wrong passwords" if action == "lock-out" else "wrong user name or password",
        )

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **rest: Any) -> None:
        super().user_logged_in(sender, request, user, **rest)
        metrics.SIGN_INS.labels(result="done").inc()
        audit.record_request(request, "sign-in", actor=user.get_username())

    def user_logged_out(self, sender: Any, request: HttpRequest, user: Any, **rest: Any) -> None:
        super().user_logged_out(sender, request, user, **rest)
        if user is not None:
            audit.record_request(request, "sign-out", actor=user.get_username())


def address(request: HttpRequest) -> str:
    """The visitor's address; asgi.py has already believed or disbelieved the proxies."""
    return str(request.META.get("REMOTE_ADDR", ""))


def recognise(request: HttpRequest, username: str) -> None:
    """Before a sign-in: a browser that this user signed in with before is counted as itself."""
    mark = signing.get_cookie_signer(salt=SALT).unsign(request.COOKIES[COOKIE], max_age=COOKIE_AGE)
    owner, _, _nonce = mark.partition(":")
    if owner == fingerprint(username):
        AxesProxyHandler.update_request(request)
        request.axes_user_agent = f"known browser {fingerprint(mark)}"  # type: ignore[attr-defined]
        request.numaweb_known_browser = True  # type: ignore[attr-defined]


def recognise_if_marked(request: HttpRequest, username: str) -> None:
    if COOKIE not in request.COOKIES:
        return
    try:
        recognise(request, username)
    except signing.BadSignature:
        return  # forged, too old, or made with another key: an unknown browser


def remember(response: HttpResponseBase, username: str) -> None:
    """After a sign-in: mark the browser as this user's."""
    mark = f"{fingerprint(username)}:{get_random_string(16)}"
    response.set_cookie(
        COOKIE,
        signing.get_cookie_signer(salt=SALT).sign(mark),
        max_age=COOKIE_AGE,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def parameters(request_or_attempt: object, _credentials: dict[str, Any] | None = None) -> list[list[str]]:
    known = getattr(request_or_attempt, "numaweb_known_browser", False)
    return [["username", "ip_address", "user_agent"]] if known else [["username", "ip_address"]]


def locked_out(
    request: HttpRequest, _response: HttpResponse | None, _credentials: dict[str, Any] | None
) -> HttpResponse:
    minutes = max(1, round(settings.AXES_COOLOFF_TIME * 60))
    return render(request, "registration/locked_out.html", {"minutes": minutes}, status=429)
