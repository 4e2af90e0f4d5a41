"""The audit log's rows, written by policies.audit alone; the database itself refuses to alter them (policies.seal)."""

from django.db import models
from django.utils.translation import gettext_lazy as _


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
