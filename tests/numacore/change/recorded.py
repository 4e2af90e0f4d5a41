"""Files that were changed for a wish, for kubelets to read: `python -m tests.numacore.change.recorded MINOR PROGRAM` records what they said.

PROGRAM is the kubelet's own reading of settings, as `tests.oracle.settings` builds it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from numacore.change.managed import NodeInfo
from numacore.change.wish import CPU_OPTIONS, Wish
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet, KubeletFile, Setting
from numacore.whatif import changing
from tests.numacore import machines
from tests.oracle.settings import __main__ as program

FOLDER = Path(__file__).parent / "cases"
CONF_D = "/etc/kubernetes/kubelet.conf.d"
MAIN = "/config.yaml"
MINORS = (34, 35, 36, 37)
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
TEXTS = {
    "plain": HEAD,
    "kubeadm": "# kubeadm\n" + HEAD + "cgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nsystemReserved:   # May\n  memory: 1Gi # sshd\n  cpu: '250m'\nunknown: x\n",
    "static": HEAD + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\ntopologyManagerPolicy: restricted\n'
    'topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: "true"\nevictionHard: {memory.available: 5%}\n',
    "windows": (HEAD + "memoryManagerPolicy: None\nkubeReserved: {memory: 300Mi}\nreservedMemory:\n- numaNode: 0\n  limits: {memory: 1Gi}\n").replace("\n", "\r\n"),
    "json": '{\n  "apiVersion": "kubelet.config.k8s.io/v1beta1",\n  "kind": "KubeletConfiguration",\n  "systemReserved": {\n    "memory": "1Gi"\n  }\n}\n',
}  # fmt: skip
WISHES = {
    "all": Wish(topology_policy="single-numa-node", scope="pod", prefer_closest=True, memory_policy="Static", cpu_options={"full-pcpus-only": True}),
    "list": Wish(topology_policy="restricted", reserved_cpus="0,4", max_allowable_numa_nodes=16, memory_policy="Static", reserved_memory="first"),
    "off": Wish(topology_policy="none", cpu_policy="none", memory_policy="None", prefer_closest=False),
    "amounts": Wish(cpu_policy="static", system_reserved_cpu="1500m", kube_reserved_cpu="2"),
    **{option: Wish(cpu_policy="static", cpu_options={option: True, "full-pcpus-only": False}) for option in CPU_OPTIONS[1:4]},
}  # fmt: skip


def facts(text: str, minor: int, drop_ins: bool) -> Facts:
    told = Kubelet(
        present=True,
        version=f"v1.{minor}.0",
        files=(KubeletFile(path=MAIN, kind="file", sha256="0" * 64, text=text),),
        drop_in_dir=CONF_D if drop_ins else None,
        settings={"kind": Setting("", "file", MAIN)},
    )
    return Facts(topology=machines.TWO, attributes=machines.attributes(machines.TWO), kubelet=told)


def cases(minor: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A case for the program, and the fields that were asked for."""
    for name, text in TEXTS.items():
        for wanted, wish in WISHES.items():
            for drop_ins in (False, True):
                found = changing.preview(facts(text, minor, drop_ins), wish, NodeInfo())
                assert found.refusals == (), (name, wanted, found.refusals)
                case: dict[str, Any] = {
                    "ID": f"{name}-{wanted}{'-drop-in' if drop_ins else ''}",
                    "File": text if drop_ins else found.new_text,
                    "Flags": [],
                    "Online": list(range(8)),
                }
                if drop_ins and found.new_text:
                    case["DropIns"] = [{"Name": "90-numa.conf", "Text": found.new_text}]
                yield case, found.intended


def main(minor: int, binary: Path) -> None:
    asked = [case for case, _ in cases(minor)]
    FOLDER.mkdir(exist_ok=True)
    program.record(FOLDER / f"changed-1.{minor}.jsonl.gz", asked, program.ask(binary, asked))
    print(f"{len(asked)} cases, {len({msgspec.json.encode(case) for case in asked})} different")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
