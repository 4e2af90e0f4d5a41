"""The only place that writes into a cluster: failed pods are deleted, nodes cordoned and drained, orders given to appliers."""

from policies.gateway.hands import Hands
from policies.gateway.pods import Done, Gateway

__all__ = ["Done", "Gateway", "Hands"]
