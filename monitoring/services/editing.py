"""Changes of clusters and endpoints by people. Callers hold the transaction and the audit entry."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext as _

from monitoring import hot
from monitoring.models import Cluster, Endpoint, Node

LONGEST_ADDRESS = 500


def address(text: str) -> str:
    """The base address of an exporter as it is stored: http or https, a host, perhaps a port and a path, no more.

    Raises ValidationError with what is wrong. A password belongs into the token, where it is hidden.
    """
    text = text.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= LONGEST_ADDRESS
    if not plain or parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValidationError(
            _("This is no address such as http://10.0.0.7:9105 (http or https, host, port).")
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValidationError(
            _("An address has no user name, no query and no fragment; a token has its own field.")
        )
    return text


def save_cluster(cluster: Cluster, values: dict[str, Any]) -> Cluster:
    """Gives a new or existing cluster these values."""
    _save(cluster, values)
    return cluster


def save_endpoint(endpoint: Endpoint, values: dict[str, Any]) -> Endpoint:
    """Gives a new or existing endpoint these values. Another address or token is a new start of its state."""
    if {"url", "token"} & set(values):
        values = {**values, "state": Endpoint.State.NEW, "failures": 0, "error": "", "remedy": ""}
    _save(endpoint, values)
    return endpoint


def remove_cluster(cluster: Cluster) -> None:
    """Removes a cluster with its nodes and their history."""
    nodes = list(Node.objects.filter(cluster=cluster).values_list("pk", flat=True))
    cluster.delete()
    hot.store().forget(nodes)


def remove_endpoint(endpoint: Endpoint) -> None:
    """Removes the address of an exporter. Its node stays, without new data."""
    endpoint.delete()


def _save(row: Model, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
    row.save(force_insert=row.pk is None, update_fields=None if row.pk is None else [*values])
