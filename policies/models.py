"""The audit log's rows, written by policies.audit alone (the database itself refuses to alter them, policies.seal); and clean-ups."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models import Cluster


class AuditEntry(models.Model):
    """One thing that somebody did or tried, chained to the entry before it by a hash."""

    class Result(models.TextChoices):
        DONE = "done", _("done")
        REFUSED = "refused", _("refused")
        FAILED = "failed", _("failed")

    sequence = models.BigIntegerField(_("number"), unique=True)
    at = models.DateTimeField(_("when"), db_index=True)
    # A name and not a foreign key: the entry must outlive the user, and keep the name of that day.
    actor = models.CharField(_("who"), max_length=254, blank=True, db_index=True)
    address = models.CharField(_("from where"), max_length=64, blank=True)
    action = models.CharField(_("what"), max_length=64, db_index=True)
    target = models.CharField(_("on what"), max_length=254, blank=True)
    before = models.JSONField(_("before"), null=True, blank=True)
    after = models.JSONField(_("after"), null=True, blank=True)
    result = models.CharField(_("result"), max_length=16, choices=Result.choices)
    detail = models.TextField(_("detail"), blank=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["-sequence"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.sequence} {self.action} {self.target}".rstrip()


class AuditHead(models.Model):
    """One row with the newest entry's number and hash: writers queue at it, and a cut-off tail shows by it."""

    sequence = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.sequence} {self.hash}"


class Cleanup(models.Model):
    """Failed pods of a cluster that are looked at to be deleted, and whether somebody had them deleted."""

    class State(models.TextChoices):
        PREVIEW = "preview", _("preview")
        RUNNING = "running", _("running")
        STOPPED = "stopped", _("stopped")
        DONE = "done", _("done")

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="cleanups", verbose_name=_("cluster"))
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.PREVIEW)
    made = models.DateTimeField(_("made"))
    made_by = models.CharField(_("made by"), max_length=254)
    started = models.DateTimeField(_("started"), null=True, blank=True)
    started_by = models.CharField(_("started by"), max_length=254, blank=True)
    address = models.CharField(_("from where"), max_length=64, blank=True)
    ended = models.DateTimeField(_("ended"), null=True, blank=True)
    left_out = models.PositiveIntegerField(default=0)
    """Pods that are beyond what one clean-up takes on."""
    missing = models.JSONField(_("missing rights"), default=list)
    """As RBAC writes them, for instance "delete pods"; with any, nothing is deleted."""
    error = models.CharField(_("cause"), max_length=500, blank=True)
    """Why the work does not get on at the moment: a code, and the cause in others' words behind a colon; "" = it does."""

    class Meta:
        ordering = ["-pk"]
        default_permissions = ("view",)
        permissions = [("operate_cleanup", _("Can clean up failed pods"))]
        verbose_name = _("clean-up")
        verbose_name_plural = _("clean-ups")
        indexes = [models.Index(fields=["cluster", "state"], name="cleanup_state")]

    def __str__(self) -> str:
        return f"clean-up {self.pk}"


class CleanupPod(models.Model):
    """One pod of a clean-up. The row is there before anything is done to the pod."""

    class Outcome(models.TextChoices):
        WAITING = "waiting", _("waits")
        ASKED = "asked", _("being deleted")
        DELETED = "deleted", _("deleted")
        GONE = "gone", _("was gone already")
        CHANGED = "changed", _("changed meanwhile, left alone")
        REFUSED = "refused", _("refused")

    cleanup = models.ForeignKey(Cleanup, models.CASCADE, related_name="pods")
    uid = models.CharField(_("uid"), max_length=64)
    namespace = models.CharField(_("namespace"), max_length=63)
    name = models.CharField(_("name"), max_length=253)
    node_name = models.CharField(_("node"), max_length=253, blank=True)
    owner_kind = models.CharField(_("kind of owner"), max_length=63, blank=True)
    owner_name = models.CharField(_("owner"), max_length=253, blank=True)
    reason = models.CharField(_("reason"), max_length=128)
    outcome = models.CharField(_("outcome"), max_length=8, choices=Outcome.choices, default=Outcome.WAITING)
    cause = models.CharField(_("cause"), max_length=500, blank=True)
    at = models.DateTimeField(_("when"), null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["cleanup", "uid"], name="cleanup_pod")]
        indexes = [models.Index(fields=["cleanup", "outcome"], name="cleanup_outcome")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} {self.outcome}"
