"""This room's own numbers in Prometheus's format; `numaweb` serves the default registry at /metrics.

What worker processes count is shared through the hot store (`monitoring.hot.counters`), because they serve no pages.
"""

from prometheus_client import Counter, Gauge

SOCKETS = Gauge("numaweb_live_sockets", "Open WebSockets.", ["topic"])
SENT = Counter("numaweb_live_messages", "Messages given to browsers.", ["topic"])
OVERFLOWS = Counter(
    "numaweb_live_mailbox_overflows",
    "Ticks that a slow browser did not take in time; it gets the newest state.",
)
CLOSED = Counter("numaweb_live_closed", "WebSockets that this side closed.", ["reason"])
REFUSED = Counter("numaweb_live_refused", "WebSockets that were refused.", ["reason"])
BUS_GAPS = Counter("numaweb_live_bus_gaps", "Times that messages between processes may have been lost.")
BUS_DROPPED = Counter("numaweb_live_bus_dropped", "Messages that could not be given to the other processes.")
PROMETHEUS = Counter("numaweb_prometheus_queries", "Queries to the configured Prometheus.", ["result"])
