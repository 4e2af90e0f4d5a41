"""The whole machine: its topology, and what it has beside it."""

from __future__ import annotations

from numaagent.config import Roots
from numaagent.readers import devices, memory, performance
from numaagent.readers.files import Files
from numaagent.readers.identity import Identity
from numacore.topology import Attributes, HugePages, Topology


def attributes(
    files: Files, roots: Roots, topology: Topology, identity: Identity, places: tuple[memory.Place, ...]
) -> Attributes:
    """What the machine has beside its topology."""
    source = files.reader("memory-size")

    def fetch(path: str) -> bytes | None:
        return source.data(path, required=path.endswith("meminfo"))

    now = {place.node: memory.use(fetch, place) for place in places}
    measured, tiers = performance.read(files, roots, topology)
    pools = {
        node: tuple(HugePages(pool.page_size, pool.total) for pool in use.hugepages)
        for node, use in now.items()
    }
    return Attributes(
        memory={node: use.total for node, use in now.items()},
        hugepages={node: found for node, found in pools.items() if found},
        devices=devices.read(files, roots, topology),
        performance=measured,
        memory_tiers=tiers,
        hostname=identity.hostname,
        arch=identity.arch,
        kernel=identity.kernel,
        os=identity.os,
        model=identity.model,
    )
