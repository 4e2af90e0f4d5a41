"""What would make a group's refused pod fit on a node: changes that the kubelet would admit it with, and fewer than the scheduler lacks."""

from __future__ import annotations

import msgspec

from numacore.kubelet import advice as kubelet_advice
from numacore.kubelet.advice import Fit
from numacore.kubelet.pod import Pod
from numacore.manifest import Group
from numacore.whatif import judging
from numacore.whatif.candidate import Candidate
from numacore.whatif.judging import NodeAnswer


def advice(group: Group, candidate: Candidate, answer: NodeAnswer) -> tuple[Fit, ...]:
    """Single changes, each judged, that let the group's first pod in; none for an admitted one or where nobody can judge."""
    if candidate.kubelet is None:
        return ()
    if answer.shortage is None:
        return kubelet_advice.advice(candidate.kubelet, group.pod, answer.first) if answer.first else ()

    def admits(less: Pod) -> bool:
        return bool(
            judging.judge_node(msgspec.structs.replace(group, pod=less), candidate, wanted=1).admitted
        )

    return kubelet_advice.smaller_request(group.pod, answer.shortage.resource, admits)
