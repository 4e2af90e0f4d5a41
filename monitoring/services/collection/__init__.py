"""A shift of collection: one process asks the exporters of one shard, round after round, for about a minute.

`run` is what the task calls. A shift has one event loop that asks and keeps the newest state, and three threads beside
it: one for the hot store and the bus, one for the database, one that shows that the holder of the lease works.
"""

from monitoring.services.collection.shift import end_all, run, wanted

__all__ = ["end_all", "run", "wanted"]
