"""How the connection to a cluster and its watches go, as rows that pages show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from monitoring.kube.client import Version
from monitoring.kube.rights import Right
from monitoring.kube.sinks import Absent, Listing, Waiting, Watching, WatchState
from monitoring.models import Connection, WatchHealth

State = WatchHealth.State
HEARD_EVERY = timedelta(seconds=10)
LONGEST = 500


class Health:
    """Writes the state of one resource's watch."""

    def __init__(self, connection: int, resource: str) -> None:
        self._connection, self._resource = connection, resource
        self._heard: datetime | None = None

    def told(self, state: WatchState, known: int | None) -> None:
        """A reflector's state."""
        values: dict[str, Any] = {"since": _moment(state.since), "error": "", "remedy": ""}
        match state:
            case Listing():
                values["state"] = State.LISTING
            case Watching():
                values |= {"state": State.WATCHING, "listed": _moment(state.since), "objects_known": known}
                if state.unreadable:
                    values["error"] = f"{state.unreadable} cannot be read: {state.example}"[:LONGEST]
            case Waiting():
                refused = state.cause == "Forbidden"
                values |= {
                    "state": State.FORBIDDEN if refused else State.WAITING,
                    "error": state.error[:LONGEST],
                    "remedy": state.remedy,
                }
            case Absent():
                values |= {"state": State.ABSENT, "objects_known": None, "listed": None}
        row, _made = WatchHealth.objects.update_or_create(
            connection_id=self._connection, resource=self._resource, defaults=values
        )
        if isinstance(state, Waiting):
            WatchHealth.objects.filter(pk=row.pk).update(failures=row.failures + 1)

    def heard(self, now: datetime) -> None:
        """Something came; written now and then."""
        if self._heard is None or now - self._heard >= HEARD_EVERY:
            self._heard = now
            WatchHealth.objects.filter(connection=self._connection, resource=self._resource).update(heard=now)


def reached(connection: int, server: str, version: Version, missing: Sequence[Right], now: datetime) -> None:
    """The API server answers."""
    Connection.objects.filter(pk=connection).update(
        state=Connection.State.OK,
        reached=server,
        version=version.git_version[:64],
        last_try=now,
        last_ok=now,
        error="",
        remedy="",
        missing=[
            {
                "verb": each.verb,
                "group": each.group,
                "resource": each.resource,
                "subresource": each.subresource,
                "why": each.why,
            }
            for each in missing
        ],
    )


def failed(connection: int, server: str, cause: str, remedy: str, now: datetime) -> None:
    """The API server does not answer, or nobody knows how to ask it."""
    Connection.objects.filter(pk=connection).update(
        state=Connection.State.FAILING,
        reached=server,
        last_try=now,
        error=cause[:LONGEST],
        remedy=remedy,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
