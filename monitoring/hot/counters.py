"""What worker processes counted, as metrics: they serve no pages, so the web process shows it for them."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from monitoring.hot.state import StoreError
from monitoring.hot.stores import store

FAMILIES = {
    "collections": ("numaweb_collections", "Times that an exporter was asked, by how it ended.", "result"),
    "samples_written": ("numaweb_history_samples_written", "Samples of history that were stored.", ""),
    "samples_dropped": (
        "numaweb_history_samples_dropped",
        "Samples that were lost while the database was away.",
        "",
    ),
    "conflicts": (
        "numaweb_endpoint_conflicts",
        "Times that an exporter claimed a node of another exporter.",
        "",
    ),
    "database_errors": ("numaweb_collection_database_errors", "Writes that the database refused.", ""),
    "defects": (
        "numaweb_collection_defects",
        "Times that collection broke on something that is no single node's answer; the log tells on what.",
        "",
    ),
}


class SharedCounts(Collector):
    """Read from the hot store at each scrape; nothing is shown while that cannot be reached."""

    def collect(self) -> Iterator[Metric]:
        try:
            counts = store().counts()
        except StoreError:
            return
        for key, (name, text, label) in FAMILIES.items():
            family = CounterMetricFamily(name, text, labels=[label] if label else [])
            for counted, amount in sorted(counts.items()):
                result = counted.removeprefix(f"{key}_").removeprefix("failed:")
                if label and counted.startswith(f"{key}_"):
                    family.add_metric([result], amount)
                elif counted == key:
                    family.add_metric([], amount)
            yield family

    def describe(self) -> list[Metric]:
        """Nothing is read at start, when there may be no store yet."""
        return []
