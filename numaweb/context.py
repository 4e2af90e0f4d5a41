"""What every template gets: menu, languages, the lasting notices, and who is looking. The one context processor."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from numaweb import __version__, guide, roles, signin, slots


def page(request: HttpRequest) -> dict[str, Any]:
    """Values for base.html; a page of errors may come without a user (before the sign-in was looked at)."""
    user: Any = getattr(request, "user", None)
    known = bool(user and user.is_authenticated)
    role = roles.of(user) if known else None
    return {
        "numaweb_version": __version__,
        "role": role,
        "role_label": roles.LABELS.get(role or "", ""),
        "help_address": guide.address(_name(request)) if known else "",
        "menu": slots.menu(user) if known else [],
        "quick_entries": slots.entries(user) if known else [],
        "overview_cards": slots.cards(user) if known else [],
        "page_actions": slots.actions(user) if known else {},
        "http_warning": role == roles.ADMINISTRATOR and not settings.NUMAWEB_TLS,
        "first_password": signin.has_first_password(request) if known else False,
    }


def _name(request: HttpRequest) -> str:
    """Of the address; a page of errors may have none."""
    match = getattr(request, "resolver_match", None)
    return (match and match.url_name) or ""
