"""What a node's applier is told: the way of the plan, or the way back, as an order; and the Job that carries it out."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import yaml
from django.conf import settings

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.order import Act, Order
from policies.gateway import jobs
from policies.models import Original, RolloutNode
from policies.plan import PlannedNode
from policies.selectors.exported import HEALTHZ, Exported
from policies.services.rollout.targets import shape, stated

GOOD_FOR = 600
"""Seconds in which an order has to be begun: an image may have to be pulled first."""
HEALTHY_WITHIN, STEADY_FOR, DEAD_MAN = 120, 20, 300
SLACK = 60
NO_ANSWER = GOOD_FOR + DEAD_MAN + SLACK
"""Seconds after which nothing of an order can happen any more: it is too old to be begun, and the node has gone back by itself."""
_MANIFEST = settings.BASE_DIR / "charts/volcano-config-service/files/applier/job.yaml"
_KUBERNETES = "/etc/kubernetes/"


def name_of(node: RolloutNode) -> str:
    """Of the Job of a node's newest order."""
    return f"numaweb-{node.rollout_id}-{node.position}-{node.epoch}"


def forward(node: RolloutNode, planned: PlannedNode, told: Exported | None, at: datetime) -> Order:
    """The plan's word. `at`: when it was written down; the same order comes out whoever makes it."""
    return _order(
        node,
        planned,
        told,
        at,
        act=planned.act,
        keys=planned.keys,
        removed=planned.removed,
        before=planned.before,
        after=planned.after,
    )


def backward(
    node: RolloutNode, planned: PlannedNode, original: Original | None, told: Exported | None, at: datetime
) -> Order | None:
    """Back to what stood there before this rollout. None: it cannot be made, somebody has to look. Raises EditError."""
    act: Act = "apply"
    if planned.act == "apply" and original is not None and original.sha256 == planned.before:
        # The node keeps that very file, so it comes back byte by byte.
        keys, removed = shape(planned.present, drop_in=planned.drop_in)
        after, act = planned.before, "restore"
    elif planned.drop_in:
        if not node.text:
            return None
        fields = stated(node.text, orders.ALLOWED)
        keys, removed = {name: value for name, value in fields.items() if value is not None}, ()
        after = orders.sha256(editing.drop_in(keys))
    else:
        now = _changed(node, planned, original)
        if now is None:
            return None
        fields = stated(node.text, planned.intended)
        keys, removed = shape(fields, drop_in=False)
        after = orders.sha256(editing.edit(now, fields))
    return _order(
        node,
        planned,
        told,
        at,
        act=act,
        keys=keys,
        removed=removed,
        before=planned.after,
        after=after,
    )


def _changed(node: RolloutNode, planned: PlannedNode, original: Original | None) -> str | None:
    """The text as the rollout made it."""
    if planned.act == "restore":
        return original.text if original else None
    text = editing.edit(node.text, {**planned.keys, **dict.fromkeys(planned.removed)})
    return text if orders.sha256(text) == planned.after else None


def _order(
    node: RolloutNode,
    planned: PlannedNode,
    told: Exported | None,
    at: datetime,
    *,
    act: Act,
    keys: Mapping[str, Any],
    removed: tuple[str, ...],
    before: str,
    after: str,
) -> Order:
    assert node.epoch is not None, "a node that was begun has an epoch"
    return Order(
        act=act,
        node=node.name,
        machine_id=planned.machine_id,
        uid=planned.uid,
        epoch=node.epoch,
        rollout=str(node.rollout_id),
        path=planned.path,
        drop_in=planned.drop_in,
        keys=dict(keys),
        removed=removed,
        before=before,
        after=after,
        state_files=planned.state_files,
        healthz_port=told.healthz_port if told else HEALTHZ,
        expires=int(at.timestamp()) + GOOD_FOR,
        healthy_within=HEALTHY_WITHIN,
        steady_for=STEADY_FOR,
        dead_man=DEAD_MAN,
    )


def job(name: str, node: str, order: bytes, path: str) -> dict[str, Any]:
    """The Job of a signed order. The chart's manifest with name, order, place and image; a folder that a node need not have is left out."""
    made = copy.deepcopy(_manifest())
    made["metadata"] |= {"name": name, "namespace": settings.NUMAWEB_NAMESPACE}
    template = made["spec"]["template"]
    template["metadata"]["annotations"][jobs.ORDER] = order.decode()
    pod = template["spec"]
    pod["nodeName"] = node
    container = pod["containers"][0]
    container["image"] = settings.NUMAWEB_APPLIER_IMAGE
    if not path.startswith(_KUBERNETES):
        for listed in (pod["volumes"], container["volumeMounts"]):
            listed[:] = [each for each in listed if each["name"] != "kubernetes"]
    return made


@cache
def _manifest() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_MANIFEST.read_text("utf-8"))
    return found
