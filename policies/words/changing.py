"""What a wish comes to on a node, in words: why it cannot be, what comes with it, which state files go and why."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from monitoring.figures import amounts, sentences, verdicts
from monitoring.figures.sentences import Form, Said
from numacore.diagnosis import Reason
from policies.words import policy

SIZES = ("have", "need", "room", "size", "bytes")
"""Values that are bytes."""

ASKED: dict[str, Form] = {
    "ask-static-implied": (
        _("The CPU manager becomes static: without exclusive CPUs the policy %(policy)s has little to align."), None,
    ),
    "ask-options-go": (_("The options %(options)s go: the kubelet takes none without the static policy."), None),
    "ask-cpus-kept": (_("CPUs %(cpus)s stay reserved: a policy takes no reservation away."), None),
    "ask-reserved-more": (
        _("%(field)s: cpu %(after)s instead of %(before)s, for the static policy needs CPUs of the system's own."), None,
    ),
    "ask-memory-spread": (
        _("reservedMemory: %(bytes)s on NUMA node %(nodes)s, the sum that the kubelet demands of its other reservations."), None,
    ),
    "ask-option-version": (
        _("Kubelet %(version)s does not know %(option)s; it came with %(since)s."), _("Bring the node to %(since)s or newer, or leave the option out."),
    ),
    "ask-option-gate": (
        _("In kubelet %(version)s the option %(option)s is %(stage)s and needs the feature gates %(gates)s, which are off."),
        _("Turn the gates on in the kubelet's own configuration first, or leave the option out."),
    ),
    "ask-gate-off": (
        _("The feature gate %(gate)s is off in this kubelet %(version)s, and so is the whole manager."), _("Turn it on in the kubelet's own configuration first."),
    ),
    "ask-cpus-offline": (_("CPUs %(cpus)s are not online here; %(online)s are."), _("Reserve CPUs that this node has.")),
    "ask-cpus-fewer": (
        ngettext_lazy(
            "%(number)s CPU by list (%(cpus)s) is less than the %(least)s that this node reserves by amount.",
            "%(number)s CPUs by list (%(cpus)s) are fewer than the %(least)s that this node reserves by amount.",
            "number of number",
        ),
        ngettext_lazy("List at least %(least)s CPU.", "List at least %(least)s CPUs.", "number of least"),
    ),
    "ask-nothing-reserved": (
        _("The static policy needs at least a part of a CPU reserved for the system, and nothing is."), _("Reserve an amount, or CPUs by list."),
    ),
    "ask-no-memory-reserved": (
        _("This node reserves no memory at all, and the memory manager Static does not start without."),
        _("Give memory to systemReserved or kubeReserved, or a threshold to evictionHard, in the kubelet's own configuration."),
    ),
    "ask-memory-fraction": (
        _("The memory that this node reserves (%(amount)s) is no whole number of bytes, so no reservedMemory can match it."),
        _("Write whole Mi in systemReserved and kubeReserved."),
    ),
    "ask-memory-too-small": (
        _("%(need)s are to be reserved, and the NUMA nodes have %(room)s beside their huge pages."), _("Reserve less in systemReserved and kubeReserved."),
    ),
    "ask-memory-no-node": (_("This node has no NUMA node %(numa)s; it has %(nodes)s."), _("Name NUMA nodes that every node of the target has, or spread evenly.")),
    "ask-memory-node-too-small": (
        _("%(size)s are to be reserved on NUMA node %(numa)s, which has %(room)s beside its huge pages."), _("Reserve less there, or spread evenly."),
    ),
    "ask-memory-sum": (
        _("The amounts make %(have)s, and the kubelet demands exactly %(need)s: systemReserved, kubeReserved and evictionHard together."),
        _("Name amounts with that sum, or spread evenly."),
    ),
    "ask-no-distances": (
        _("The firmware of this node tells no distances between NUMA nodes, and the kubelet does not start with the optimal NUMA distance then."),
        _("Leave the distance off here."),
    ),
    "ask-too-many-nodes": (
        _("This node has %(nodes)s NUMA nodes; with a topology policy the kubelet starts on at most %(most)s."),
        _("Allow as many NUMA nodes (from 1.31 on), or use the policy none here."),
    ),
    "ask-would-not-start": (_("The kubelet would not start with this: %(field)s: %(words)s"), _("Choose otherwise, or correct the node's own settings.")),
    "ask-would-crash": (_("The kubelet would crash with this: %(field)s: %(words)s"), _("Correct the node's own settings first.")),
}  # fmt: skip

ROUTE: dict[str, Form] = {
    "route-no-kubelet": (_("There is no kubelet on this node, or nothing is known of it."), _("Look whether its exporter runs.")),
    "route-not-told": (
        _("The exporter does not tell which files the kubelet reads: it cannot see the kubelet's command line, or it is an older one."),
        _("Bring the exporter to this version, and let it see the host's processes."),
    ),
    "route-foreign-drop-in": (
        _("%(file)s has the name of our own drop-in, and somebody else wrote it."), _("Give that file another name on the node, one that sorts before it."),
    ),
    "route-no-file": (
        _("This kubelet reads no configuration file; it is set by flags alone."), _("Start it with --config, or change its flags where they are written."),
    ),
    "route-unreadable": (_("%(file)s cannot be read on the node, so nobody knows what a change would overrule."), _("Let the exporter read it.")),
    "route-too-large": (_("%(file)s is too large to be a kubelet's configuration, and is not touched."), _("Look at the file on the node.")),
    "route-not-text": (_("%(file)s is no text, and is not touched."), _("Look at the file on the node.")),
    "route-secret": (
        _("%(file)s may hold a password (headers or an address of static pods), so its text does not leave the node and cannot be edited from here."),
        _("Give the kubelet a folder of drop-ins (--config-dir): a file of our own goes there."),
    ),
    "route-flag": (
        _("The flag %(flag)s sets %(field)s on the command line and beats every file."), _("Take the flag away where the kubelet's unit or kubeadm-flags.env has it."),
    ),
    "route-later-drop-in": (
        _("%(file)s comes after our own file and sets %(field)s: it would win."), _("Take the field out of it, or give it a name before 90-numa.conf."),
    ),
    "managed-openshift": (
        _("OpenShift configures this node (%(by)s): its operator would call the change a drift and stop."),
        _("Use a KubeletConfig or a PerformanceProfile for the node's MachineConfigPool."),
    ),
    "managed-rke2": (_("RKE2 runs this kubelet (%(by)s) and writes its settings at each start."), _("Use kubelet-arg in /etc/rancher/rke2/config.yaml.")),
    "managed-k3s": (_("K3s runs this kubelet (%(by)s) and writes its settings at each start."), _("Use kubelet-arg in /etc/rancher/k3s/config.yaml.")),
    "managed-talos": (_("Talos configures this kubelet (%(by)s); its files cannot be written."), _("Use machine.kubelet.extraConfig in the machine configuration.")),
    "managed-bottlerocket": (_("Bottlerocket configures this kubelet (%(by)s); its files are made anew from its settings."), _("Use settings.kubernetes by its API or user data.")),
    "managed-eks": (_("EKS configures this node (%(by)s) and makes it anew from a template."), _("Use spec.kubelet.config of NodeConfig (nodeadm) in the launch template.")),
    "managed-gke": (_("GKE configures this node (%(by)s) and makes it anew."), _("Use kubeletConfig of the node pool's system configuration.")),
    "managed-aks": (_("AKS configures this node (%(by)s) and makes it anew."), _("Use the custom kubelet configuration of the node pool.")),
    "managed-k0s": (_("k0s runs this kubelet (%(by)s) and writes its settings at each start."), _("Use a worker profile in the k0s configuration.")),
    "managed-microk8s": (_("MicroK8s runs this kubelet (%(by)s)."), _("Use the arguments of the snap's kubelet.")),
    "managed-kops": (_("kOps configures this node (%(by)s) and writes the file at each boot."), _("Use spec.kubelet of the cluster or the instance group.")),
    "managed-gardener": (_("Gardener configures this node (%(by)s) and writes the file again."), _("Use spec.kubernetes.kubelet of the shoot or its worker pool.")),
}  # fmt: skip

EDIT: dict[str, Form] = {
    "edit-too-large": (_("%(file)s is too large to be edited safely."), _("Look at the file on the node.")),
    "edit-syntax": (_("%(file)s cannot be read, line %(line)s: the kubelet would not start with it again."), _("Correct the file on the node first.")),
    "edit-empty": (_("%(file)s is empty: the kubelet would not start with it again."), _("Correct the file on the node first.")),
    "edit-not-a-mapping": (_("%(file)s is no configuration: the kubelet would not start with it again."), _("Correct the file on the node first.")),
    "edit-several-documents": (_("%(file)s holds several documents, of which the kubelet reads the first."), _("Keep one document in it.")),
    "edit-duplicates": (_("%(file)s has %(field)s twice, line %(line)s: which of them is meant, nobody can tell."), _("Remove one of the two.")),
    "edit-alias": (
        _("%(file)s, line %(line)s: %(field)s has an anchor or an alias, so a change of it would change something else."), _("Write it out without anchors."),
    ),
    "edit-form": (_("%(file)s is written in a form in which the change cannot be made safely."), _("Write its fields as a plain block of lines, one a line.")),
}  # fmt: skip

CHANGE: dict[str, Form] = {
    "change-ages-unknown": (
        ngettext_lazy(
            "Nobody tells the age of %(pods)s pod with a place of its own. The kubelet takes the oldest on first, so others may be refused than these.",
            "Nobody tells the age of %(pods)s pods with places of their own. The kubelet takes the oldest on first, so others may be refused than these.",
            "number of pods",
        ),
        _("Connect the cluster to Kubernetes, which tells it."),
    ),
    "change-version": (
        _("The rules of this kubelet (%(version)s) are not known, so nothing is changed on it."), _("Bring numaweb or the node to a version that both know."),
    ),
    "change-version-unknown": (
        _("Nobody tells the version of this kubelet, so its rules are not known and nothing is changed on it."), _("Connect the cluster to Kubernetes, which tells it."),
    ),
    "change-not-judged": (
        _("Whether this kubelet would start with the change, and which pods it would keep, cannot be told (%(words)s), so nothing is changed on it."),
        _("Change it by hand, or let its firmware make fewer NUMA nodes."),
    ),
    "change-no-effect": (
        _("Written into %(file)s, %(field)s would not come into force: another file says otherwise."), _("Look at the node's other files and drop-ins."),
    ),
    "leave-cpu-policy": (_("The CPU manager's policy changes from %(before)s to %(after)s, and the kubelet does not start on the other's state."), None),
    "leave-memory-policy": (_("The memory manager's policy changes from %(before)s to %(after)s, and the kubelet does not start on the other's state."), None),
    "leave-cpu-options": (_("Other options share out the CPUs otherwise; on the old state the kubelet would say: %(words)s"), None),
    "leave-reserved-cpus": (_("Other CPUs are reserved; on the old state the kubelet would say: %(words)s"), None),
    "leave-reserved-memory": (_("Other memory is reserved; on the old state the kubelet would say: %(words)s"), None),
    "leave-cpu-state": (_("The CPU manager's state does not fit this node any more, with or without the change: %(words)s"), None),
    "leave-memory-state": (_("The memory manager's state does not fit this node any more, with or without the change: %(words)s"), None),
    "volcano-told": (
        _("Volcano hears of %(fields)s from %(file)s at its exporter's next look; pods that wait are judged by the new settings then."), None,
    ),
    "volcano-blind": (
        _("Volcano reads only the kubelet's main file, and not %(file)s: it goes on judging by the old %(fields)s, and may send pods that the kubelet refuses."),
        _("Where Volcano schedules to this node, write the same fields into the main file too."),
    ),
}  # fmt: skip

FORMS: dict[str, Form] = {
    **ASKED, **ROUTE, **EDIT, **CHANGE, **{code: (text, None) for code, text in policy.FAULTS.items()}, **verdicts.ALL,
}  # fmt: skip


def said(reason: Reason) -> Said:
    """The sentence of a reason and what can be done."""
    text, remedy = FORMS[reason.code]
    values = shown(reason.values)
    return Said(sentences.filled(text, values), sentences.filled(remedy, values) if remedy else "")


def shown(values: Mapping[str, str | int | float]) -> dict[str, object]:
    """Values as sentences show them: bytes in binary units."""
    return {
        name: amounts.size(value) if name in SIZES and isinstance(value, int) else value
        for name, value in values.items()
    }
