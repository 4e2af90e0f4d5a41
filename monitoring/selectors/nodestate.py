"""One node with everything that is known of it now, or was when it was last heard."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec
import zstandard

from monitoring import hot
from monitoring.hot import HotNode
from monitoring.models import Cluster, Endpoint, Node, Placement
from monitoring.selectors import configuration, joining
from numacore import report, wire
from numacore.facts import Facts
from numacore.report import NodeReport
from numacore.topology import Attributes, Topology, dec_hook
from numacore.workload import Container

PLACEMENT_BYTES = 16 * wire.MAX_BYTES
_topology = msgspec.json.Decoder(Topology, dec_hook=dec_hook)


class SectionState(msgspec.Struct, frozen=True):
    """One section of what is shown: seconds since it was last confirmed (None = never), whence, its hash."""

    age: float | None
    source: Literal["exporter", "store"]
    hash: str = ""


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it is shown. Without live data (`live` false) the facts are those of the last stored placement, with
    no use and no kubelet, as of `taken`."""

    node: Node
    facts: Facts
    report: NodeReport
    live: bool
    taken: datetime | None
    """By our clock: when the newest answer came."""
    age: float | None
    """Seconds since then."""
    stale: bool
    cause: str = ""
    """Code of why it is stale: never-heard, endpoint-missing, endpoint-disabled, cluster-disabled, endpoint-failing,
    conflict, not-collected, store-unreachable."""
    cause_text: str = ""
    remedy: str = ""
    """Code of what to do, as in `Endpoint.remedy`."""
    sections: dict[str, SectionState] = {}
    problems: tuple[wire.Problem, ...] = ()
    exporter: wire.Exporter | None = None
    endpoint: Endpoint | None = None
    ownership_age: float | None = None
    """Seconds since the kubelet's socket last told who owns CPUs, memory and devices, where it fails and that is still shown; None = that is
    as new as the rest."""


class NeverHeardError(Node.DoesNotExist):
    """The API server has this node, and no exporter ever told of it: nothing is known of its NUMA nodes."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"no exporter ever told of {node.name}")
        self.node = node


def node_state(cluster: Cluster, name: str, now: datetime) -> NodeState:
    """The current node of that name. Raises Node.DoesNotExist, NeverHeardError."""
    node = Node.objects.select_related("topology", "cluster", "kubernetes").get(
        cluster=cluster, name=name, gone_at=None
    )
    if node.topology is None:
        raise NeverHeardError(node)
    endpoint = Endpoint.objects.filter(node=node, conflict="").order_by("-enabled", "-last_ok").first()
    try:
        state = hot.store().get(node.pk)
        facts = state.facts() if state else None
    except hot.StoreError as error:
        return _stored(node, endpoint, now, ("store-unreachable", str(error)))
    except (
        wire.WireError
    ) as error:  # sections that are read only when somebody asks; its exporter counts as failing
        return _stored(node, endpoint, now, ("endpoint-failing", str(error)))
    if state is None or facts is None:
        return _stored(node, endpoint, now, None)
    return _live(node, endpoint, state, facts, now)


def _live(node: Node, endpoint: Endpoint | None, state: HotNode, facts: Facts, now: datetime) -> NodeState:
    facts = joining.joined_of(node, facts)
    moment = now.timestamp()
    age = max(0.0, moment - state.received)
    stale = age > configuration.stale_after() and not _heard_since(node, moment)
    code, text = _cause(node, endpoint) if stale else ("", "")
    return NodeState(
        node=node,
        facts=facts,
        report=report.node_report(facts, configuration.settings().busy_threshold),
        live=True,
        taken=datetime.fromtimestamp(state.received, UTC),
        age=age,
        stale=stale,
        cause=code,
        cause_text=text,
        remedy=endpoint.remedy if stale and endpoint else "",
        sections={
            name: SectionState(max(0.0, moment - at), "exporter", state.hashes.get(name, ""))
            for name, at in state.confirmed.items()
        },
        problems=state.problems,
        exporter=state.exporter,
        endpoint=endpoint,
        ownership_age=_ownership_age(facts, state.taken, age),
    )


def _ownership_age(facts: Facts, taken: float, age: float) -> float | None:
    """`taken`: the node's clock at its answer, which came `age` seconds ago; only that clock can be compared with the kubelet's."""
    since = facts.kubelet.stale_since if facts.kubelet else None
    return None if since is None else age + max(0.0, taken - since)


def _heard_since(node: Node, moment: float) -> bool:
    """Whether the node answers although this copy of its state is old: of very many nodes, only those that somebody
    looks at are copied at every round."""
    heard = (block.heard().get(node.pk, 0.0) for block in hot.store().cells(node.cluster_id))
    return moment - max(heard, default=0.0) <= configuration.stale_after()


def _stored(
    node: Node, endpoint: Endpoint | None, now: datetime, failure: tuple[str, str] | None
) -> NodeState:
    assert node.topology is not None
    placement = Placement.objects.filter(node=node).order_by("-since").first()
    code, text = failure or _cause(node, endpoint)
    told = Facts(
        topology=_topology.decode(node.topology.document),
        attributes=msgspec.convert(node.attributes, Attributes, strict=False, dec_hook=dec_hook),
        containers=_containers(placement) if placement else (),
    )
    facts = joining.joined_of(node, told)
    age = None if node.last_seen is None else (now - node.last_seen).total_seconds()
    source = SectionState(age, "store")
    return NodeState(
        node=node,
        facts=facts,
        report=report.node_report(facts),
        live=False,
        taken=node.last_seen,
        age=age,
        stale=True,
        cause=code,
        cause_text=text,
        remedy=endpoint.remedy if endpoint else "",
        sections={wire.MACHINE: source, **({wire.CONTAINERS: source} if placement else {})},
        endpoint=endpoint,
    )


def _containers(placement: Placement) -> tuple[Container, ...]:
    data = zstandard.ZstdDecompressor().decompress(placement.data, max_output_size=PLACEMENT_BYTES)
    return wire.decode_section(wire.Containers, data).containers


def _cause(node: Node, endpoint: Endpoint | None) -> tuple[str, str]:
    if endpoint is None:
        return "endpoint-missing", ""
    if not node.cluster.enabled:
        return "cluster-disabled", ""
    if not endpoint.enabled:
        return "endpoint-disabled", ""
    if endpoint.state == Endpoint.State.FAILING:
        return "endpoint-failing", endpoint.error
    return "not-collected", ""
