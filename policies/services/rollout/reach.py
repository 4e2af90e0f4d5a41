"""Whether a cluster can be worked on: the switch, the connection, the rights, the key. And the hands that work on it."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from monitoring.kube.access import Access
from monitoring.kube.errors import ApiError
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Cluster, Connection
from monitoring.selectors import reaching
from policies.gateway import Hands
from policies.services.rollout import signing
from policies.services.rollout.error import RolloutError

enter: Callable[[Access], Hands] = Hands
"""Tests put a played cluster here."""


def opened(cluster: Cluster) -> Hands:
    """Asks nobody yet. Raises RolloutError."""
    if not settings.NUMAWEB_ROLLOUTS:
        raise RolloutError("off")
    connection = Connection.objects.filter(cluster=cluster, enabled=True).first()
    if connection is None:
        raise RolloutError("no-connection")
    try:
        return enter(reaching.access_of(connection))
    except AccessError as error:
        raise RolloutError("access", cause=str(error)) from None
    except ApiError as error:
        raise RolloutError("unreachable", cause=error.message) from None


def ready(cluster: Cluster) -> Hands:
    """All that has to be there before a node is begun, the rights asked for at the API server. Raises RolloutError."""
    hands = opened(cluster)
    try:
        missing = hands.missing(settings.NUMAWEB_NAMESPACE)
    except ApiError as error:
        raise RolloutError("unreachable", cause=error.message) from None
    if missing:
        raise RolloutError("missing-right", cause=", ".join(map(str, missing)))
    signing.signer()
    return hands
