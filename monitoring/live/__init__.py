"""From the collectors to open pages: news on a bus, one hub per web process, one mailbox per browser.

Text frames on both WebSockets are JSON with a `type`:

    hello             topic, epoch, unit (byte of a share of 1), unknown (byte), period, tick: seconds
    state             source: ok | lost (the way from the collectors is interrupted) | silent (nobody collects), since
    beat              at: a sign of life
    inventory-changed nodes came, went or changed: fetch the page's lists anew
    reload-part       part: machine | kubelet | containers of this node changed
    refused           code: signed-out | forbidden | unknown | too-many, and the socket closes with 4401, 4403, 4404, 4429
    closing           reason: signed-out | forbidden, and the socket closes with 4401 or 4403

Overview sockets carry binary frames as well (`monitoring.live.frames`); node sockets JSON of type `node`. A browser may
send {"type": "resync"}, {"type": "pause"}, {"type": "resume"}. Close code 1001 = the server restarts, 1008 = too much
was sent, 1013 = the browser did not read.
"""

from monitoring.live.bus import CellsNews, InventoryNews, NodeNews, bus
from monitoring.live.hub import Hub, hub
from monitoring.live.payloads import NodeTick, node_tick, of_report

__all__ = [
    "CellsNews",
    "Hub",
    "InventoryNews",
    "NodeNews",
    "NodeTick",
    "bus",
    "hub",
    "node_tick",
    "of_report",
]
