"""The API server reads a label selector as `monitoring.kube.selector` does: the same nodes, the same refusals."""

from urllib.parse import quote

import pytest

from tests.cluster import things
from tests.cluster.api import ApiError
from tests.cluster.controlplane import ControlPlane
from tests.labelselectors import MEANT, NODES, REFUSED


def test_every_selector_means_the_same_nodes_there(plane: ControlPlane) -> None:
    for name, labels in NODES.items():
        plane.api.create(things.node(name, labels=labels))
    for text, meant in MEANT.items():
        told = plane.api.get(f"/api/v1/nodes?labelSelector={quote(text)}")
        assert {each["metadata"]["name"] for each in told["items"]} == meant, text


def test_what_we_refuse_it_refuses(plane: ControlPlane) -> None:
    for text in REFUSED:
        with pytest.raises(ApiError) as caught:
            plane.api.get(f"/api/v1/nodes?labelSelector={quote(text)}")
        assert caught.value.status == 400, text
