"""Failed pods are deleted, each only while it is still the same and still failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec
from kubernetes import client

from monitoring.kube.access import Access
from monitoring.kube.errors import ApiError
from monitoring.kube.rights import Right
from policies.gateway import reaching
from policies.gateway.reaching import SECONDS, answers

FAILED = "Failed"
WANTED = (Right("get", "", "pods"), Right("delete", "", "pods"))
"""What a clean-up needs: a pod is looked at once more before it goes."""


class Done(NamedTuple):
    """What became of one pod. deleted: by us; gone: it was not there; changed: another pod, or no failed one; refused: not allowed."""

    outcome: Literal["deleted", "gone", "changed", "refused"]
    cause: str = ""


class Gateway:
    """Writes into one cluster. Every method raises ApiError where the API server gave no answer to the question."""

    def __init__(self, access: Access) -> None:
        api = reaching.client_for(access)
        self._pods, self._reviews = client.CoreV1Api(api), client.AuthorizationV1Api(api)

    def missing(self, namespaces: Collection[str]) -> list[Right]:
        """Rights that a clean-up in these namespaces needs and does not have, whether or not it has them in the whole cluster."""
        lacking = [right for right in WANTED if not self._allowed(right)]
        return [
            msgspec.structs.replace(right, namespace=namespace)
            for right in lacking
            for namespace in sorted(namespaces)
            if not self._allowed(msgspec.structs.replace(right, namespace=namespace))
        ]

    def _allowed(self, right: Right) -> bool:
        return reaching.allowed(self._reviews, right)

    def delete_failed_pod(self, namespace: str, name: str, uid: str) -> Done:
        """Deletes a pod if it is still the one with this uid and still failed; never another one under its name.

        The API server checks again as it deletes: the preconditions name the uid and the version that was looked at.
        """
        try:
            return self._delete(namespace, name, uid)
        except ApiError as error:
            match error.status:
                case 404:
                    return Done("gone")
                case 409:
                    return Done("changed", error.message)
                case 403 | 422:
                    return Done("refused", error.message)
            raise

    def _delete(self, namespace: str, name: str, uid: str) -> Done:
        with answers():
            found = self._pods.read_namespaced_pod(name, namespace, _request_timeout=SECONDS)
        if found.metadata is None or found.metadata.uid != uid:
            return Done("changed", "another pod has this name now")
        if found.status is None or found.status.phase != FAILED:
            return Done("changed", f"its phase is {found.status.phase if found.status else 'unknown'}")
        same = client.V1Preconditions(uid=uid, resource_version=found.metadata.resource_version)
        with answers():
            self._pods.delete_namespaced_pod(
                name,
                namespace,
                body=client.V1DeleteOptions(preconditions=same),
                _request_timeout=SECONDS,
            )
        return Done("deleted")
