"""How nodes were before the product changed them first: written down before the first order, marked when they are so again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from monitoring.models import Cluster
from policies.models import Original, RolloutNode
from policies.plan import PlannedNode


def of(cluster: Cluster, planned: PlannedNode) -> Original | None:
    found = Original.objects.filter(
        cluster=cluster, node_name=planned.name, uid=planned.uid, path=planned.path
    )
    return found.first()


def keep(node: RolloutNode, planned: PlannedNode, now: datetime) -> None:
    """Within the transaction of the order: the file as it stands, unless an earlier change of ours stands there.

    As the node itself does (`numaagent.applier.keeping`): what was edited after it had been restored is a new original.
    """
    if planned.act == "restore":
        return
    known = of(node.rollout.cluster, planned)
    if known is None:
        known = Original(
            cluster=node.rollout.cluster, node_name=planned.name, uid=planned.uid, path=planned.path
        )
    elif known.restored is None or known.sha256 == planned.before:
        known.fields = {**planned.present, **known.fields}
        known.restored = None
        known.save()
        return
    known.drop_in, known.text, known.sha256 = planned.drop_in, node.text, planned.before
    known.fields, known.taken, known.restored, known.rollout = planned.present, now, None, node.rollout
    known.save()


def standing(cluster: Cluster, names: Sequence[str]) -> dict[str, list[Original]]:
    """Those of these nodes that are not back, the newest first, by node."""
    found: dict[str, list[Original]] = {}
    for each in Original.objects.filter(cluster=cluster, node_name__in=names, restored=None).order_by("-pk"):
        found.setdefault(each.node_name, []).append(each)
    return found


def found_back(original: Original, now: datetime) -> None:
    """Somebody else brought the node back."""
    original.restored = now
    original.save(update_fields=["restored"])


def settle(cluster: Cluster, planned: PlannedNode, sha256: str, now: datetime) -> None:
    """The node's file is this one now."""
    known = of(cluster, planned)
    if known is not None and (known.sha256 == sha256) != (known.restored is not None):
        known.restored = now if known.sha256 == sha256 else None
        known.save(update_fields=["restored"])
