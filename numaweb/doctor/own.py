"""This program itself: its versions, its settings, its secrets."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.models.sealed import Unreadable
from monitoring.services import sealing
from numaweb import __version__
from numaweb.doctor.finding import Finding, State
from policies.models import OrderKey
from policies.services.rollout import signing
from policies.services.rollout.error import RolloutError

LIBRARIES = ("django", "celery", "redis", "psycopg", "kubernetes")


def versions() -> Iterator[Finding]:
    """Those of each neighbour stand with it: database, Redis, API servers, exporters."""
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    text = _("numaweb %(version)s (%(commit)s) with Python %(python)s; %(libraries)s.") % {
        "version": __version__,
        "commit": settings.NUMAWEB_COMMIT or _("commit unknown"),
        "python": platform.python_version(),
        "libraries": libraries,
    }
    yield Finding("versions", "ok", text)


def settings_fit() -> Iterator[Finding]:
    """Django's and our own rules, those for a deployment included; their words are English."""
    found = checks.run_checks(include_deployment_checks=True)
    for each in found:
        state: State = "failed" if each.is_serious(checks.ERROR) else "warning"
        yield Finding("settings", state, f"{each.id}: {each.msg}", each.hint or "")
    if not found:
        yield Finding("settings", "ok", _("They fit together."))


def secrets() -> Iterator[Finding]:
    yield sealed()
    yield order_key()


def sealed() -> Finding:
    """Whether every stored secret can be read with the present keys."""
    readable, lost = 0, []
    for model, column in sealing.columns():
        for row in model._default_manager.exclude(**{column: ""}).only("pk", column).order_by("pk"):
            if isinstance(getattr(row, column), Unreadable):
                lost.append(f"{model._meta.label_lower}.{column}")
            else:
                readable += 1
    if lost:
        return Finding(
            "secrets",
            "failed",
            ngettext(
                "%(number)s stored secret cannot be read: %(where)s.",
                "%(number)s stored secrets cannot be read: %(where)s.",
                len(lost),
            )
            % {"number": len(lost), "where": ", ".join(dict.fromkeys(lost))},
            _(
                "Add the key that they were encrypted with to NUMAWEB_SECRET_KEY_FALLBACKS, or enter them again in the administration."
            ),
        )
    text = ngettext(
        "%(number)s stored secret can be read.", "%(number)s stored secrets can be read.", readable
    ) % {"number": readable}
    return Finding("secrets", "ok", text)


def order_key() -> Finding:
    if not settings.NUMAWEB_ORDER_KEY and not OrderKey.objects.exists():
        return Finding(
            "secrets", "unchecked", _("There is no key for orders yet: it is made with the first rollout.")
        )
    try:
        signing.signer()
    except RolloutError:
        return Finding(
            "secrets",
            "failed",
            _("The key that signs orders to nodes cannot be used."),
            _(
                "Set NUMAWEB_ORDER_KEY_FILE to an Ed25519 key in PEM form, or add the key that the stored one was encrypted with to NUMAWEB_SECRET_KEY_FALLBACKS."
            ),
        )
    return Finding("secrets", "ok", _("The key that signs orders to nodes can be used."))
