"""The metrics that the exporter shows, with what each one means."""

from __future__ import annotations

from numaagent.exporter.exposition import Family

CPU_USAGE = Family(
    "numa_node_cpu_usage",
    "gauge",
    "Mean busy share, 0 to 1, of a NUMA node's online CPUs over the last interval.",
)
MEMORY_USAGE = Family(
    "numa_node_memory_usage",
    "gauge",
    "Memory of a NUMA node in bytes; used = total - free, page cache included.",
)
ALLOCATION = Family(
    "numa_container_allocation",
    "gauge",
    "What a container has on a NUMA node. cpu: CPUs that it owns, or that its narrowed cpuset allows; memory: bytes "
    "of its pages; hugepages-SIZE: bytes that the kubelet assigned.",
)
CPU_SECONDS = Family(
    "numa_node_cpu_seconds", "counter", "Time that the online CPUs of a NUMA node spent in a mode.", "seconds"
)
MEMORY_BYTES = Family("numa_node_memory_bytes", "gauge", "Memory of a NUMA node by state.", "bytes")
DISTANCE = Family(
    "numa_node_distance", "gauge", "Relative distance between NUMA nodes as the firmware says; 10 = local."
)
CPUS = Family("numa_node_cpus", "gauge", "CPUs of a NUMA node by who owns them.")
CROSS = Family(
    "numa_container_cross_numa",
    "gauge",
    "1 = this part of a container lies across NUMA nodes, 0 = it does not.",
)
LOCALITY = Family(
    "numa_container_locality_ratio",
    "gauge",
    "Share of a container's memory accesses that are local, if its threads touch its pages evenly.",
    "ratio",
)
COST = Family(
    "numa_container_access_cost_ratio",
    "gauge",
    "Distance-weighted cost of a container's memory accesses; 1 = all local.",
    "ratio",
)
NUMASTAT = Family(
    "numa_node_numastat_pages", "counter", "Page allocations of a NUMA node as numastat counts them.", "pages"
)
POLICY = Family(
    "numa_topology_policy", "info", "The kubelet's Topology Manager policy and scope as asked for."
)
ERRORS = Family("numa_exporter_scrape_errors", "counter", "Reads that failed since the exporter started.")
LAST_READING = Family(
    "numa_exporter_last_interval_timestamp_seconds",
    "gauge",
    "End of the interval that ratios and containers' figures are of, seconds since 1970.",
    "seconds",
)
BUILD = Family("numa_exporter_build", "info", "The exporter itself.")
PROCESS_CPU = Family("process_cpu_seconds", "counter", "CPU time of the exporter.", "seconds")
PROCESS_MEMORY = Family("process_resident_memory_bytes", "gauge", "Resident memory of the exporter.", "bytes")
PROCESS_VIRTUAL = Family("process_virtual_memory_bytes", "gauge", "Virtual memory of the exporter.", "bytes")
PROCESS_FILES = Family("process_open_fds", "gauge", "Open file descriptors of the exporter.")
PROCESS_MOST_FILES = Family("process_max_fds", "gauge", "File descriptors that the exporter may have open.")
PROCESS_START = Family(
    "process_start_time_seconds", "gauge", "When the exporter started, seconds since 1970.", "seconds"
)
