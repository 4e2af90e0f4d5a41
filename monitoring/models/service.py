"""What the service itself needs: who works now, and what administrators may set while it runs."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models.sealed import SealedField


class Lease(models.Model):
    """Who does a piece of work that only one may do at a time (`monitoring.services.leases`)."""

    name = models.CharField(max_length=64, primary_key=True)
    holder = models.CharField(max_length=200, blank=True)
    """"" = free."""
    token = models.CharField(max_length=32, blank=True)
    """Made anew for each tenure: the fence that every write of the holder checks."""
    beats = models.PositiveBigIntegerField(default=0)
    """Raised by each renewal. Whoever sees it stand still for long enough, by an own monotonic clock, may take over."""
    seen = models.PositiveBigIntegerField(default=0)
    """The number as it was when somebody last looked whether the holder works."""

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} {self.holder}"


class Settings(models.Model):
    """One row: what administrators may change while numaweb runs. What is not here comes from the environment."""

    busy_threshold = models.FloatField(
        _("occupied from"),
        default=0.10,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("Busy share, 0 to 1, above which a shared CPU counts as occupied."),
    )
    detail_hours = models.PositiveIntegerField(
        _("hours of full detail"),
        default=24,
        validators=[MinValueValidator(1), MaxValueValidator(24 * 30)],
        help_text=_("History with a value every 10 seconds is kept this long."),
    )
    minute_days = models.PositiveIntegerField(
        _("days of minutes"),
        default=14,
        validators=[MinValueValidator(1), MaxValueValidator(366)],
        help_text=_("History with a value every minute is kept this long."),
    )
    quarter_days = models.PositiveIntegerField(
        _("days of quarter hours"),
        default=400,
        validators=[MinValueValidator(1), MaxValueValidator(3660)],
        help_text=_("History with a value every 15 minutes is kept this long."),
    )
    placement_days = models.PositiveIntegerField(
        _("days of placements and events"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(3660)],
        help_text=_("Which containers sat where, and what happened to nodes, is kept this long."),
    )
    event_days = models.PositiveIntegerField(
        _("days of the clusters' events"),
        default=14,
        validators=[MinValueValidator(1), MaxValueValidator(3660)],
        help_text=_(
            "Events of Kubernetes that concern NUMA are kept this long; the API server itself forgets them after an hour."
        ),
    )
    failure_days = models.PositiveIntegerField(
        _("days of failed admissions"),
        default=90,
        validators=[MinValueValidator(1), MaxValueValidator(3660)],
        help_text=_(
            "A line of refused pods is kept this long after its newest pod, unless one of them is still there."
        ),
    )
    gone_hours = models.PositiveIntegerField(
        _("hours until a node counts as gone"),
        default=24,
        validators=[MinValueValidator(1), MaxValueValidator(24 * 366)],
        help_text=_("A node that did not answer for so long leaves the lists."),
    )
    prometheus_url = models.CharField(
        _("Prometheus address"),
        max_length=500,
        blank=True,
        help_text=_(
            "Base address such as https://prometheus.example.org; empty = from the environment, if any."
        ),
    )
    prometheus_token = SealedField(_("Prometheus bearer token"), max_length=4096, blank=True)
    """Secret: never shown, never in a log."""

    class Meta:
        verbose_name = _("settings")
        verbose_name_plural = _("settings")
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return str(_("settings"))
