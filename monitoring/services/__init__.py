"""Writes of this room. Doors (tasks, the admin, commands) call these; nothing here enqueues a task."""

from monitoring.services.clusters import (
    EndpointSpec,
    Exporters,
    ensure_cluster,
    ensure_connection,
    ensure_own_connection,
)
from monitoring.services.collection import end_all as end_shifts
from monitoring.services.collection import run as collect
from monitoring.services.collection import wanted as shift_wanted
from monitoring.services.configuration import ensure_settings
from monitoring.services.endpoints import Trial, try_endpoint
from monitoring.services.housekeeping import compact_history, forget
from monitoring.services.recording import Observation, record
from monitoring.services.sealing import Resealed, reseal
from monitoring.services.texts import index_texts

__all__ = [
    "EndpointSpec",
    "Exporters",
    "Observation",
    "Resealed",
    "Trial",
    "collect",
    "compact_history",
    "end_shifts",
    "ensure_cluster",
    "ensure_connection",
    "ensure_own_connection",
    "ensure_settings",
    "forget",
    "index_texts",
    "record",
    "reseal",
    "shift_wanted",
    "try_endpoint",
]
