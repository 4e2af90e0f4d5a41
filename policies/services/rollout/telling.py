"""What the audit log keeps of rollouts: what people decide, and every act before it is done."""

from __future__ import annotations

from django.db.models import Count

from policies import audit
from policies.audit import Event
from policies.models import Rollout, RolloutNode
from policies.services.who import Who

ACTION = "roll out affinity policy"
ACT = "act of a rollout"


def decided(rollout: Rollout, who: Who, detail: str, *, after: object = None, result: str = "done") -> None:
    """Within the transaction that writes the decision."""
    audit.record(
        Event(
            action=ACTION,
            actor=who.name,
            address=who.address,
            target=f"cluster {rollout.cluster.slug} rollout {rollout.pk}",
            after=after,
            result=result,
            detail=detail,
        )
    )


def act(node: RolloutNode, detail: str, *, after: object = None, result: str = "done") -> None:
    """Within the transaction that writes the act; in the name of whoever confirmed."""
    rollout = node.rollout
    audit.record(
        Event(
            action=ACT,
            actor=rollout.confirmed_by,
            address=rollout.address,
            target=f"cluster {rollout.cluster.slug} rollout {rollout.pk} node {node.name}",
            after=after,
            result=result,
            detail=detail,
        )
    )


def closed(rollout: Rollout, state: str) -> None:
    """The rollout came to rest."""
    counts = rollout.nodes.exclude(outcome="").order_by().values_list("outcome").annotate(Count("pk"))
    decided(rollout, Who(rollout.confirmed_by, rollout.address), str(state), after=dict(counts))
