"""Writes of this room. Doors (tasks, the admin, commands) call these; nothing here enqueues a task."""

from monitoring.services.clusters import EndpointSpec, ensure_cluster
from monitoring.services.editing import (
    address,
    remove_cluster,
    remove_endpoint,
    save_cluster,
    save_endpoint,
)

__all__ = [
    "EndpointSpec",
    "address",
    "ensure_cluster",
    "remove_cluster",
    "remove_endpoint",
    "save_cluster",
    "save_endpoint",
]
