"""What is read of a cluster, and what each right is for: the watcher's role has these and no others."""

from __future__ import annotations

from monitoring.kube import kubelet
from monitoring.kube.resources import (
    DAEMONSETS,
    EVENTS,
    NODES,
    NRT_ALPHA2,
    NUMATOPOLOGIES,
    PODS,
)
from monitoring.kube.rights import Right

PAGES = {
    NODES.name: "nodes",
    PODS.name: "pods",
    EVENTS.name: "events",
    DAEMONSETS.name: "exporters",
    NUMATOPOLOGIES.name: "sources",
    NRT_ALPHA2.name: "sources",
}
"""The page that lacks something without the right; codes for which pages have a sentence."""
RESOURCES = (NODES, PODS, EVENTS, DAEMONSETS, NUMATOPOLOGIES, NRT_ALPHA2)
RIGHTS = (
    *(
        Right(verb, each.group, each.plural, why=PAGES[each.name])
        for each in RESOURCES
        for verb in ("list", "watch")
    ),
    kubelet.RIGHT,
)
