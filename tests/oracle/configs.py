"""Random settings of a kubelet, most of them allowed."""

from random import Random
from typing import Any

from numacore.kubelet.checks import gates
from tests.oracle.machines import MIB, Node, cpus

Config = dict[str, Any]

CPU_OPTIONS = (
    "full-pcpus-only",
    "distribute-cpus-across-numa",
    "align-by-socket",
    "distribute-cpus-across-cores",
    "strict-cpu-reservation",
    "prefer-align-cpus-by-uncorecache",
)
GATES: tuple[dict[str, bool], ...] = (
    {"CPUManagerPolicyBetaOptions": False},
    {"CPUManagerPolicyBetaOptions": True},
    {"TopologyManagerPolicyAlphaOptions": True},
    {"TopologyManagerPolicyBetaOptions": False},
    {"PodLevelResourceManagers": True},
    {"PodLevelResourceManagers": True},
    {"PodLevelResourceManagers": False},
    {"InPlacePodVerticalScalingExclusiveCPUs": True},
    {
        "PodLevelResources": False,
        "PodLevelResourceManagers": False,
        "InPlacePodLevelResourcesVerticalScaling": False,
        "PodLevelResourcesFixKubeletQOSClass": False,
        "PodLevelResourcesFixDefaulting": False,
    },
)
"""Those that the resource managers ask for, each with the gates that fall with it. Gates that a version refuses are the business of
the oracle for settings."""


def config(random: Random, machine: list[Node]) -> Config:
    reservation, reserved = _reserved(random, machine)
    memory_policy = _or_wrong(random, random.choice(["Static", "Static", "None"]), "static")
    memory = _reserved_memory(random, machine, reservation) if memory_policy == "Static" else []
    cpu_policy = _or_wrong(random, random.choice(["static"] * 6 + ["none"]), "Static")
    return {
        "TopologyPolicy": _or_wrong(
            random,
            random.choice(["none", *["best-effort", "restricted", "single-numa-node"] * 2]),
            "Restricted",
        ),
        "Scope": _or_wrong(random, random.choice(["container", "pod"]), "node"),
        "TopologyOptions": _topology_options(random, len(machine)),
        "CPUPolicy": cpu_policy,
        "CPUOptions": {} if cpu_policy == "none" and random.random() < 0.9 else _cpu_options(random),
        "ReservedCPUs": reserved,
        "Reservation": reservation,
        "MemoryPolicy": memory_policy,
        "ReservedMemory": memory,
        "Gates": _gates(random),
    }


def _or_wrong(random: Random, value: str, wrong: str) -> str:
    return value if random.random() > 0.005 else wrong


def _flag(random: Random) -> str:
    return (
        random.choice(["true"] * 12 + ["1", "True", "t", "false", "0"]) if random.random() > 0.01 else "yes"
    )


def _topology_options(random: Random, nodes: int) -> dict[str, str]:
    options = {}
    if random.random() < 0.3:
        options["prefer-closest-numa-nodes"] = _flag(random)
    if nodes > 8 or random.random() < 0.05:
        right = str(max(8, nodes))
        options["max-allowable-numa-nodes"] = random.choice([right] * 8 + ["8", "16", "7", "x"])
    if random.random() < 0.004:
        options["prefer-anything"] = "true"
    return options


def _cpu_options(random: Random) -> dict[str, str]:
    wanted = random.choice([0, 0, 1, 1, 1, 2, 2, 3])
    options = {name: _flag(random) for name in random.sample(CPU_OPTIONS, wanted)}
    if random.random() < 0.004:
        options["full-pcpu-only"] = "true"
    return options


def _gates(random: Random) -> dict[str, bool]:
    asked: dict[str, bool] = {}
    if random.random() < 0.8:
        asked["CPUManagerPolicyAlphaOptions"] = random.random() < 0.97
    for several in random.sample(GATES, random.choice([0, 0, 0, 1, 1, 2])):
        asked |= several
    if not asked.get("PodLevelResources", True):
        asked["PodLevelResourceManagers"] = False
    return asked


def _reserved(random: Random, machine: list[Node]) -> tuple[dict[str, str], str]:
    amount = random.choice(["1", "1", "1", "2", "2", "500m", "1500m", "3"])
    reservation = {"cpu": amount}
    if random.random() < 0.01:
        reservation["cpu"] = "0"
    if random.random() < 0.005:
        del reservation["cpu"]
    if random.random() < 0.6:
        return reservation, ""
    number = {"500m": 1, "1500m": 2}.get(amount) or int(amount)
    if random.random() < 0.03:
        number += 1
    every = cpus(machine)
    return reservation, ",".join(map(str, sorted(random.sample(every, min(number, len(every))))))


def _reserved_memory(
    random: Random, machine: list[Node], reservation: dict[str, str]
) -> list[dict[str, Any]]:
    """Reserved memory whose sum is what node allocatable says, but for a few; adds the sums to `reservation`."""
    places = random.sample(machine, random.randint(1, min(3, len(machine))))
    parts = [random.choice([64, 100, 128, 256, 512]) for _ in places]
    total = sum(parts) + (1 if random.random() < 0.02 else 0)
    reservation["memory"] = f"{total}Mi"
    reserved = [
        {"Numa": node["ID"], "Limits": {"memory": _amount(random, part)}}
        for node, part in zip(places, parts, strict=True)
    ]
    if places[0]["HugePages"].get("2048", 0) > 8 and random.random() < 0.15:
        reserved[0]["Limits"]["hugepages-2Mi"] = "4Mi"
        reservation["hugepages-2Mi"] = random.choice(["4Mi"] * 9 + ["2Mi"])
    if random.random() < 0.01:
        reserved[0]["Numa"] = 63
    return reserved


def _amount(random: Random, mebibytes: int) -> str:
    return random.choice([f"{mebibytes}Mi", f"{mebibytes}Mi", str(mebibytes * MIB), f"{mebibytes * 1024}Ki"])


def taken_by(minor: int, config: Config) -> Config:
    """The settings without the feature gates that a version refuses."""
    asked = config["Gates"]
    known = ((name, gates.find(name, minor)) for name in asked)
    taken = {
        name: asked[name] for name, gate in known if gate and not (gate.locked and gate.on != asked[name])
    }
    return config | {"Gates": {} if gates.refusals(taken, minor) else taken}
