"""Exporters found by their pods: one endpoint for each pod that runs with the label `app: numa-exporter`.

A token goes only to pods of the namespace that an administrator chose: a label alone is anybody's to write.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from monitoring.kube import objects
from monitoring.models import Endpoint
from monitoring.models.kubernetes import Connection

LABEL, VALUE = "app", "numa-exporter"
RUNNING = "Running"


class _Found(msgspec.Struct, frozen=True):
    url: str
    node: str


class Exporters:
    """The endpoints of one cluster that pods stand behind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._found: dict[str, _Found] = {}
        """By the pod's uid."""
        self._listed: set[str] = set()
        self._changed = False
        self._known_whole = False

    def begin(self) -> None:
        self._listed = set()

    def put(self, pods: Sequence[objects.Pod]) -> None:
        for pod in pods:
            found = self._exporter(pod)
            if found is None:
                self._lose(pod.metadata.uid)
                continue
            self._listed.add(pod.metadata.uid)
            if self._found.get(pod.metadata.uid) != found:
                self._found[pod.metadata.uid] = found
                self._changed = True

    def drop(self, pods: Sequence[objects.Pod]) -> None:
        for pod in pods:
            self._lose(pod.metadata.uid)

    def end(self) -> None:
        """The list is whole: other endpoints that pods stood behind are none any more."""
        for uid in [uid for uid in self._found if uid not in self._listed]:
            self._lose(uid)
        self._changed = True
        self.write(whole=True)

    def write(self, *, whole: bool = False) -> None:
        """Writes what changed. Endpoints are removed only where all pods are known."""
        if not self._changed:
            return
        self._changed = False
        found = {each.url: each for each in self._found.values()}
        of_pods = Endpoint.objects.filter(cluster=self._connection.cluster_id, origin=Endpoint.Origin.POD)
        before = {endpoint.url: endpoint for endpoint in of_pods}
        for url, each in found.items():
            values = self._values(each)
            if url not in before:
                self._add(url, values)
            elif any(getattr(before[url], name) != value for name, value in values.items()):
                of_pods.filter(url=url).update(**values)
        if whole or self._known_whole:
            self._known_whole = True
            of_pods.filter(url__in=set(before) - set(found)).delete()

    def _lose(self, uid: str) -> None:
        if self._found.pop(uid, None) is not None:
            self._changed = True

    def _exporter(self, pod: objects.Pod) -> _Found | None:
        if pod.metadata.labels.get(LABEL) != VALUE or pod.status.phase != RUNNING or not pod.status.pod_ip:
            return None
        wanted = self._connection.exporter_namespace
        if wanted and pod.metadata.namespace != wanted:
            return None
        port = next((port.container_port for each in pod.spec.containers for port in each.ports), None)
        if port is None or pod.metadata.deletion_timestamp is not None:
            return None
        scheme = "https" if self._connection.exporter_https else "http"
        host = f"[{pod.status.pod_ip}]" if ":" in pod.status.pod_ip else pod.status.pod_ip
        return _Found(f"{scheme}://{host}:{port}", pod.spec.node_name)

    def _token(self) -> str:
        return self._connection.exporter_token if self._connection.exporter_namespace else ""

    def _values(self, found: _Found) -> dict[str, str]:
        return {
            "name": found.node,
            "token": self._token(),
            "ca": self._connection.exporter_ca,
            "server_name": self._connection.exporter_name,
        }

    def _add(self, url: str, values: dict[str, str]) -> None:
        """An address that a person entered, or that a Service brought, stays as it is: its token is theirs."""
        Endpoint.objects.get_or_create(
            cluster_id=self._connection.cluster_id,
            url=url,
            defaults=values | {"origin": Endpoint.Origin.POD},
        )
