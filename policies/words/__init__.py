"""What this room's pages call things, in the reader's language."""

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.figures import causes

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
    "clean up failed pods": _("clean-up of failed pods"),
    "change by hand": _("change taken away to be made by hand"),
    "node pool": _("node pool"),
    "affinity policy": _("affinity policy"),
    "roll out affinity policy": _("rollout of an affinity policy"),
    "act of a rollout": _("act of a rollout on a node"),
}


DETAILS: dict[str, str | Promise] = {
    "wrong user name or password": _("wrong user name or password"),
    "too many wrong passwords": _("too many wrong passwords"),
    "first administrator": _("first administrator"),
    "started": _("started"),
    "stopped": _("stopped"),
    "ended": _("ended"),
    "asked for a plan": _("asked for a plan"),
    "discarded": _("discarded"),
    "confirmed": _("confirmed"),
    "paused": _("paused"),
    "resumed": _("resumed"),
    "rolled back": _("rolled back"),
}


OBSTACLES: dict[str, tuple[Promise, Promise]] = {
    "off": (
        _("Clean-up is switched off."),
        _("Set NUMAWEB_CLEANUP=1 for numaweb and apply cleaner.yaml of the chart, which lets its ServiceAccount get and delete pods."),
    ),
    "no-connection": (
        _("This cluster has no connection to Kubernetes."),
        _("Add one in the administration."),
    ),
    "access": (
        _("The connection to Kubernetes cannot be used."),
        _("Correct it in the administration."),
    ),
    "unreachable": (
        _("The API server does not answer."),
        _("Try again when it does; nothing was deleted."),
    ),
    "missing-right": (
        _("numaweb may not delete these pods."),
        _("Bind its ServiceAccount to the role of cleaner.yaml; nothing was deleted."),
    ),
    "nothing": (
        _("No failed pod is there."),
        _("There is nothing to clean up, or the filter leaves nothing."),
    ),
    "old": (
        _("This preview is too old."),
        _("Look again what is there now; nothing was deleted."),
    ),
    "busy": (
        _("Another clean-up of this cluster runs."),
        _("Wait until it has ended, or stop it."),
    ),
    "not-preview": (
        _("This clean-up is no longer where you saw it."),
        _("Load the page again."),
    ),
    "count": (
        _("The number is not that of the pods."),
        _("Type the number of pods that the preview shows."),
    ),
}  # fmt: skip


def obstacle(code: str, cause: str = "") -> tuple[str, str]:
    """Why a clean-up does not go on, and what to do; `cause` in others' words stands between."""
    text, remedy = OBSTACLES[code]
    return (f"{text} {causes.said(cause)}" if cause else str(text)), str(remedy)


def hindrance(error: str) -> str:
    """Why a clean-up does not get on, as `Cleanup.error` has it: a code, and perhaps the cause in others' words."""
    code, _colon, cause = error.partition(": ")
    return obstacle(code, cause)[0] if code in OBSTACLES else causes.said(error)


PHASE = "its phase is "
CAUSES: dict[str, str | Promise] = {
    "another pod has this name now": _("another pod has this name now"),
    "the work was interrupted while it was being deleted": _(
        "the work was interrupted while it was being deleted"
    ),
}


def cause(text: str) -> str:
    """Why a pod was left alone; an API server's own words stay as they are."""
    if text.startswith(PHASE):
        return gettext("its phase is %(phase)s") % {"phase": text.removeprefix(PHASE)}
    return str(CAUSES.get(text) or causes.said(text))


def detail(text: str) -> str:
    """A detail in words; most are facts that need no translation."""
    return str(DETAILS.get(text, text))


def action(name: str) -> str:
    """An action in words; one that has none yet is shown as it is recorded."""
    return str(ACTIONS.get(name, name))
