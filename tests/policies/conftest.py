"""A cluster with labelled nodes, for everything about policies."""

import pytest

from monitoring.models import Cluster
from tests.monitoring.pages import seeds

LABELS = {
    "fast-0": {"tier": "gold", "zone": "a"},
    "fast-1": {"tier": "gold", "zone": "b"},
    "slow-0": {"tier": "iron", "zone": "a"},
    "plain-0": None,
}


@pytest.fixture
def west(db: None) -> Cluster:
    """Two nodes of gold, one of iron, and one that Kubernetes does not tell of."""
    made = seeds.cluster("west", "West")
    for name, labels in LABELS.items():
        row = seeds.unheard(made, name, labels=labels or {})
        if labels is None:
            row.kubernetes.delete()
    return made
