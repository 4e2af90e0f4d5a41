"""Containers as they are now, and every placement that a node ever had."""

from typing import Any

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from monitoring.models.inventory import Node


class LargestFirst(models.Index):
    """Columns in the order of lists, where unknown comes last; SQLite's indexes, which cannot say so, have it as it is."""

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        if schema_editor.connection.vendor == "sqlite":
            return super().create_sql(model, schema_editor, using, **kwargs)
        columns = [F(name).desc(nulls_last=True) if down else F(name) for name, down in self.fields_orders]
        return models.Index(*columns, name=self.name).create_sql(model, schema_editor, using, **kwargs)


class Container(models.Model):
    """One container that runs now, with the figures of its node's newest report; null or "" = unknown."""

    class Kind(models.TextChoices):
        EXCLUSIVE = "exclusive", _("exclusive")
        NARROWED = "narrowed", _("narrowed")
        FLOATING = "floating", _("floating")

    class Qos(models.TextChoices):
        GUARANTEED = "Guaranteed", "Guaranteed"
        BURSTABLE = "Burstable", "Burstable"
        BEST_EFFORT = "BestEffort", "BestEffort"

    node = models.ForeignKey(Node, models.CASCADE, related_name="container_rows", verbose_name=_("node"))
    container_id = models.CharField(_("container id"), max_length=500)
    pod_uid = models.CharField(_("pod uid"), max_length=64, blank=True, db_index=True)
    namespace = models.CharField(_("namespace"), max_length=253, blank=True)
    pod = models.CharField(_("pod"), max_length=253, blank=True)
    name = models.CharField(_("container"), max_length=253, blank=True)
    kubernetes = models.BooleanField(_("in Kubernetes"))
    runtime = models.CharField(_("runtime"), max_length=32, blank=True)
    qos = models.CharField(_("QoS class"), max_length=16, choices=Qos.choices, blank=True)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices, blank=True)
    cpus = models.TextField(_("CPU list"), blank=True)
    """Kernel's list format: what it owns, else what it may run on."""
    cpu_count = models.PositiveIntegerField(_("CPUs"), null=True, blank=True)
    cpu_nodes = models.CharField(_("NUMA nodes of its CPUs"), max_length=1000, blank=True)
    memory_nodes = models.JSONField(_("memory by NUMA node"), null=True, blank=True)
    """{"0": bytes}; null = unknown."""
    device_nodes = models.CharField(_("NUMA nodes of its devices"), max_length=1000, blank=True)
    locality = models.FloatField(_("locality"), null=True, blank=True)
    cost = models.FloatField(_("cost"), null=True, blank=True)
    remote_pages = models.FloatField(_("remote pages"), null=True, blank=True)
    cross_cpu = models.BooleanField(_("CPUs cross"), null=True, blank=True)
    cross_memory = models.BooleanField(_("memory crosses"), null=True, blank=True)
    cross_device = models.BooleanField(_("devices cross"), null=True, blank=True)
    crossing = models.BooleanField(_("cross-NUMA"), null=True, blank=True)
    cpu_use = models.FloatField(_("CPUs in use"), null=True, blank=True)
    memory = models.BigIntegerField(_("memory"), null=True, blank=True)
    pinning = models.CharField(_("why (not) pinned"), max_length=40, blank=True)
    """Code of `numacore.diagnosis`, for which pages have a sentence."""
    told_by_api = models.CharField(_("told by the API server"), max_length=64, blank=True)
    """Which of namespace, pod, name and pod_uid the node did not tell and the API server's Pod did, parted by commas."""
    updated = models.DateTimeField(_("updated"))

    class Meta:
        ordering = ["namespace", "pod", "name"]
        verbose_name = _("container")
        verbose_name_plural = _("containers")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["node", "container_id"], name="container_on_node")]
        indexes = [
            # Orders that lists have, keys included. Orders by figures that change with every report have no index:
            # keeping them would cost each report more than sorting costs each page.
            LargestFirst(fields=["-cost", "id"], name="container_by_cost"),
            models.Index(fields=["namespace", "id"], name="container_by_namespace"),
            models.Index(fields=["pod", "id"], name="container_by_pod"),
            models.Index(fields=["name", "id"], name="container_by_name"),
            models.Index(fields=["crossing"], name="container_crossing"),
        ]

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.pod, self.name) if part) or self.container_id


class Placement(models.Model):
    """The containers section of a node's snapshots from `since` until `until` (null = still so)."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="placements")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    hash = models.CharField(max_length=64)
    data = models.BinaryField()
    """zstd of JSON of `numacore.wire.Containers`."""

    class Meta:
        ordering = ["-since"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["node", "-since"], name="placement_of_node")]

    def __str__(self) -> str:
        return f"{self.node_id} {self.since:%Y-%m-%d %H:%M:%S}"
