"""The real API server does what monitoring.kube relies on; the fake that faster tests use is held to the same contract."""

from collections.abc import Iterable
from itertools import count

import pytest

from monitoring.kube import access
from monitoring.kube.access import Access
from monitoring.kube.resources import NUMATOPOLOGIES, PODS
from monitoring.kube.rights import Right
from tests.cluster.api import ApiError, Object
from tests.cluster.controlplane import ControlPlane, until
from tests.kubecontract import BREAKING, CONTRACT, Check

NUMBERS = count(1)
GROUP = "rbac.authorization.k8s.io"


class Real:
    """A control plane as the contract wants it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self.namespace = namespace
        self.access = access.from_kubeconfig(plane.kubeconfig())
        self.create = plane.api.create

    def patch(self, thing: Object, change: Object) -> Object:
        return self._plane.api.patch(self._plane.api.path(thing), change)

    def delete(self, thing: Object) -> None:
        self._plane.api.delete(self._plane.api.path(thing))

    def identity(self, rights: Iterable[Right]) -> Access:
        """A ServiceAccount, whose role counts a moment after it was given."""
        name = f"somebody-{next(NUMBERS)}"
        meta = {"metadata": {"name": name}}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        rules = [
            {
                "verbs": [each.verb],
                "apiGroups": [each.group],
                "resources": [f"{each.resource}/{each.subresource}" if each.subresource else each.resource],
            }
            for each in rights
        ]
        account = {"apiVersion": "v1", "kind": "ServiceAccount"}
        role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", **meta, "rules": rules}
        binding = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRoleBinding",
            **meta,
            "subjects": [subject],
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        }
        for thing in ({**account, "metadata": {"name": name, "namespace": self.namespace}}, role, binding):
            self._plane.api.apply(thing)
        return access.from_kubeconfig(self._plane.service_account(self.namespace, name))

    def undefine(self, plural: str) -> None:
        [name] = [
            each["metadata"]["name"]
            for each in self._plane.api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            if each["metadata"]["name"].startswith(f"{plural}.")
        ]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        self._plane.api.delete(path)
        until(lambda: not self._plane.api.exists(path), "the end of a definition")

    def define(self, plural: str) -> None:
        self._plane.define()

    async def restart(self) -> None:
        self._plane.apiserver.kill()
        self._plane.apiserver.start()
        until(self._serves_again, "an API server that serves everything again")

    async def restart_empty(self) -> None:
        self._plane.restart_empty()

    def _serves_again(self) -> bool:
        """It is ready some moments before it has read its custom resources."""
        try:
            return all(self._plane.api.exists(each.path) for each in (PODS, NUMATOPOLOGIES))
        except ApiError as refusal:
            if refusal.status != 429:
                raise
            return False


@pytest.mark.parametrize("it", CONTRACT)
async def test_real(it: Check, plane: ControlPlane, namespace: str) -> None:
    await it(Real(plane, namespace))


@pytest.mark.parametrize("it", BREAKING)
async def test_real_that_breaks(it: Check, own_plane: ControlPlane) -> None:
    await it(Real(own_plane, "default"))
