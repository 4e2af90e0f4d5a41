"""What this room's pages call things, in the reader's language."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

ACTIONS: dict[str, str | Promise] = {
    "sign-in": _("sign-in"),
    "sign-out": _("sign-out"),
    "lock-out": _("lock-out"),
    "change password": _("change of the own password"),
    "set password": _("password set by an administrator"),
    "wrong token": _("wrong or expired API token"),
    "forbidden": _("refused for a missing role"),
    "forged request": _("refused as a forged request"),
    "forged origin": _("refused as a forged WebSocket"),
    "add": _("addition"),
    "change": _("change"),
    "remove": _("removal"),
    "export audit log": _("export of the audit log"),
}


DETAILS: dict[str, str | Promise] = {
    "wrong user name or password": _("wrong user name or password"),
    "too many wrong passwords": _("too many wrong passwords"),
    "first administrator": _("first administrator"),
}


def detail(text: str) -> str:
    """A detail in words; most are facts that need no translation."""
    return str(DETAILS.get(text, text))


def action(name: str) -> str:
    """An action in words; one that has none yet is shown as it is recorded."""
    return str(ACTIONS.get(name, name))
