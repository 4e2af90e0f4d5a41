"""What a cluster's API server says: how it is reached, its nodes, pods, failed admissions and events.

Texts are "" where the server says nothing, other values null. Objects are rows as compact as the pages need them; the
watcher (`monitoring.services.watching`) writes them and nobody else does.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models.inventory import Cluster, Node
from monitoring.models.sealed import SealedField


class Connection(models.Model):
    """How numaweb reaches a cluster's API server, and how that goes."""

    class Source(models.TextChoices):
        IN_CLUSTER = "in-cluster", _("the cluster that numaweb runs in")
        FILE = "file", _("the file that NUMAWEB_KUBECONFIG names")
        KUBECONFIG = "kubeconfig", _("a kubeconfig")
        TOKEN = "token", _("address and token of a ServiceAccount")

    class State(models.TextChoices):
        NEW = "new", _("new")
        OK = "ok", _("answers")
        FAILING = "failing", _("fails")

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, related_name="connection", verbose_name=_("cluster")
    )
    source = models.CharField(_("by"), max_length=16, choices=Source.choices, default=Source.KUBECONFIG)
    kubeconfig = SealedField(_("kubeconfig"), max_length=262_144, blank=True)
    """Secret: never shown, never in a log."""
    context = models.CharField(_("context"), max_length=253, blank=True)
    """Of the kubeconfig; "" = its current one."""
    server = models.CharField(_("address of the API server"), max_length=500, blank=True)
    ca = models.TextField(_("certificate authority (PEM)"), max_length=65_536, blank=True)
    token = SealedField(_("ServiceAccount token"), max_length=16_384, blank=True)
    """Secret: never shown, never in a log."""
    enabled = models.BooleanField(_("watched"), default=True)
    exporter_namespace = models.CharField(
        _("namespace of the exporters"),
        max_length=63,
        blank=True,
        help_text=_(
            "Only pods of this namespace count as exporters. Needed where exporters want a token: no other pod may receive it."
        ),
    )
    exporter_https = models.BooleanField(_("exporters speak TLS"), default=False)
    exporter_token = SealedField(_("exporters' bearer token"), max_length=4096, blank=True)
    """Secret: never shown, never in a log."""
    exporter_ca = models.TextField(_("exporters' certificate authority (PEM)"), max_length=65_536, blank=True)
    exporter_name = models.CharField(_("name in the exporters' certificate"), max_length=253, blank=True)
    exporter_service = models.CharField(
        _("headless Service of the exporters"),
        max_length=300,
        blank=True,
        help_text=_("HOST:PORT whose addresses are asked where pods cannot be read; empty = by their pods."),
    )

    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.NEW)
    reached = models.CharField(_("reached at"), max_length=500, blank=True)
    version = models.CharField(_("Kubernetes version"), max_length=64, blank=True)
    last_try = models.DateTimeField(_("last try"), null=True, blank=True)
    last_ok = models.DateTimeField(_("last answer"), null=True, blank=True)
    error = models.CharField(_("cause"), max_length=500, blank=True)
    remedy = models.CharField(_("remedy"), max_length=40, blank=True)
    """Code for which pages have a sentence."""
    missing = models.JSONField(_("missing rights"), default=list)
    """[{"verb", "group", "resource", "subresource", "why"}]"""
    daemonsets = models.JSONField(_("DaemonSets of exporters"), default=list)
    """[{"namespace", "name", "desired", "ready", "misscheduled"}]"""

    class Meta:
        ordering = ["cluster"]
        verbose_name = _("connection to Kubernetes")
        verbose_name_plural = _("connections to Kubernetes")

    def __str__(self) -> str:
        return str(self.cluster)

    @classmethod
    def listing_nodes(cls) -> models.QuerySet["Connection"]:
        """Connections over which all nodes were told at least once."""
        return cls.objects.filter(enabled=True, watches__resource="nodes", watches__listed__isnull=False)


class WatchHealth(models.Model):
    """How the watch of one kind of object goes in one cluster."""

    class State(models.TextChoices):
        LISTING = "listing", _("reads the list")
        WATCHING = "watching", _("follows changes")
        WAITING = "waiting", _("waits before it tries again")
        FORBIDDEN = "forbidden", _("has no right")
        ABSENT = "absent", _("the cluster does not have them")

    connection = models.ForeignKey(Connection, models.CASCADE, related_name="watches")
    resource = models.CharField(_("objects"), max_length=100)
    """As the API server calls them, for instance `pods` or `numatopologies.nodeinfo.volcano.sh/v1alpha1`."""
    state = models.CharField(_("state"), max_length=12, choices=State.choices)
    since = models.DateTimeField(_("since"))
    listed = models.DateTimeField(_("last whole list"), null=True, blank=True)
    heard = models.DateTimeField(_("last change"), null=True, blank=True)
    objects_known = models.PositiveIntegerField(_("objects"), null=True, blank=True)
    failures = models.PositiveBigIntegerField(_("failures"), default=0)
    error = models.CharField(_("cause"), max_length=500, blank=True)
    remedy = models.CharField(_("remedy"), max_length=40, blank=True)

    class Meta:
        ordering = ["connection", "resource"]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["connection", "resource"], name="watch_of_resource")]

    def __str__(self) -> str:
        return f"{self.resource} {self.state}"


class KubernetesNode(models.Model):
    """What the API server says of a current node. It exists as long as the Node object does."""

    node = models.OneToOneField(Node, models.CASCADE, primary_key=True, related_name="kubernetes")
    created = models.DateTimeField(_("created"), null=True, blank=True)
    labels = models.JSONField(_("labels"), default=dict)
    taints = models.JSONField(_("taints"), default=list)
    """[{"key", "value", "effect"}]"""
    unschedulable = models.BooleanField(_("cordoned"), default=False)
    capacity = models.JSONField(_("capacity"), default=dict)
    allocatable = models.JSONField(_("allocatable"), default=dict)
    """Quantities as Kubernetes writes them, for instance {"cpu": "95500m"}."""
    conditions = models.JSONField(_("conditions"), default=list)
    """[{"type", "status", "reason", "message", "since"}]"""
    ready = models.BooleanField(_("ready"), null=True, blank=True)
    kubelet_version = models.CharField(_("kubelet"), max_length=64, blank=True)
    runtime_version = models.CharField(_("runtime"), max_length=128, blank=True)
    kernel_version = models.CharField(_("kernel"), max_length=128, blank=True)
    os_image = models.CharField(_("operating system"), max_length=200, blank=True)
    architecture = models.CharField(_("architecture"), max_length=32, blank=True)
    machine_id = models.CharField(_("machine-id"), max_length=64, blank=True)
    boot_id = models.CharField(_("boot id"), max_length=64, blank=True)
    address = models.CharField(_("address"), max_length=64, blank=True)
    kubelet_port = models.PositiveIntegerField(_("port of the kubelet"), null=True, blank=True)
    updated = models.DateTimeField(_("updated"))

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("node in Kubernetes")
        verbose_name_plural = _("nodes in Kubernetes")

    def __str__(self) -> str:
        return str(self.node)


class Pod(models.Model):
    """One pod of a cluster, wherever it is or is not: the compact table of all of them."""

    START_FAILURES = frozenset(
        ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")
    )
    """Reasons of a pod that was admitted and does not start (kubelet 1.37, kuberuntime and container/sync_result.go)."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="pods", verbose_name=_("cluster"))
    uid = models.CharField(_("uid"), max_length=64)
    kubelet_uid = models.CharField(_("uid on its node"), max_length=64, blank=True)
    """By which its kubelet, its control groups and its events know it; of a static pod not the one of its mirror here."""
    namespace = models.CharField(_("namespace"), max_length=63)
    name = models.CharField(_("name"), max_length=253)
    node_name = models.CharField(_("node"), max_length=253, blank=True)
    """"" = not scheduled."""
    owner_kind = models.CharField(_("kind of owner"), max_length=63, blank=True)
    owner_name = models.CharField(_("owner"), max_length=253, blank=True)
    """Whom a person knows: the Deployment, not its ReplicaSet. "" = nobody."""
    scheduler = models.CharField(_("scheduler"), max_length=253, blank=True)
    priority = models.IntegerField(_("priority"), null=True, blank=True)
    qos = models.CharField(_("QoS class"), max_length=16, blank=True)
    phase = models.CharField(_("phase"), max_length=16, blank=True)
    reason = models.CharField(_("reason"), max_length=128, blank=True)
    message = models.CharField(_("message"), max_length=1000, blank=True)
    created = models.DateTimeField(_("created"), null=True, blank=True)
    cpu_request = models.FloatField(_("requested CPUs"), null=True, blank=True)
    cpu_limit = models.FloatField(_("CPU limit"), null=True, blank=True)
    memory_request = models.BigIntegerField(_("requested memory"), null=True, blank=True)
    memory_limit = models.BigIntegerField(_("memory limit"), null=True, blank=True)
    """Of the whole pod, as the scheduler adds them up; a limit is null unless every container has one."""
    resources = models.JSONField(default=dict)
    """What its containers ask for: what the engine needs to judge it again."""
    running = models.JSONField(default=dict)
    """Names of its running containers by their ids, without the runtime before them."""

    class Meta:
        ordering = ["namespace", "name"]
        default_permissions = ("view",)
        verbose_name = _("pod")
        verbose_name_plural = _("pods")
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="pod_identity")]
        indexes = [
            models.Index(fields=["cluster", "node_name"], name="pod_on_node"),
            models.Index(fields=["cluster", "phase", "reason"], name="pod_phase"),
            models.Index(fields=["cluster", "namespace", "name"], name="pod_name"),
            models.Index(fields=["kubelet_uid"], name="pod_of_kubelet"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Failure(models.Model):
    """Pods of one owner that one node's kubelet refused for one reason: one line, however many there were."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="failures", verbose_name=_("cluster"))
    namespace = models.CharField(_("namespace"), max_length=63)
    owner_kind = models.CharField(_("kind of owner"), max_length=63, blank=True)
    owner_name = models.CharField(_("owner"), max_length=253, blank=True)
    node_name = models.CharField(_("node"), max_length=253)
    reason = models.CharField(_("reason"), max_length=128)
    message = models.CharField(_("message"), max_length=1000, blank=True)
    """Of the newest one, the kubelet's words."""
    count = models.PositiveBigIntegerField(_("pods"), default=0)
    """Pods that were ever seen refused; those still there are rows of Pod."""
    first = models.DateTimeField(_("first"))
    last = models.DateTimeField(_("last"))
    last_pod = models.CharField(_("newest pod"), max_length=253, blank=True)
    asked = models.JSONField(null=True, blank=True)
    """What of the newest pod's spec decides about its placement, as a manifest without names: it outlives the pod. null = of an
    earlier version, which did not keep it."""
    judged = models.DateTimeField(_("judged"), null=True, blank=True)
    """When the engine was asked about the newest pod, from the node's state at that moment."""
    state_age = models.FloatField(null=True, blank=True)
    """Seconds that the node's state was old then."""
    verdict = models.JSONField(null=True, blank=True)
    """The engine's answer as JSON; null = it could not be asked, and `obstacle` says why."""
    obstacle = models.CharField(max_length=40, blank=True)
    """Code of why there is no verdict: no-state, unreadable, ..."""

    class Meta:
        ordering = ["-last"]
        default_permissions = ("view",)
        verbose_name = _("failed admission")
        verbose_name_plural = _("failed admissions")
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "owner_kind", "owner_name", "node_name", "reason"],
                name="failure_line",
            )
        ]
        indexes = [models.Index(fields=["cluster", "-last"], name="failure_newest")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.owner_name} {self.reason} @{self.node_name}"


class SourceView(models.Model):
    """What one source other than our exporter says of a node: beside the exporter's word, never instead of it."""

    class Source(models.TextChoices):
        NUMATOPOLOGY = "numatopology", "Numatopology"
        RESOURCE_TOPOLOGY = "noderesourcetopology", "NodeResourceTopology"
        CONFIGZ = "configz", "/configz"

    node = models.ForeignKey(Node, models.CASCADE, related_name="views", verbose_name=_("node"))
    source = models.CharField(_("source"), max_length=24, choices=Source.choices)
    version = models.CharField(_("version"), max_length=32, blank=True)
    """Of the API, for instance v1alpha2."""
    changed = models.DateTimeField(_("changed"))
    """By our clock: when these values were first seen."""
    values = models.JSONField(default=dict)
    """Facts by the names of `monitoring.selectors.sources`."""

    class Meta:
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["node", "source"], name="view_of_source")]

    def __str__(self) -> str:
        return f"{self.node} {self.source}"


class ClusterEvent(models.Model):
    """An event of the cluster that concerns NUMA placement, kept for a bounded time."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="events", verbose_name=_("cluster"))
    uid = models.CharField(max_length=64)
    kind = models.CharField(_("kind"), max_length=63)
    namespace = models.CharField(_("namespace"), max_length=63, blank=True)
    name = models.CharField(_("object"), max_length=253)
    object_uid = models.CharField(max_length=64, blank=True)
    node_name = models.CharField(_("node"), max_length=253, blank=True)
    warning = models.BooleanField(_("warning"))
    reason = models.CharField(_("reason"), max_length=128)
    message = models.CharField(_("message"), max_length=1024, blank=True)
    component = models.CharField(_("told by"), max_length=128, blank=True)
    count = models.PositiveIntegerField(_("count"), default=1)
    first = models.DateTimeField(_("first"), null=True, blank=True)
    last = models.DateTimeField(_("last"))

    class Meta:
        ordering = ["-last"]
        default_permissions = ("view",)
        verbose_name = _("event of the cluster")
        verbose_name_plural = _("events of the cluster")
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="event_identity")]
        indexes = [
            models.Index(fields=["cluster", "node_name", "-last"], name="event_on_node"),
            models.Index(fields=["cluster", "object_uid"], name="event_of_object"),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.kind} {self.namespace}/{self.name}"
