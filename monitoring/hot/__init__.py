"""The newest state of every node, for whoever shows it now. Two stores with one behaviour: this process's memory, Redis.

The database keeps what must survive; what is here may be lost at any time and comes back with the next round of
collection.
"""

from monitoring.hot.state import UNIT, UNKNOWN, Cells, HotNode, Note, Planes, Reading, StoreError, planes
from monitoring.hot.stores import Store, store

__all__ = [
    "UNIT",
    "UNKNOWN",
    "Cells",
    "HotNode",
    "Note",
    "Planes",
    "Reading",
    "Store",
    "StoreError",
    "planes",
    "store",
]
