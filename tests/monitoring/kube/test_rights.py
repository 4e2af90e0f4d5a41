"""Rights are named as the API server names them, and asked about before anything is refused."""

import pytest

from monitoring.kube.client import Client
from monitoring.kube.errors import Garbled, Unauthorized
from monitoring.kube.rights import Right, missing, refused
from tests.monitoring.kube.answers import saying
from tests.monitoring.kube.fake import FakeApiServer

USER = 'User "system:serviceaccount:numaweb:numaweb-watcher"'


@pytest.mark.parametrize(
    ("message", "right", "shown"),
    [
        (
            f'pods is forbidden: {USER} cannot list resource "pods" in API group "" at the cluster scope',
            Right("list", "", "pods"),
            "list pods",
        ),
        (
            f'pods "a" is forbidden: {USER} cannot delete resource "pods" in API group "" in the namespace "shop"',
            Right("delete", "", "pods", namespace="shop"),
            "delete pods in shop",
        ),
        (
            f'nodes "n1" is forbidden: {USER} cannot get resource "nodes/configz" in API group "" at the cluster scope',
            Right("get", "", "nodes", "configz"),
            "get nodes/configz",
        ),
        (
            f'numatopologies.nodeinfo.volcano.sh is forbidden: {USER} cannot watch resource "numatopologies" in API group '
            '"nodeinfo.volcano.sh" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found',
            Right("watch", "nodeinfo.volcano.sh", "numatopologies"),
            "watch numatopologies.nodeinfo.volcano.sh",
        ),
        (
            f'forbidden: {USER} cannot get path "/metrics"',
            Right("get", "", "/metrics"),
            "get /metrics",
        ),
    ],
)
def test_it_finds_the_right_in_a_refusal(message: str, right: Right, shown: str) -> None:
    assert refused(message) == right
    assert str(right) == shown


def test_it_finds_no_right_in_other_words() -> None:
    for message in ("", "no", "admission webhook denied the request", 'cannot list resource "pods"'):
        assert refused(message) is None


async def test_it_keeps_what_a_right_is_for_and_the_order() -> None:
    async with FakeApiServer() as server:
        wanted = [Right("list", "", name, why=f"page {name}") for name in ("pods", "nodes", "events")]
        async with Client(server.identity([Right("list", "", "nodes")])) as client:
            assert await missing(client, wanted) == [wanted[0], wanted[2]]
            assert await missing(client, []) == []


async def test_a_question_that_is_not_answered_is_no_missing_right() -> None:
    async with FakeApiServer() as server:
        access = server.identity([])
        server.dismiss(access)
        async with Client(access) as client:
            with pytest.raises(Unauthorized):
                await missing(client, [Right("list", "", "pods")])
            server.always = saying(b'{"status":{}}', 201)
            with pytest.raises(Garbled):
                await missing(client, [Right("list", "", "pods")])
