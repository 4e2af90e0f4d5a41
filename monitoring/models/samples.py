"""History: a journal that is written often and read seldom, and chunks that are written once and read often."""

from django.db import models

from monitoring.models.inventory import Node


class HistoryJournal(models.Model):
    """Samples of one moment of many nodes (`monitoring.history.journal` reads and writes `data`)."""

    bucket = models.PositiveIntegerField()
    """Nodes are spread over buckets, so that one node's newest samples are found without reading all nodes'."""
    at = models.PositiveBigIntegerField()
    """Start of the sample's interval, seconds since 1970."""
    shard = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["bucket", "at", "shard"], name="one_journal_of_a_moment")
        ]

    def __str__(self) -> str:
        return f"{self.bucket} {self.at}"


class HistoryChunk(models.Model):
    """Samples of one node over a span (`monitoring.history.chunks` reads and writes `data`)."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="chunks", db_index=False)
    resolution = models.PositiveIntegerField()
    """Seconds between two samples."""
    start = models.PositiveBigIntegerField()
    """First sample's interval, seconds since 1970; the chunk's span begins here."""
    data = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["node", "resolution", "start"], name="one_chunk_of_a_span")
        ]
        indexes = [models.Index(fields=["resolution", "start"], name="chunk_age")]

    def __str__(self) -> str:
        return f"{self.node_id} {self.resolution} {self.start}"
