"""Rollouts: an immutable plan, where each of its nodes stands, and every act on a node, written down before it is done."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from monitoring.models import Cluster, Node
from monitoring.models.sealed import SealedField
from policies.models import kept
from policies.models.policy import Policy


class Rollout(models.Model):
    """A policy on its way to its nodes, or all nodes on their way back. What is to be done stands in `plan` and never changes; people change `state` alone."""

    class State(models.TextChoices):
        PLANNING = "planning", _("is being planned")
        PLANNED = "planned", _("waits for confirmation")
        DISCARDED = "discarded", _("discarded")
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        STOPPING = "stopping", _("stopping")
        STOPPED = "stopped", _("stopped")
        RETURNING = "returning", _("rolling back")
        RETURNED = "returned", _("rolled back")
        DONE = "done", _("done")

    class Level(models.TextChoices):
        NODE = "node", _("node")
        POOL = "pool", _("node pool")
        CLUSTER = "cluster", _("whole cluster")
        CHANGED = "changed", _("all nodes that numaweb changed")

    ACTIVE = (State.RUNNING, State.PAUSED, State.STOPPING, State.RETURNING)
    """Of a cluster one rollout at most is in one of these."""

    cluster = models.ForeignKey(Cluster, kept.with_active, related_name="rollouts", verbose_name=_("cluster"))
    policy = models.ForeignKey(
        Policy, models.SET_NULL, null=True, related_name="rollouts", verbose_name=_("policy")
    )
    level = models.CharField(_("level"), max_length=8, choices=Level.choices)
    """As the policy's; "changed" = there is no policy: every node that stands changed goes back to its original."""
    target = models.CharField(_("target"), max_length=253, blank=True)
    """Name of the pool or node; "" for the others."""
    version = models.PositiveIntegerField(_("version of the policy"))
    """0 = there is no policy."""
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.PLANNING)
    options = models.JSONField(_("options"), default=dict)
    """JSON of `policies.plan.Options`."""
    plan = models.JSONField(_("plan"), null=True, blank=True)
    """JSON of `policies.plan.Plan`; null = not yet made."""
    plan_hash = models.CharField(_("hash of the plan"), max_length=64, blank=True)
    looked_at = models.PositiveIntegerField(_("nodes looked at"), default=0)
    nodes_total = models.PositiveIntegerField(_("nodes"), default=0)
    """While it is planned: how far that is."""
    made = models.DateTimeField(_("made"))
    made_by = models.CharField(_("made by"), max_length=254)
    planned = models.DateTimeField(_("planned"), null=True, blank=True)
    """Since when its plan may be confirmed, and how old that is."""
    confirmed = models.DateTimeField(_("confirmed"), null=True, blank=True)
    confirmed_by = models.CharField(_("confirmed by"), max_length=254, blank=True)
    address = models.CharField(_("from where"), max_length=64, blank=True)
    changed = models.DateTimeField(_("changed"))
    """When a person or a failed gate changed its state last."""
    ended = models.DateTimeField(_("ended"), null=True, blank=True)
    cause = models.JSONField(_("cause"), null=True, blank=True)
    """JSON of `numacore.diagnosis.Reason`: why it stopped by itself, or could not be planned."""
    waits_for = models.JSONField(_("waits for"), null=True, blank=True)
    """JSON of a Reason: why nothing happens at the moment (window, pause between batches, nodes down, API server away); null = it goes on."""
    batch_ended = models.DateTimeField(null=True, blank=True)
    """When the newest batch that is through was through: the pause before the next one counts from here."""
    returns = models.BooleanField(_("rolls back"), default=False)
    """Somebody wants all of it back; that stays so, whatever is paused or stopped meanwhile."""
    looked = models.DateTimeField(_("looked at last"), null=True, blank=True)
    """When a worker last went through its nodes: who comes right after that has nothing to do."""

    class Meta:
        ordering = ["-pk"]
        default_permissions = ("view",)
        permissions = [
            ("operate_rollout", _("Can plan, pause and stop rollouts")),
            ("confirm_rollout", _("Can confirm rollouts")),
        ]
        verbose_name = _("rollout")
        verbose_name_plural = _("rollouts")
        indexes = [models.Index(fields=["cluster", "state"], name="rollout_state")]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"],
                condition=models.Q(state__in=["running", "paused", "stopping", "returning"]),
                name="one_active_rollout",
            )
        ]

    def __str__(self) -> str:
        return f"rollout {self.pk}"

    @property
    def is_active(self) -> bool:
        return self.state in self.ACTIVE


class RolloutNode(models.Model):
    """Where one node of a rollout stands. `step` is what is being done, `outcome` what came of it in the end."""

    class Step(models.TextChoices):
        WAITING = "waiting", _("waits")
        PREFLIGHT = "preflight", _("is looked at once more")
        CORDON = "cordon", _("is cordoned")
        DRAIN = "drain", _("is drained")
        APPLY = "apply", _("is changed")
        VERIFY = "verify", _("is verified")
        UNDO = "undo", _("goes back")
        CONFIRM = "confirm", _("is verified after going back")
        UNCORDON = "uncordon", _("is uncordoned")
        ENDED = "ended", _("ended")

    class Outcome(models.TextChoices):
        CHANGED = "changed", pgettext_lazy("what became of a node", "changed")
        UNCHANGED = "unchanged", _("was as wanted")
        SKIPPED = "skipped", _("left alone")
        FAILED = "failed", _("failed, as before")
        LOST = "lost", _("needs a hand")
        RETURNED = "returned", _("rolled back")

    rollout = models.ForeignKey(Rollout, models.CASCADE, related_name="nodes")
    node = models.ForeignKey(Node, models.SET_NULL, null=True, related_name="rollouts")
    position = models.PositiveIntegerField(_("position"))
    batch = models.PositiveIntegerField(_("batch"))
    """0 = the canary."""
    name = models.CharField(_("node"), max_length=253)
    uid = models.CharField(_("uid"), max_length=64)
    step = models.CharField(_("step"), max_length=10, choices=Step.choices, default=Step.WAITING)
    outcome = models.CharField(_("outcome"), max_length=10, choices=Outcome.choices, blank=True)
    back = models.BooleanField(_("rolls back"), default=False)
    """It goes back to what stood before this rollout, because the whole rollout does."""
    cause = models.JSONField(_("cause"), null=True, blank=True)
    """JSON of a Reason: why it failed or was left alone."""
    epoch = models.PositiveBigIntegerField(_("epoch"), null=True, blank=True)
    """Of the newest order; counts up over all rollouts of a node."""
    cordoned = models.BooleanField(_("cordoned by this rollout"), default=False)
    answer = models.JSONField(_("answer"), null=True, blank=True)
    """JSON of `numacore.change.order.Answer`."""
    step_since = models.DateTimeField(null=True, blank=True)
    steady = models.FloatField(default=0)
    """Seconds that the gate of this step has held without a break; counted by looks, so that no clock that jumps counts."""
    spent = models.FloatField(default=0)
    """Seconds that this step has taken, counted the same way."""
    looked = models.DateTimeField(null=True, blank=True)
    text = models.TextField(blank=True)
    """Of the file as it stood before this rollout: what going back is made from."""
    applied_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=1)
    ended = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        ordering = ["position"]
        default_permissions = ("view",)
        verbose_name = _("node of a rollout")
        verbose_name_plural = _("nodes of rollouts")
        constraints = [models.UniqueConstraint(fields=["rollout", "name"], name="rollout_node")]
        indexes = [models.Index(fields=["rollout", "step"], name="rollout_step")]

    def __str__(self) -> str:
        return f"{self.name} {self.step}"


class Act(models.Model):
    """One act on a node. The row is there before the act; whoever finds it unfinished does it again or looks what came of it.

    Also the node's log: an act of kind `note` is something that was seen.
    """

    class State(models.TextChoices):
        BEGUN = "begun", _("begun")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    node = models.ForeignKey(RolloutNode, models.CASCADE, related_name="acts")
    kind = models.CharField(_("act"), max_length=12)
    """cordon, evict, job, tidy, uncordon, note."""
    subject = models.CharField(_("of what"), max_length=400, blank=True)
    """A pod as `namespace/name`, the name of a Job; "" = the node."""
    epoch = models.PositiveBigIntegerField(_("epoch"), default=0)
    tries = models.PositiveIntegerField(_("tries"), default=1)
    state = models.CharField(_("state"), max_length=6, choices=State.choices, default=State.BEGUN)
    at = models.DateTimeField(_("when"))
    ended = models.DateTimeField(_("ended"), null=True, blank=True)
    said = models.JSONField(_("what was seen"), null=True, blank=True)
    """JSON of a Reason, with the words of others in its values."""

    class Meta:
        ordering = ["pk"]
        default_permissions = ("view",)
        verbose_name = _("act of a rollout")
        verbose_name_plural = _("acts of rollouts")
        indexes = [models.Index(fields=["node", "kind", "epoch"], name="rollout_act")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}".rstrip()


class Original(models.Model):
    """How a node's kubelet was set before the first change of ours: where "off" goes back to. Kept on the node, too, with its checksum."""

    cluster = models.ForeignKey(Cluster, kept.with_standing, related_name="originals")
    node_name = models.CharField(_("node"), max_length=253)
    uid = models.CharField(_("uid"), max_length=64)
    path = models.CharField(_("file"), max_length=1024)
    drop_in = models.BooleanField(_("our own drop-in"))
    text = models.TextField(_("text"), blank=True)
    sha256 = models.CharField("SHA-256", max_length=64, blank=True)
    """"" = there was no file."""
    fields = models.JSONField(_("settings"), default=dict)
    """What was in force of the fields that were changed since; null = the default."""
    taken = models.DateTimeField(_("taken"))
    rollout = models.ForeignKey(Rollout, models.SET_NULL, null=True, related_name="originals")
    """By which it was changed first."""
    restored = models.DateTimeField(_("restored"), null=True, blank=True)
    """Null = our change stands; else the node is as it was."""

    class Meta:
        ordering = ["cluster", "node_name"]
        default_permissions = ("view",)
        verbose_name = _("original settings of a node")
        verbose_name_plural = _("original settings of nodes")
        constraints = [
            models.UniqueConstraint(fields=["cluster", "node_name", "uid", "path"], name="original_of_node")
        ]

    def __str__(self) -> str:
        return f"{self.node_name} {self.path}"


class OrderKey(models.Model):
    """The key that signs orders, where no file holds one. Nodes believe its public half (`manage.py orderkey`)."""

    private = SealedField(_("private key"))
    """PEM. Secret: never shown, never in a log."""
    made = models.DateTimeField(_("made"))

    class Meta:
        default_permissions = ()
        verbose_name = _("key of orders")
        verbose_name_plural = _("keys of orders")

    def __str__(self) -> str:
        return f"order key {self.pk}"


class Notice(models.Model):
    """A message about a rollout that somebody outside is to get; sent by the queue, tried again a while."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waits")
        SENT = "sent", _("sent")
        FAILED = "failed", _("failed")

    rollout = models.ForeignKey(Rollout, models.CASCADE, related_name="notices")
    channel = models.CharField(
        _("by"), max_length=8, choices=[("mail", _("mail")), ("webhook", _("webhook"))]
    )
    event = models.CharField(_("event"), max_length=10)
    """The rollout's state that is told."""
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.WAITING)
    made = models.DateTimeField(_("made"))
    tries = models.PositiveIntegerField(_("tries"), default=0)
    sent = models.DateTimeField(_("sent"), null=True, blank=True)
    error = models.CharField(_("cause"), max_length=500, blank=True)

    class Meta:
        ordering = ["-pk"]
        default_permissions = ("view",)
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        constraints = [models.UniqueConstraint(fields=["rollout", "channel", "event"], name="notice_once")]

    def __str__(self) -> str:
        return f"{self.event} {self.channel}"
