"""What somebody wants of nodes: pools of nodes, a policy for a node, a pool or the whole cluster, and every version of it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.models import Cluster


class Pool(models.Model):
    """Nodes of a cluster that are treated alike, by their labels. Two pools share no node."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="pools", verbose_name=_("cluster"))
    name = models.SlugField(_("name"), max_length=63)
    selector = models.CharField(_("label selector"), max_length=1000)
    """As Kubernetes writes them (`monitoring.kube.selector`)."""
    version = models.PositiveIntegerField(_("version"), default=1)
    changed = models.DateTimeField(_("changed"))
    changed_by = models.CharField(_("changed by"), max_length=254)

    class Meta:
        ordering = ["cluster", "name"]
        verbose_name = _("node pool")
        verbose_name_plural = _("node pools")
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="pool_name")]

    def __str__(self) -> str:
        return self.name


class Policy(models.Model):
    """What is wanted of a node, of a pool's nodes or of all nodes of a cluster, and whether it is switched on.

    Of several that name a node the nearest counts: its own, then its pool's, then the cluster's.
    """

    class Level(models.TextChoices):
        NODE = "node", _("node")
        POOL = "pool", _("node pool")
        CLUSTER = "cluster", _("whole cluster")

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="policies", verbose_name=_("cluster"))
    level = models.CharField(_("level"), max_length=8, choices=Level.choices)
    pool = models.ForeignKey(
        Pool, models.PROTECT, null=True, blank=True, related_name="policies", verbose_name=_("node pool")
    )
    node_name = models.CharField(_("node"), max_length=253, blank=True)
    # A name and not a foreign key: a node that is replaced under its name is wanted the same way.
    wish = models.JSONField(_("wish"), default=dict)
    """JSON of `numacore.change.wish.Wish`."""
    on = models.BooleanField(_("switched on"), default=False)
    version = models.PositiveIntegerField(_("version"), default=1)
    changed = models.DateTimeField(_("changed"))
    changed_by = models.CharField(_("changed by"), max_length=254)

    class Meta:
        ordering = ["cluster", "level", "pool", "node_name"]
        verbose_name = _("affinity policy")
        verbose_name_plural = _("affinity policies")
        permissions = [("operate_preview", _("Can preview affinity policies"))]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=models.Q(level="cluster"), name="one_policy_of_a_cluster"
            ),
            models.UniqueConstraint(
                fields=["pool"], condition=models.Q(level="pool"), name="one_policy_of_a_pool"
            ),
            models.UniqueConstraint(
                fields=["cluster", "node_name"],
                condition=models.Q(level="node"),
                name="one_policy_of_a_node",
            ),
            models.CheckConstraint(
                condition=models.Q(level="cluster", pool=None, node_name="")
                | models.Q(level="pool", pool__isnull=False, node_name="")
                | (models.Q(level="node", pool=None) & ~models.Q(node_name="")),
                name="policy_has_its_target",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_level_display()} {self.target}".rstrip()

    @property
    def target(self) -> str:
        """Name of the pool or node; "" for the whole cluster."""
        return str(self.pool) if self.pool_id else self.node_name


class PolicyVersion(models.Model):
    """What a policy was from one change to the next; never altered."""

    policy = models.ForeignKey(Policy, models.CASCADE, related_name="versions", verbose_name=_("policy"))
    version = models.PositiveIntegerField(_("version"))
    wish = models.JSONField(_("wish"))
    on = models.BooleanField(_("switched on"))
    at = models.DateTimeField(_("when"))
    by = models.CharField(_("by"), max_length=254)

    class Meta:
        ordering = ["policy", "-version"]
        default_permissions = ("view",)
        verbose_name = _("version of a policy")
        verbose_name_plural = _("versions of policies")
        constraints = [models.UniqueConstraint(fields=["policy", "version"], name="policy_version")]

    def __str__(self) -> str:
        return f"{self.policy} {self.version}"
