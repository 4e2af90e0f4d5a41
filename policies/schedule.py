"""What of this room runs by itself, and how often. Read by `numaweb.celery`."""

from monitoring.schedule import Entry

SCHEDULE = [
    Entry("resume clean-ups", "policies.tasks.resume_cleanups", 15.0, "change"),
    Entry("resume rollouts", "policies.tasks.resume_rollouts", 5.0, "change"),
    Entry("send notices", "policies.tasks.send_notices", 5.0, "change"),
]
