"""Failed pods that are looked at to be deleted, and what became of each."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models import Cluster


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
