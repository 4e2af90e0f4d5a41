"""What `make cluster` shows: nodes with their topologies, pods that run, and what numaweb is there to explain."""

from collections.abc import Iterator

from tests.cluster import things
from tests.cluster.api import Object

CPUS = 32
"""Of a node: the even ones on NUMA node 0, the odd ones on NUMA node 1."""
POLICIES = ("single-numa-node", "restricted", "best-effort", "none")
APPLICATIONS = ("shop", "search", "queue")


def nodes(number: int) -> Iterator[Object]:
    """Nodes, each with what Volcano's exporter and a topology exporter say of it."""
    for nth in range(number):
        name, policy = f"node-{nth:03}", POLICIES[nth % len(POLICIES)]
        yield things.node(
            name,
            cpus=CPUS,
            memory="128Gi",
            labels={
                "topology.kubernetes.io/zone": f"zone-{nth % 2}",
                "node.kubernetes.io/instance-type": "2s-16c-128g",
                "numaweb.test/policy": policy,
            },
            more_capacity={"hugepages-2Mi": "4Gi"},
            machine_id=f"{nth:032x}",
            system_uuid=f"{nth:08x}-0000-0000-0000-000000000000",
        )
        yield numatopology(name, policy)
        # The last node's sources contradict each other.
        yield noderesourcetopology(name, "restricted" if nth == number - 1 else policy)


def numatopology(node: str, policy: str) -> Object:
    """As Volcano's resource exporter writes it: what is 0 is left out."""
    detail: dict[str, dict[str, int]] = {}
    for cpu in range(CPUS):
        known = {"numa": cpu % 2, "socket": cpu % 2, "core": cpu // 2}
        detail[str(cpu)] = {key: value for key, value in known.items() if value}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": node},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
            "resReserved": {"cpu": "2"},
            "numares": {"cpu": {"allocatable": f"0-{CPUS - 1}", "capacity": CPUS}},
            "cpuDetail": detail,
        },
    }


def noderesourcetopology(node: str, policy: str) -> Object:
    """As the topology exporters write it."""

    def zone(numa: int) -> Object:
        share = {
            "capacity": str(CPUS // 2),
            "allocatable": str(CPUS // 2 - 1),
            "available": str(CPUS // 2 - 1),
        }
        return {
            "name": f"node-{numa}",
            "type": "Node",
            "costs": [{"name": f"node-{other}", "value": 10 if other == numa else 21} for other in (0, 1)],
            "resources": [{"name": "cpu", **share}],
        }

    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policy},
            {"name": "topologyManagerScope", "value": "container"},
        ],
        "zones": [zone(0), zone(1)],
    }


def pods(nodes: int, number: int) -> Iterator[Object]:
    """Pods that run on the nodes in turn; and a pod that its node refused, one that does not start, one that fits nowhere."""
    for nth in range(number):
        application = APPLICATIONS[nth % len(APPLICATIONS)]
        yield things.pod(
            f"{application}-{nth}",
            node=f"node-{nth % nodes:03}",
            cpu=str(1 + nth % 4),
            memory="2Gi",
            guaranteed=nth % 3 != 2,
            labels={"app": application},
        )
    first = "node-000"
    yield things.pod(
        "refused", node=first, cpu="20", memory="4Gi", guaranteed=True, refused="TopologyAffinityError"
    )
    yield things.pod("stuck", node=first, cpu="2", memory="1Gi", stuck="CreateContainerError")
    yield things.pod("too-large", cpu=str(2 * CPUS), memory="1Gi")
