"""A cluster with rollouts in many states."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from policies.models import Act
from policies.plan import LeftOut, Options, Window
from policies.services import policy
from policies.services.policy import Target
from policies.services.who import Who
from tests.monitoring.pages import seeds
from tests.policies import rollouts
from tests.policies.rollouts import Outcome, State, Step


def scene() -> None:
    """One is at work, one waits for its confirmation, one stopped at a node that needs a hand."""
    now = timezone.now()
    east = seeds.cluster("rolling", "Rolling")
    east.enabled = False  # nobody is to be asked about it
    east.save()
    for number in range(12):
        seeds.unheard(east, f"node-{number}", labels={})
    wish = Wish(topology_policy="single-numa-node", prefer_closest=True)
    held = policy.save(east, Target("cluster"), wish, True, Who("ada", "10.0.0.9"), now)
    cause = Reason("kubelet-dies", {"times": 3, "status": 255})
    stopped = rollouts.rollout(
        east,
        State.STOPPED,
        policy=held,
        cause={"code": "node-failed", "values": {"node": "node-1", "why": cause.code}},
        ended=now,
    )
    rollouts.settle(stopped, "node-0", Outcome.CHANGED)
    lost = rollouts.settle(stopped, "node-1", Outcome.LOST, cause)
    lost.answer = {"words": "the kubelet ended 3 times in 41 s, the last time with status 255"}
    lost.save()
    rollouts.settle(stopped, "node-2", Outcome.SKIPPED, Reason("stopped"))
    for at, (kind, subject, said) in enumerate(
        (
            ("cordon", "", None),
            ("evict", "shop/cache-7d9f8b6c5-x2x4z", Reason("blocked", {"words": "disruption budget cache"})),
            ("evict", "shop/cache-7d9f8b6c5-x2x4z", Reason("evicted")),
            ("job", "numaweb-1-1-7", Reason("answered", {"outcome": "failed", "why": cause.code})),
        )
    ):
        Act.objects.create(
            node=lost,
            kind=kind,
            subject=subject,
            state="done",
            epoch=7,
            at=now - timedelta(seconds=90 - 10 * at),
            said={"code": said.code, "values": said.values} if said else None,
        )
    running = rollouts.rollout(
        east,
        State.RUNNING,
        nodes=12,
        policy=held,
        options=Options(batch="25%", max_unavailable="2", window=Window(start="22:00", end="05:00")),
    )
    for number in range(4):
        rollouts.settle(running, f"node-{number}", Outcome.CHANGED)
    running.nodes.filter(name="node-4").update(step=Step.VERIFY)
    running.nodes.filter(name="node-5").update(step=Step.DRAIN)
    rollouts.rollout(
        east,
        State.PLANNED,
        nodes=6,
        policy=held,
        left_out=(
            LeftOut("node-10", Reason("already")),
            LeftOut("node-11", Reason("managed-openshift", {"by": "node.openshift.io/os_id"})),
        ),
        warnings=(
            Reason("blocking-budget", {"budget": "shop/cache", "pods": "shop/cache-7d9f8b6c5-x2x4z"}),
            Reason("capacity", {"resource": "cpu", "batch": 1, "missing": 3.5}),
        ),
    )
    rollouts.rollout(east, State.PLANNING, policy=held, looked_at=3, nodes_total=12)
