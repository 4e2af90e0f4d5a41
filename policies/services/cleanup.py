"""Failed pods are looked at, counted and, when somebody says so, deleted: exactly those that were looked at.

A preview writes a row for each pod before anything is done. Starting it needs the same right again, and is in the audit log before the
first pod goes. The work goes in bounded batches under a lease, so it is safe to run twice and goes on after a crash where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from monitoring.kube.access import Access
from monitoring.kube.errors import ApiError
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Cluster, Connection, Failure
from monitoring.selectors import failures, reaching
from monitoring.services import leases
from monitoring.services.leases import LeaseLostError, Tenure
from policies import audit, selectors
from policies.audit import Event
from policies.gateway import Gateway
from policies.models import Cleanup, CleanupPod
from policies.services.who import Who

State, Outcome = Cleanup.State, CleanupPod.Outcome
MOST = 20_000
"""Pods of one clean-up; more are left for the next one."""
BATCH = 100
"""Pods that are deleted before the worker may do something else."""
PATIENCE = 30.0
"""Seconds after which a worker that does not move counts as dead; longer than the two questions about one pod may take."""
PREVIEW_LASTS = timedelta(hours=1)
KEPT = timedelta(days=30)
ACTION = "clean up failed pods"

Obstacle = Literal[
    "off", "no-connection", "access", "unreachable", "missing-right", "nothing", "old", "busy", "not-preview"
]
Open = Callable[[Access], Gateway]


class CleanupError(Exception):
    """Why a clean-up cannot be looked at or started: a code for which pages have a sentence, and the cause in others' words."""

    def __init__(self, code: Obstacle, cause: str = "") -> None:
        super().__init__(f"{code}: {cause}" if cause else code)
        self.code: Obstacle = code
        self.cause = cause


def preview(
    cluster: Cluster, lines: Iterable[Failure], who: Who, now: datetime, enter: Open = Gateway
) -> Cleanup:
    """Writes down which pods of these lines would go, and which right is missing. Nothing else happens. Raises CleanupError."""
    gateway = _gateway(cluster, enter)
    pods = list(failures.pods_of(cluster, lines))
    if not pods:
        raise CleanupError("nothing")
    taken = pods[:MOST]
    missing = _missing(gateway, {pod.namespace for pod in taken})
    with transaction.atomic():
        made = Cleanup.objects.create(
            cluster=cluster, made=now, made_by=who.name, missing=missing, left_out=len(pods) - len(taken)
        )
        CleanupPod.objects.bulk_create(
            (
                CleanupPod(
                    cleanup=made,
                    uid=pod.uid,
                    namespace=pod.namespace,
                    name=pod.name,
                    node_name=pod.node_name,
                    owner_kind=pod.owner_kind,
                    owner_name=pod.owner_name,
                    reason=pod.reason,
                )
                for pod in taken
            ),
            batch_size=500,
        )
    return made


def start(cleanup: Cleanup, who: Who, now: datetime, enter: Open = Gateway) -> None:
    """From now on the pods of a preview may go. Whoever calls enqueues the work. Raises CleanupError."""
    gateway = _gateway(cleanup.cluster, enter)
    missing = _missing(gateway, set(cleanup.pods.values_list("namespace", flat=True).distinct()))
    if missing:
        Cleanup.objects.filter(pk=cleanup.pk).update(missing=missing)
        _tell(cleanup, who, "refused", detail=f"missing right: {', '.join(missing)}"[:500])
        raise CleanupError("missing-right", ", ".join(missing))
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cleanup.cluster_id)  # of one cluster one at a time
        held = Cleanup.objects.select_for_update().get(pk=cleanup.pk)
        if held.state != State.PREVIEW:
            raise CleanupError("not-preview")
        if now - held.made > PREVIEW_LASTS:
            raise CleanupError("old")
        if Cleanup.objects.filter(cluster=held.cluster_id, state=State.RUNNING).exists():
            raise CleanupError("busy")
        held.state, held.started, held.started_by, held.address = (
            State.RUNNING,
            now,
            who.name,
            who.address[:64],
        )
        held.missing = []
        held.save()
        after = {"pods": held.pods.count(), "owners": selectors.cleanup_owners(held)}
        _tell(held, who, "done", after=after, detail="started")


def stop(cleanup: Cleanup, who: Who, now: datetime) -> None:
    """No further pod goes. Raises CleanupError where nothing runs."""
    with transaction.atomic():
        stopped = Cleanup.objects.filter(pk=cleanup.pk, state=State.RUNNING).update(
            state=State.STOPPED, ended=now, error=""
        )
        if not stopped:
            raise CleanupError("not-preview")
        _tell(cleanup, who, "done", after=selectors.cleanup_counts(cleanup), detail="stopped")


def work(number: int, enter: Open = Gateway) -> bool:
    """Deletes up to BATCH pods of a clean-up that was started; whether there are more. Two at once: the second does nothing."""
    tenure = leases.take(f"cleanup/{number}", PATIENCE)
    if tenure is None:
        return False
    try:
        return _work(number, tenure, enter)
    except LeaseLostError:
        return False
    finally:
        leases.give_up(tenure)


def _work(number: int, tenure: Tenure, enter: Open) -> bool:
    cleanup = Cleanup.objects.select_related("cluster").filter(pk=number, state=State.RUNNING).first()
    if cleanup is None:
        return False
    try:
        gateway = _gateway(cleanup.cluster, enter)
        for pod in list(_left(cleanup)[:BATCH]):
            if not _running(number):
                return False
            _remove(pod, gateway, tenure)
    except (CleanupError, ApiError) as error:
        cause = f"unreachable: {error.message}" if isinstance(error, ApiError) else str(error)
        Cleanup.objects.filter(pk=number).update(error=cause[:500])
        return False
    Cleanup.objects.filter(pk=number).exclude(error="").update(error="")
    if _left(cleanup).exists():
        return True
    _finish(cleanup, tenure)
    return False


def _left(cleanup: Cleanup) -> QuerySet[CleanupPod]:
    return cleanup.pods.filter(outcome__in=(Outcome.WAITING, Outcome.ASKED)).order_by("pk")


def _running(number: int) -> bool:
    return Cleanup.objects.filter(pk=number, state=State.RUNNING).exists()


def _remove(pod: CleanupPod, gateway: Gateway, tenure: Tenure) -> None:
    """The row says that the pod is asked for before the API server hears of it."""
    again = pod.outcome == Outcome.ASKED
    with transaction.atomic():
        leases.fence(tenure)
        CleanupPod.objects.filter(pk=pod.pk).update(outcome=Outcome.ASKED, at=timezone.now())
    done = gateway.delete_failed_pod(pod.namespace, pod.name, pod.uid)
    cause = done.cause
    if again and done.outcome == "gone":
        cause = "the work was interrupted while it was being deleted"
    with transaction.atomic():
        leases.fence(tenure)
        CleanupPod.objects.filter(pk=pod.pk).update(
            outcome=done.outcome, cause=cause[:500].replace("\0", ""), at=timezone.now()
        )


def _finish(cleanup: Cleanup, tenure: Tenure) -> None:
    with transaction.atomic():
        leases.fence(tenure)
        if Cleanup.objects.filter(pk=cleanup.pk, state=State.RUNNING).update(
            state=State.DONE, ended=timezone.now(), error=""
        ):
            who = Who(cleanup.started_by, cleanup.address)
            _tell(cleanup, who, "done", after=selectors.cleanup_counts(cleanup), detail="ended")


def unfinished() -> list[int]:
    """Clean-ups that run and at which nobody seems to work."""
    running = Cleanup.objects.filter(state=State.RUNNING).values_list("pk", flat=True)
    return [number for number in running if leases.suspect(f"cleanup/{number}")]


def forget(now: datetime) -> None:
    """Removes previews that nobody started, and clean-ups of long ago; the audit log keeps what was done."""
    Cleanup.objects.filter(state=State.PREVIEW, made__lt=now - 2 * PREVIEW_LASTS).delete()
    Cleanup.objects.filter(ended__lt=now - KEPT).delete()


# ---------------------------------------------------------------- what has to be so before


def _gateway(cluster: Cluster, enter: Open) -> Gateway:
    if not settings.NUMAWEB_CLEANUP:
        raise CleanupError("off")
    connection = Connection.objects.filter(cluster=cluster, enabled=True).first()
    if connection is None:
        raise CleanupError("no-connection")
    try:
        return enter(reaching.access_of(connection))
    except AccessError as error:
        raise CleanupError("access", str(error)) from None
    except ApiError as error:
        raise CleanupError("unreachable", error.message) from None


def _missing(gateway: Gateway, namespaces: set[str]) -> list[str]:
    try:
        return [str(right) for right in gateway.missing(namespaces)]
    except ApiError as error:
        raise CleanupError("unreachable", error.message) from None


def _tell(cleanup: Cleanup, who: Who, result: str, *, after: object = None, detail: str) -> None:
    audit.record(
        Event(
            action=ACTION,
            actor=who.name,
            address=who.address,
            target=f"cluster {cleanup.cluster.slug} clean-up {cleanup.pk}",
            after=after,
            result=result,
            detail=detail,
        )
    )
