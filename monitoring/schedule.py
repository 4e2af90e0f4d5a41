"""What runs by itself, and how often. Read by `numaweb.celery`, which hands it to Celery beat."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One line of the schedule: its name, the task, the seconds between two starts, the queue."""

    name: str
    task: str
    seconds: float
    queue: str


SCHEDULE = [
    Entry("start shifts of collection", "monitoring.tasks.start_shifts", 5.0, "default"),
    Entry("compact history", "monitoring.tasks.compact_history", 60.0, "default"),
    Entry("forget what is too old", "monitoring.tasks.forget", 600.0, "default"),
]
