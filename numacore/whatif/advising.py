"""What would make a group's refused pod fit on a node: changes that the kubelet would admit it with, and fewer than the scheduler lacks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from numacore.kubelet import advice as kubelet_advice
from numacore.kubelet import node
from numacore.kubelet.advice import Advice, Fit
from numacore.kubelet.pod import Pod
from numacore.manifest import Group
from numacore.whatif import judging
from numacore.whatif.candidate import Candidate
from numacore.whatif.judging import NodeAnswer


def advice(group: Group, candidate: Candidate, answer: NodeAnswer) -> Advice:
    """Single changes, each judged, that let the group's first pod in; none for an admitted one or where nobody can judge."""
    if candidate.kubelet is None:
        return Advice()
    if answer.shortage is None:
        return kubelet_advice.advice(candidate.kubelet, group.pod, answer.first) if answer.first else Advice()

    def admits(less: Pod) -> bool:
        return bool(
            judging.judge_node(msgspec.structs.replace(group, pod=less), candidate, wanted=1).admitted
        )

    short, nodes = answer.shortage.resource, len(candidate.kubelet.machine.nodes)
    smaller = kubelet_advice.smaller_request(group.pod, short, admits, nodes)
    return Advice((*smaller.fits, *_leaving(group, candidate, short)), smaller.complete)


def _leaving(group: Group, candidate: Candidate, short: str) -> Iterator[Fit]:
    """Pods whose devices are what is short. How much CPU and memory a running pod asks for, its node often does not know."""
    running = candidate.kubelet
    assert running is not None
    for uid in sorted(running.state.devices.pods):
        held = len(running.state.devices.of_pod(uid, short))
        if not held:
            continue
        room = candidate.room[short]
        less = msgspec.structs.replace(room, requested=room.requested - held)
        without = msgspec.structs.replace(
            candidate, kubelet=node.remove(running, uid), room=candidate.room | {short: less}
        )
        if judging.judge_node(group, without, wanted=1).admitted:
            yield Fit("leaving", "pod", uid)
