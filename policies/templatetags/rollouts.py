"""Rollouts and policies on pages that know nothing of them: the card on the overview, the lines on a node's page."""

from __future__ import annotations

from typing import NamedTuple

from django import template

from monitoring.figures.headlines import Headline
from monitoring.models import Cluster
from policies import selectors
from policies.models import Rollout, RolloutNode
from policies.selectors import Progress, Standing
from policies.words import rollout as words

register = template.Library()
MOST = 3
"""Rollouts of a node that are named."""


class Active(NamedTuple):
    """The rollout that is at work in a cluster."""

    rollout: Rollout
    target: str
    headline: Headline
    progress: Progress


@register.simple_tag
def active_rollout(cluster: Cluster) -> Active | None:
    found = selectors.active_rollout(cluster)
    if found is None:
        return None
    headline = words.headline(found.state, selectors.behind(found))
    return Active(found, words.target(found.level, found.target), headline, selectors.progress(found))


@register.simple_tag
def rollouts_of_node(cluster: Cluster, name: str) -> list[RolloutNode]:
    """What rollouts did with a node, newest first; plans that nobody confirmed are left out."""
    found = selectors.rollouts_of_node(cluster, name).exclude(rollout__confirmed=None)
    return list(found[:MOST])


@register.simple_tag
def standing_of_node(cluster: Cluster, name: str) -> Standing | None:
    """What is wanted of a node beside what is; None = nothing is wanted."""
    return selectors.standing_of(cluster, name)
