"""What an order would do to this node, for a person to read. Reads only, the lock included."""

from __future__ import annotations

from numaagent.applier import deadman, places, prospect, trust, units
from numaagent.applier.course import Told
from numaagent.applier.refusal import RefusedError
from numacore.change.order import Order


async def text(told: Told, order: Order, document: str) -> str:
    """The change of the file, the state files that go, the units, and what stands in the way. Raises RefusedError, FailedError."""
    trust.check(order, told.host, told.node)
    trust.check_epoch(order, document, trust.seen(told.host))
    ahead = prospect.of(order, told.host)
    lines = [
        f"order     {order.act} of {order.path}, epoch {order.epoch}, rollout {order.rollout}",
        f"file      {'unchanged' if ahead.unchanged else _change(order)}",
    ]
    async with units.connected(told.bus, told.waits) as systemd:
        unit = await systemd.unit(order.unit)
        lines.append(
            f"kubelet   {order.unit}: {unit.load}, {unit.active}/{unit.sub}, process {unit.main_pid or 'none'}"
        )
        lines += [
            f"state     {order.root}/{name}: {'goes' if name in ahead.state else 'is not there'}"
            for name in order.state_files
        ]
        left = deadman.armed(told.host)
        lines.append(
            "dead-man  "
            + (
                f"armed for change {left.epoch}, which is not finished"
                if left
                else f"would be armed for {order.dead_man} s"
            )
        )
        try:
            if not ahead.unchanged:
                trust.check_time(order, told.clock())
            prospect.check_room(order, told.host, ahead)
            await prospect.check_kubelet(order, unit)
            lines.append(f"verdict   {'nothing to do' if ahead.unchanged else 'would be carried out'}")
        except RefusedError as error:
            lines.append(f"verdict   refused: {error.words}")
    lines.append(f"copies    {places.ORIGINAL}{order.path}, {places.CHANGES}/{order.epoch}")
    diff = "" if ahead.unchanged else ahead.diff(order.path)
    return "\n".join(lines) + "\n" + (f"\n{diff}" if diff else "")


def _change(order: Order) -> str:
    if not order.after:
        return "goes"
    return "is made" if not order.before else "changes as below"
