"""What tests do with an API server themselves, one request after another (many at once: bulk.py).

Deliberately not the product's client: a mistake of that one must not hide itself here.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import kubeconfig as kubeconfigs

Object = dict[str, Any]
"""A Kubernetes object as in its JSON."""

MANAGER = "tests"
TIMEOUT_SECONDS = 30
TOO_MANY = 429
BUSY_SECONDS = 0.1
APPLY = "application/apply-patch+yaml"  # takes JSON too
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused; `reason` is its word for it, such as Forbidden."""

    def __init__(self, status: int, body: bytes) -> None:
        try:
            told = json.loads(body)
        except ValueError:
            told = {}
        self.status = status
        self.reason = str(told.get("reason", ""))
        self.message = str(told.get("message", body[:500].decode(errors="replace")))
        super().__init__(f"{status} {self.reason}: {self.message}")


class Api:
    """An API server as one user sees it."""

    def __init__(self, kubeconfig: str) -> None:
        self.server, self.context, self._token = kubeconfigs.credentials(kubeconfig)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.context)
        )
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    # ------------------------------------------------------------ one request

    def raw(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = "application/json",
        query: Mapping[str, object] | None = None,
    ) -> bytes:
        """The body of the answer. Raises ApiError when refused, OSError when nobody answers."""
        sent = None if body is None else json.dumps(body).encode()
        address = f"{self.server}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        request = urllib.request.Request(address, data=sent, method=method, headers=self.headers(kind))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                    return bytes(response.read())
            except urllib.error.HTTPError as refusal:
                with refusal:
                    if refusal.code != TOO_MANY or time.monotonic() > deadline:
                        raise ApiError(refusal.code, refusal.read()) from None
            # A storage that is being made ready says so too.
            time.sleep(BUSY_SECONDS)

    def get(self, path: str, **query: object) -> Object:
        return dict(json.loads(self.raw("GET", path, query=query)))

    def post(self, path: str, body: Object) -> Object:
        return dict(json.loads(self.raw("POST", path, body)))

    def patch(self, path: str, change: Object) -> Object:
        """A merge patch."""
        return dict(json.loads(self.raw("PATCH", path, change, MERGE)))

    def delete(self, path: str, **query: object) -> None:
        self.raw("DELETE", path, query=query)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as refusal:
            if refusal.status != 404:
                raise
            return False
        return True

    def items(self, path: str, **query: object) -> list[Object]:
        return list(self.get(path, **query)["items"])

    def headers(self, kind: str) -> dict[str, str]:
        proof = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {"Accept": "application/json", "Content-Type": kind, **proof}

    # ------------------------------------------------------------ objects

    def path(self, thing: Object, *, collection: bool = False) -> str:
        """Where the API server keeps this object, or objects like it."""
        version, kind = thing["apiVersion"], thing["kind"]
        if (version, kind) not in self._plurals:
            self._plurals |= self._served(version)
        plural, namespaced = self._plurals[version, kind]
        metadata = thing["metadata"]
        folder = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        return f"{_root(version)}{folder}/{plural}" + ("" if collection else f"/{metadata['name']}")

    def _served(self, version: str) -> dict[tuple[str, str], tuple[str, bool]]:
        return {
            (version, each["kind"]): (each["name"], each["namespaced"])
            for each in self.get(_root(version))["resources"]
            if "/" not in each["name"]
        }

    def create(self, thing: Object) -> Object:
        """A node's status counts only when it is created, not when it is applied."""
        return self.post(self.path(thing, collection=True), thing)

    def apply(self, what: str | Path | Object) -> list[Object]:
        """Makes it so, as `kubectl apply --server-side` does: YAML text, a file, or one object."""
        applied = []
        for thing in objects(what):
            answer = self.raw(
                "PATCH", self.path(thing), thing, APPLY, {"fieldManager": MANAGER, "force": "true"}
            )
            applied.append(dict(json.loads(answer)))
        return applied

    def may(
        self,
        verb: str,
        resource: str,
        group: str = "",
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> bool:
        """Whether the API server would let this user do it; no namespace = in all of them."""
        asked = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer["status"]["allowed"])


def objects(what: str | Path | Object) -> Iterator[Object]:
    """The objects of YAML text, of a file, or the one that it is."""
    if isinstance(what, dict):
        yield what
        return
    content = what.read_text(encoding="utf-8") if isinstance(what, Path) else what
    yield from (thing for thing in yaml.safe_load_all(content) if thing)


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
