"""Clusters, the exporters' addresses, nodes and their topologies, and what numaweb saw happen to them."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models.sealed import SealedField


class Cluster(models.Model):
    """A group of nodes; its slug is part of every page and API address."""

    class Kind(models.TextChoices):
        PLAIN = "plain", _("plain machines")
        SIMULATED = "simulated", _("simulated")
        KUBERNETES = "kubernetes", _("Kubernetes")

    slug = models.SlugField(_("name in addresses"), max_length=63, unique=True)
    name = models.CharField(_("name"), max_length=200)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices, default=Kind.KUBERNETES)
    enabled = models.BooleanField(_("collected"), default=True)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    cells = models.PositiveIntegerField(default=0, editable=False)
    """Length of the cluster's live planes: where the next new node's cells begin."""

    class Meta:
        ordering = ["name"]
        verbose_name = _("cluster")
        verbose_name_plural = _("clusters")

    def __str__(self) -> str:
        return self.name


class Topology(models.Model):
    """A machine's topology, stored once however many nodes have it."""

    hash = models.CharField(_("hash"), max_length=64, primary_key=True)
    document = models.BinaryField()
    """JSON of `numacore.topology.Topology`."""
    cpus = models.PositiveIntegerField(_("CPUs"))
    numa_nodes = models.PositiveIntegerField(_("NUMA nodes"))
    sockets = models.PositiveIntegerField(_("sockets"))
    threads_per_core = models.PositiveIntegerField(_("threads per core"), null=True, blank=True)

    class Meta:
        verbose_name = _("topology")
        verbose_name_plural = _("topologies")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.hash[:12]


class Node(models.Model):
    """A node: cluster, name and uid (Kubernetes) or machine-id. Same name and new uid = another node.

    The current node of a name is the one with `gone_at` null. The summary columns are those of the newest report;
    null (or "" for a text) = unknown.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes", verbose_name=_("cluster"))
    name = models.CharField(_("name"), max_length=253)
    uid = models.CharField(_("uid"), max_length=64, blank=True)
    """Kubernetes uid or machine-id; "" where the exporter may not tell."""
    topology = models.ForeignKey(
        Topology, models.PROTECT, null=True, blank=True, related_name="nodes", verbose_name=_("topology")
    )
    """null = no exporter ever told of this node: the API server alone knows it."""
    slot = models.PositiveIntegerField(_("place in the live planes"), null=True, blank=True)
    """Index of its first cell in the cluster's live planes; it has as many cells as its topology has NUMA nodes."""
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"), null=True, blank=True)
    """When its exporter answered last."""
    gone_at = models.DateTimeField(_("gone since"), null=True, blank=True)
    attributes = models.JSONField(default=dict)
    """JSON of `numacore.topology.Attributes`."""
    boot_id = models.CharField(_("boot id"), max_length=64, blank=True)

    sockets = models.PositiveIntegerField(_("sockets"), null=True, blank=True)
    numa_nodes = models.PositiveIntegerField(_("NUMA nodes"), null=True, blank=True)
    cpus = models.PositiveIntegerField(_("CPUs"), null=True, blank=True)
    cpus_offline = models.PositiveIntegerField(_("offline CPUs"), null=True, blank=True)
    cpus_reserved = models.PositiveIntegerField(_("reserved CPUs"), null=True, blank=True)
    cpus_exclusive = models.PositiveIntegerField(_("exclusive CPUs"), null=True, blank=True)
    cpus_shared = models.PositiveIntegerField(_("shared CPUs"), null=True, blank=True)
    cpus_unknown = models.PositiveIntegerField(_("CPUs of unknown ownership"), null=True, blank=True)
    cpus_idle = models.PositiveIntegerField(_("idle CPUs"), null=True, blank=True)
    memory_total = models.BigIntegerField(_("memory"), null=True, blank=True)
    memory_used = models.BigIntegerField(_("used memory"), null=True, blank=True)
    busy = models.FloatField(_("busy"), null=True, blank=True)
    pinned = models.PositiveIntegerField(_("pinned CPUs"), null=True, blank=True)
    pinnable = models.PositiveIntegerField(_("CPUs that may be pinned"), null=True, blank=True)
    free_cpus = models.JSONField(_("free CPUs by NUMA node"), null=True, blank=True)
    """CPUs that may become exclusive and are not, by the id of each NUMA node that has CPUs; null in it = unknown."""
    cpu_requested = models.FloatField(_("requested CPUs"), null=True, blank=True)
    cpu_allocatable = models.FloatField(_("allocatable CPUs"), null=True, blank=True)
    cpu_allocation = models.FloatField(_("CPU allocation"), null=True, blank=True)
    memory_allocation = models.FloatField(_("memory allocation"), null=True, blank=True)
    requests_unknown = models.PositiveIntegerField(_("containers of unknown requests"), null=True, blank=True)
    topology_policy = models.CharField(_("topology policy"), max_length=64, blank=True)
    topology_scope = models.CharField(_("topology scope"), max_length=64, blank=True)
    cpu_policy = models.CharField(_("CPU manager policy"), max_length=64, blank=True)
    memory_policy = models.CharField(_("memory manager policy"), max_length=64, blank=True)
    containers = models.PositiveIntegerField(_("number of containers"), null=True, blank=True)
    exclusive_containers = models.PositiveIntegerField(_("exclusive containers"), null=True, blank=True)
    crossing = models.PositiveIntegerField(_("cross-NUMA containers"), null=True, blank=True)
    crossing_unknown = models.PositiveIntegerField(_("containers of unknown locality"), null=True, blank=True)
    worst_cost = models.FloatField(_("highest cost"), null=True, blank=True)
    problems = models.PositiveIntegerField(_("problems of readers"), null=True, blank=True)
    contradictions = models.PositiveIntegerField(_("contradictions"), null=True, blank=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name", "uid"], name="node_identity"),
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=models.Q(gone_at=None),
                name="one_current_node_of_a_name",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "gone_at", "name"], name="node_current")]

    def __str__(self) -> str:
        return self.name


class Endpoint(models.Model):
    """The address of one exporter, how it last answered, and which node speaks there."""

    class State(models.TextChoices):
        NEW = "new", _("new")
        OK = "ok", _("answers")
        FAILING = "failing", _("fails")

    class Origin(models.TextChoices):
        GIVEN = "given", _("entered")
        POD = "pod", _("its pod")
        SERVICE = "service", _("a headless Service")

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="endpoints", verbose_name=_("cluster"))
    url = models.CharField(_("address"), max_length=500)
    name = models.CharField(_("name"), max_length=253, blank=True)
    token = SealedField(_("bearer token"), max_length=4096, blank=True)
    """Secret: never shown, never in a log."""
    ca = models.TextField(_("certificate authority (PEM)"), max_length=65_536, blank=True)
    """Whom its certificate must be from; "" = one that this machine trusts."""
    server_name = models.CharField(_("name in its certificate"), max_length=253, blank=True)
    """Where it is not the host of the address."""
    enabled = models.BooleanField(_("collected"), default=True)
    origin = models.CharField(_("found by"), max_length=12, choices=Origin.choices, default=Origin.GIVEN)
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.NEW)
    last_try = models.DateTimeField(_("last try"), null=True, blank=True)
    last_ok = models.DateTimeField(_("last answer"), null=True, blank=True)
    failures = models.PositiveIntegerField(_("failures since then"), default=0)
    failures_total = models.PositiveBigIntegerField(_("failures"), default=0)
    error = models.CharField(_("cause"), max_length=500, blank=True)
    remedy = models.CharField(_("remedy"), max_length=40, blank=True)
    """Code for which pages have a sentence."""
    skew = models.FloatField(_("clock skew in seconds"), null=True, blank=True)
    """Node's wall clock minus ours."""
    node = models.ForeignKey(
        Node, models.SET_NULL, null=True, blank=True, related_name="endpoints", verbose_name=_("node")
    )
    conflict = models.CharField(_("conflict"), max_length=500, blank=True)
    """Who claims the node already; "" = no conflict."""

    class Meta:
        ordering = ["cluster", "url"]
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        constraints = [models.UniqueConstraint(fields=["cluster", "url"], name="endpoint_address")]

    def __str__(self) -> str:
        return self.name or self.url


class NodeEvent(models.Model):
    """Something that numaweb itself saw happen to a node."""

    class Code(models.TextChoices):
        FIRST_SEEN = "first-seen", _("first seen")
        HEARD = "heard", _("its exporter answers for the first time")
        RETURNED = "returned", _("returned")
        GONE = "gone", _("gone")
        REPLACED = "replaced", _("replaced by another machine")
        TOPOLOGY = "topology-changed", _("topology changed")
        REBOOTED = "rebooted", _("rebooted")
        EXPORTER = "exporter-changed", _("another version of the exporter")
        FAILING = "endpoint-failing", _("exporter does not answer")
        OK = "endpoint-ok", _("exporter answers again")
        PLACEMENT = "placement-changed", _("placement changed")
        KUBELET = "kubelet-changed", _("kubelet settings changed")
        CONFLICT = "conflict", _("two exporters claim this node")

    node = models.ForeignKey(Node, models.CASCADE, related_name="events", verbose_name=_("node"))
    at = models.DateTimeField(_("when"))
    code = models.CharField(_("what"), max_length=24, choices=Code.choices)
    values = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name = _("event")
        verbose_name_plural = _("events")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["node", "-at"], name="event_of_node")]

    def __str__(self) -> str:
        return f"{self.code} {self.at:%Y-%m-%d %H:%M:%S}"
