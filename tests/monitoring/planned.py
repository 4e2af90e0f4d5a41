"""A cluster to plan on: nodes with two NUMA nodes of four CPUs and 16 GiB, CPU 0 reserved, CPUs 1 and 2 taken by a pod."""

from __future__ import annotations

import msgspec

from monitoring.models import Cluster
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet, Setting
from numacore.usage import Usage
from tests.monitoring.pages import machines, seeds
from tests.numacore.whatif import nodes

JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
  - name: worker
    replicas: %(replicas)d
    topologyPolicy: %(policy)s
    template: {spec: {containers: [{name: main, resources: {limits: {cpu: "%(cpu)s", memory: 1Gi}}}]}}
"""


def job(cpu: str = "2", policy: str = "restricted", replicas: int = 1) -> str:
    return JOB % {"cpu": cpu, "policy": policy, "replicas": replicas}


def facts(**settings: str) -> Facts:
    """The node, with other settings where some are given."""
    known = nodes.facts(nodes.kubelet(**{name: Setting(value, "file") for name, value in settings.items()}))
    usage = Usage(containers_of="", cpu=machines.cpu_times(known.topology, {}))
    return msgspec.structs.replace(known, usage=usage)


def cluster() -> Cluster:
    """`blind` has no kubelet that anybody knows of, `silent` never sent anything, `strict` is single-numa-node, `wide` restricted."""
    made = seeds.cluster()
    seeds.node(made, "wide", facts())
    seeds.node(made, "strict", facts(topologyManagerPolicy="single-numa-node"))
    seeds.node(made, "blind", msgspec.structs.replace(facts(), kubelet=Kubelet()))
    seeds.node(made, "silent", nodes.facts(), heard=0)
    return made
