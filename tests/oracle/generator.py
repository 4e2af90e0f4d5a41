"""Random cases for the kubelet: machine, settings, devices and what happens, in the forms of README.md.

A case is made from the seed and its number alone, so that any one of them can be made again.
"""

from collections.abc import Collection, Iterator
from random import Random
from typing import Any

from tests.oracle import configs, machines, workloads

Case = dict[str, Any]

PARTS = ("devices", "restarts", "state")
"""What can be left out."""

TORN_FILES = ("{}", '{"policyName":"none","defaultCpuSet":"","checksum":1}')
"""State files that are JSON and yet not what the kubelet wrote; the words for other texts are those of Go's decoder."""


def cases(seed: int, number: int, without: Collection[str] = (), minor: int = 37) -> Iterator[Case]:
    for nth in range(number):
        yield case(seed, nth, without, minor)


def case(seed: int, nth: int, without: Collection[str] = (), minor: int = 37) -> Case:
    """The same for every version, but for feature gates that one refuses."""
    random = Random(f"{seed}/{nth}")
    machine = machines.machine(random)
    config = configs.config(random, machine)
    reports = workloads.devices(random, machine) if random.random() < 0.35 else []
    if machines.most_merged(machine) < 2:
        config["MemoryPolicy"], config["ReservedMemory"], reports = "None", [], []
    made: Case = {"ID": f"{seed}-{nth}", "Machine": machine, "Config": config}
    if reports and "devices" not in without:
        made["Devices"] = reports
    story = workloads.Story(random, machine, config, made.get("Devices", []))
    steps = random.randint(1, 3) if len(machine) > machines.FEW else random.randint(2, 10)
    made["Steps"] = story.steps(steps, restarts="restarts" not in without)
    if random.random() < 0.03 and "state" not in without:
        made["State"] = {random.choice(["CPU", "Memory"]): random.choice(TORN_FILES)}
    if random.random() < 0.1 and "state" not in without:
        made["KeepState"] = True
    for holder in (made, *(step["Restart"] for step in made["Steps"] if "Restart" in step)):
        if holder.get("Config"):
            holder["Config"] = configs.taken_by(minor, holder["Config"])
    return made
