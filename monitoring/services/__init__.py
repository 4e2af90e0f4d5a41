"""Writes of this room. Doors (tasks, the admin, commands) call these; nothing here enqueues a task."""

from monitoring.services.clusters import EndpointSpec, ensure_cluster

__all__ = ["EndpointSpec", "ensure_cluster"]
