"""A cluster with labelled nodes, for everything about policies; and one that is played, for rollouts."""

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import hot
from monitoring.models import Cluster
from policies.services.rollout import reach
from tests.monitoring.pages import refusals, seeds
from tests.policies.playedcluster import PlayedCluster

LABELS = {
    "fast-0": {"tier": "gold", "zone": "a"},
    "fast-1": {"tier": "gold", "zone": "b"},
    "slow-0": {"tier": "iron", "zone": "a"},
    "plain-0": None,
}


@pytest.fixture(autouse=True)
def _fresh_memory() -> None:
    """No node's state is remembered from the test before."""
    hot.stores.store.cache_clear()


@pytest.fixture
def west(db: None) -> Cluster:
    """Two nodes of gold, one of iron, and one that Kubernetes does not tell of."""
    made = seeds.cluster("west", "West")
    for name, labels in LABELS.items():
        row = seeds.unheard(made, name, labels=labels or {})
        if labels is None:
            row.kubernetes.delete()
    return made


@pytest.fixture
def played(db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """Three nodes of one kind, each with a pod; rollouts are switched on and their waits are short."""
    settings.NUMAWEB_ROLLOUTS = True
    settings.NUMAWEB_ROLLOUT_READY, settings.NUMAWEB_ROLLOUT_GATE = 4, 20
    cluster = seeds.cluster("west", "West")
    refusals.connected(cluster, source="token", server="https://192.0.2.1:6443", token="t")
    made = PlayedCluster(cluster, timezone.now())
    monkeypatch.setattr(reach, "enter", made.enter)
    for number in range(3):
        made.add(f"n{number}")
        made.run(f"web-{number}", f"n{number}")
    return made
