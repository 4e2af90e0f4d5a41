"""Which clusters there are, and where their exporters answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from django.db import transaction

from monitoring.models import Cluster, Connection, Endpoint


class EndpointSpec(msgspec.Struct, frozen=True):
    """Where one exporter answers: the base address, `http://HOST:PORT`."""

    url: str
    name: str = ""
    token: str = ""


def ensure_cluster(slug: str, name: str, kind: str, endpoints: Iterable[EndpointSpec | str] = ()) -> Cluster:
    """Makes the cluster and its endpoints be as said; what is there already keeps its history.

    Endpoints that are not named are switched off, not removed. Safe to run again.
    """
    wanted = {spec.url: spec for spec in map(_spec, endpoints)}
    with transaction.atomic():
        cluster, _ = Cluster.objects.update_or_create(slug=slug, defaults={"name": name, "kind": kind})
        for spec in wanted.values():
            Endpoint.objects.update_or_create(
                cluster=cluster,
                url=spec.url,
                defaults={"name": spec.name, "token": spec.token, "enabled": True},
            )
        cluster.endpoints.exclude(url__in=wanted).update(enabled=False)
    return cluster


class Exporters(msgspec.Struct, frozen=True):
    """How the exporters of a cluster are found and asked; the fields are those of a Connection."""

    namespace: str = ""
    token: str = ""
    https: bool = False
    ca: str = ""
    name: str = ""


def ensure_own_connection(slug: str, name: str, exporters: Exporters) -> Connection:
    """Makes the cluster that numaweb runs in be there and watched, its exporters as said. Safe to run again.

    A cluster that is there already keeps its name, which an administrator may have changed.
    """
    with transaction.atomic():
        kind = Cluster.Kind.KUBERNETES
        cluster, _ = Cluster.objects.get_or_create(slug=slug, defaults={"name": name, "kind": kind})
        told = {f"exporter_{field}": value for field, value in msgspec.structs.asdict(exporters).items()}
        connection, _ = Connection.objects.update_or_create(
            cluster=cluster, defaults={"source": Connection.Source.IN_CLUSTER, "enabled": True, **told}
        )
    return connection


def ensure_connection(slug: str, name: str) -> Connection:
    """Makes the cluster that NUMAWEB_KUBECONFIG leads to be there and watched. Safe to run again."""
    with transaction.atomic():
        kind = Cluster.Kind.KUBERNETES
        cluster, _ = Cluster.objects.update_or_create(slug=slug, defaults={"name": name, "kind": kind})
        connection, _ = Connection.objects.update_or_create(
            cluster=cluster, defaults={"source": Connection.Source.FILE, "enabled": True}
        )
    return connection


def _spec(given: EndpointSpec | str) -> EndpointSpec:
    spec = EndpointSpec(given) if isinstance(given, str) else given
    return msgspec.structs.replace(spec, url=spec.url.rstrip("/"))
