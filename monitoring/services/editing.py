"""Changes of clusters and endpoints by people. Callers hold the transaction and the audit entry."""

from __future__ import annotations

import ssl
from collections import Counter
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, ProtectedError
from django.utils.translation import gettext as _

from monitoring import hot
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Cluster, Connection, Endpoint, Node
from monitoring.selectors import reaching
from monitoring.sources import address as addresses
from monitoring.sources.failures import SourceError


def address(text: str, use: addresses.Use = "exporter", allowed: frozenset[str] = frozenset()) -> str:
    """A base address as it is stored. Raises ValidationError with what is wrong with it.

    Names are judged only when they are asked, because what they lead to may change.
    """
    text = text.strip().rstrip("/")
    try:
        host = addresses.parse(text).host
    except SourceError as error:
        raise ValidationError(str(error)) from error
    if addresses.is_literal(host) and (reason := addresses.forbidden(host, use, allowed)):
        raise ValidationError(reason)
    return text


def is_authority(pem: str) -> bool:
    """Whether a text is certificates in PEM form."""
    try:
        ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        return False
    return True


def authority(pem: str) -> str:
    """Certificates as they are stored; "" = those that this machine trusts. Raises ValidationError where they are none."""
    pem = pem.strip()
    if pem and not is_authority(pem):
        raise ValidationError(_("This is no certificate in PEM form."))
    return pem


def certificate_name(text: str) -> str:
    """The name in an exporter's certificate as it is stored; "" = the host of its address. Raises ValidationError."""
    text = text.strip()
    if text and not addresses.is_name(text):
        raise ValidationError(_("This is neither a host name nor an IP address, and no certificate has it."))
    return text


def fault_of(connection: Connection) -> tuple[str, str]:
    """Why an API server cannot even be asked this way: the field of the form and what is wrong; ("", "") = it can."""
    try:
        reaching.access_of(connection)
    except AccessError as error:
        by_source = {
            Connection.Source.KUBECONFIG: "kubeconfig",
            Connection.Source.TOKEN: error.field,
            Connection.Source.FILE: "source",
        }
        field = by_source.get(Connection.Source(connection.source), "source")
        return field, error.text if field == error.field else str(error)
    return "", ""


def save_cluster(cluster: Cluster, values: dict[str, Any]) -> Cluster:
    """Gives a new or existing cluster these values."""
    _save(cluster, values)
    return cluster


def save_endpoint(endpoint: Endpoint, values: dict[str, Any]) -> Endpoint:
    """Gives a new or existing endpoint these values. Another address or token is a new start of its state."""
    if {"url", "token", "ca", "server_name"} & set(values):
        values = {**values, "state": Endpoint.State.NEW, "failures": 0, "error": "", "remedy": ""}
    _save(endpoint, values)
    return endpoint


class UnfinishedError(Exception):
    """Something of a cluster is not finished, so it is not removed. `things`: how many of what, in the reader's language."""

    def __init__(self, things: str) -> None:
        super().__init__(things)
        self.things = things


def remove_cluster(cluster: Cluster) -> None:
    """Removes a cluster with its nodes and their history. Raises UnfinishedError."""
    nodes = list(Node.objects.filter(cluster=cluster).values_list("pk", flat=True))
    try:
        cluster.delete()
    except ProtectedError as error:
        kinds = Counter(each._meta.verbose_name_plural for each in error.protected_objects)
        raise UnfinishedError(", ".join(f"{kind}: {number}" for kind, number in kinds.items())) from None
    hot.store().forget(nodes)


def remove_endpoint(endpoint: Endpoint) -> None:
    """Removes the address of an exporter. Its node stays, without new data."""
    endpoint.delete()


def _save(row: Model, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
    row.save(force_insert=row.pk is None, update_fields=None if row.pk is None else [*values])
