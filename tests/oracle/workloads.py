"""Random pods, devices, and what happens to them in which order."""

from random import Random
from typing import Any

from tests.oracle import configs, machines
from tests.oracle.configs import Config
from tests.oracle.machines import Node, cpus

Form = dict[str, Any]

HUGE_PAGES = {"2048": "hugepages-2Mi", "1048576": "hugepages-1Gi"}
RESOURCES = ("example.com/gpu", "example.com/nic")
FRACTIONS = ["500m", "1500m", "100m"]
MEMORY = ["64Mi", "64Mi", "128Mi", "512Mi", "1Gi", "2Gi", "3Gi", "5Gi", "100M", "1073741825"]


def devices(random: Random, machine: list[Node]) -> list[Form]:
    """The reports of one or two device plugins."""
    return [_report(random, name, machine) for name in random.sample(RESOURCES, random.choice([1, 1, 2]))]


def _report(random: Random, resource: str, machine: list[Node]) -> Form:
    ids = [node["ID"] for node in machine]
    placed = random.random() < 0.9
    return {
        "Resource": resource,
        "Devices": [
            {"ID": f"d{nth}"}
            | ({"Numa": sorted(random.sample(ids, _spread(random, len(ids))))} if placed else {})
            | ({"Unhealthy": True} if random.random() < 0.06 else {})
            for nth in range(random.randint(1, min(2 * len(ids), 5) + 1))
        ],
    }


def _spread(random: Random, nodes: int) -> int:
    """How many NUMA nodes a device names: one, sometimes none or two."""
    return min(nodes, random.choice([1] * 14 + [0, 2]))


class Story:
    """Steps as they are drawn, and which pods are admitted as far as anybody knows."""

    def __init__(self, random: Random, machine: list[Node], config: Config, reports: list[Form]) -> None:
        self.random = random
        self.machine = machine
        self.config = config
        self.reports = reports
        self.pods: list[Form] = []
        self.total = len(cpus(machine))
        self.extras = self._extras()

    def _extras(self) -> set[str]:
        """What containers may ask for besides CPUs and memory, so that merging the hints of everything stays bearable."""
        sizes = {size for node in self.machine for size in node["HugePages"]}
        possible = [HUGE_PAGES[size] for size in sorted(sizes)] + [each["Resource"] for each in self.reports]
        self.random.shuffle(possible)
        return set(possible[: max(0, machines.most_merged(self.machine) - 2)])

    def steps(self, number: int, *, restarts: bool) -> list[Form]:
        steps: list[Form] = []
        while len(steps) < number:
            steps += self._next(restarts=restarts)
        return steps

    def _next(self, *, restarts: bool) -> list[Form]:
        kind = self.random.random()
        if kind < 0.2 and self.pods:
            return [{"Remove": self.pods.pop(self.random.randrange(len(self.pods)))["UID"]}]
        if kind < 0.23 and self.reports:
            return [{"Devices": [_report(self.random, self.reports[0]["Resource"], self.machine)]}]
        if restarts and kind < 0.28:
            return [{"Restart": self._restart()}, *({"Admit": pod} for pod in self._again())]
        if kind < 0.3 and self.pods:
            return [{"Admit": self.random.choice(self.pods)}]
        pod = self._pod(f"p{self.random.randrange(10**9)}")
        self.pods.append(pod)
        return [{"Admit": pod}]

    def _restart(self) -> Form:
        """Mostly with the same settings; a few are changed as an operator might."""
        if self.random.random() < 0.6:
            return {}
        changed = configs.config(self.random, self.machine)
        name = self.random.choice(
            ["TopologyPolicy", "Scope", "CPUOptions", "TopologyOptions", "MemoryPolicy", "CPUPolicy"]
        )
        return {"Config": self.config | {name: changed[name]}}

    def _again(self) -> list[Form]:
        return [pod for pod in self.pods if self.random.random() < 0.8]

    def _pod(self, uid: str) -> Form:
        kind = self.random.choice(["guaranteed"] * 8 + ["burstable", "best-effort"])
        pod: Form = {"UID": uid, "Containers": [], "Init": []}
        for nth in range(self.random.choice([0, 0, 0, 1, 2])):
            sidecar = {"RestartPolicy": "Always"} if self.random.random() < 0.35 else {}
            pod["Init"].append(self._container(f"i{nth}", kind) | sidecar)
        for nth in range(self.random.choice([1, 1, 1, 2, 2, 3])):
            pod["Containers"].append(self._container(f"c{nth}", kind))
        if self.random.random() < 0.12:
            self._whole_pod(pod)
        return pod

    def _container(self, name: str, kind: str) -> Form:
        if kind == "best-effort":
            return {"Name": name, "Requests": {}, "Limits": {}}
        limits = {"cpu": self._cpus(), "memory": self.random.choice(MEMORY)}
        self._huge_pages(limits)
        requests = dict(limits)
        if kind == "burstable":
            requests["cpu"] = "100m"
        for report in self.reports:
            if report["Resource"] in self.extras and self.random.random() < 0.45:
                asked = str(self.random.randint(1, max(1, len(report["Devices"]) - 1)))
                limits[report["Resource"]] = requests[report["Resource"]] = asked
        return {"Name": name, "Requests": requests, "Limits": limits}

    def _cpus(self) -> str:
        if self.random.random() < 0.12:
            return self.random.choice(FRACTIONS)
        if self.random.random() < 0.1:
            return str(self.random.randint(1, self.total + 1))
        return str(self.random.choice([1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 8]))

    def _huge_pages(self, limits: dict[str, str]) -> None:
        if "hugepages-2Mi" in self.extras and self.random.random() < 0.25:
            limits["hugepages-2Mi"] = f"{2 * self.random.choice([1, 4, 16, 64, 150])}Mi"
        if "hugepages-1Gi" in self.extras and self.random.random() < 0.2:
            limits["hugepages-1Gi"] = f"{self.random.choice([1, 1, 2, 3])}Gi"

    def _whole_pod(self, pod: Form) -> None:
        """Pod-level resources; containers may then say nothing of their own."""
        amounts = {
            "cpu": str(self.random.choice([1, 2, 4, 6, 8])),
            "memory": self.random.choice(["1Gi", "2Gi", "4Gi"]),
        }
        pod["PodRequests"], pod["PodLimits"] = dict(amounts), dict(amounts)
        if self.random.random() < 0.15:
            pod["PodRequests"]["cpu"] = "500m"
        for container in (*pod["Containers"], *pod["Init"]):
            if self.random.random() < 0.5:
                container["Requests"], container["Limits"] = {}, {}
