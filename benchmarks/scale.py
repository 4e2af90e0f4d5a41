"""An installation with 5,000 nodes: how old its data is, what collection takes, how long its pages take."""

import contextlib
import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
import psycopg

from benchmarks import installation, measure
from benchmarks.collector import pinned, serving
from benchmarks.installation import pid
from benchmarks.outcome import Outcome
from tests import servers

NODES, CONTAINERS = 5_000, 60
PERIOD = 1.0
PAGES_PERIOD = 10.0
"""While pages are timed, so that they are not timed beside a collector that cannot keep up."""
AGES_SECONDS = 30
KNOWN_SECONDS = 240
REPORTS = 24
"""Nodes whose report is awaited; the others get copies of theirs, or the bench would wait for minutes."""
REQUESTS = 5
"""Times that each page is asked for; the median counts."""
NODE = "node-00007"
IN_CLUSTER = (
    "",
    "monitoring/",
    "monitoring/?topology_policy=none&sort=-worst_cost",
    "containers/",
    "containers/?crossing=true",
    "containers/?sort=name",
    "containers/?sort=-locality",
    "containers/?sort=node",
    "containers/?kind=exclusive&sort=kind",
    "containers/?q=web",
    "containers/?q=nothing-is-called-so",
    "containers/?page=20000",
    "containers/?page=15000&sort=-locality",
    *("pods/", "failures/", "failures/starting/", "connection/", "planner/"),
)
OF_NODE = ("topology", "distances", "containers", "history", "kubelet", "events", "document")
PAGES = (
    *(f"/c/bench/{path}" for path in IN_CLUSTER),
    *(f"/c/bench/nodes/{NODE}/?tab={tab}" for tab in OF_NODE),
    *("/clusters/", "/search/?q=node-004", "/search/?q=web", "/search/?q=nothing-is-called-so", "/audit/"),
    *(
        "/api/v1/nodes/",
        "/api/v1/clusters/bench/containers/?crossing=true",
        f"/api/v1/clusters/bench/nodes/{NODE}/",
    ),
)


class Ages(msgspec.Struct):
    """What `benchmarks.inside ages` found, seconds and nodes."""

    median: float
    p95: float
    most: float
    nodes: int
    waited: float


@contextlib.contextmanager
def collected(place: installation.Installation, nodes: int = NODES) -> Iterator[servers.Server]:
    """A collecting process on core 0 whose nodes are all known, the simulated fleet beside it on core 1."""
    with serving(place.folder, nodes, CONTAINERS, core="1") as announced:
        installation.inside(place, "register", str(announced))
        command = [*pinned("0"), sys.executable, "-m", "benchmarks.inside", "collect"]
        server = servers.Server(
            command, place.folder, lambda self: "ready" in self.written(), environment=place.surroundings
        )
        with servers.running(server):
            yield server


def known(place: installation.Installation, query: str) -> int:
    """One number from the database, asked for without the weight of Django."""
    with psycopg.connect(place.database, autocommit=True) as connection:
        (count,) = connection.execute(query.encode()).fetchall()[0]
    return int(count)


def reported(place: installation.Installation) -> None:
    """Waits for some reports."""
    count = "SELECT count(*) FROM monitoring_node WHERE containers IS NOT NULL"
    measure.wait_until(lambda: known(place, count) >= REPORTS, KNOWN_SECONDS, f"{REPORTS} reports")


def at_scale(place: installation.Installation, collector: servers.Server) -> list[Outcome]:
    """Ages and CPU while all nodes are collected."""
    first = msgspec.json.decode(installation.inside(place, "ages", str(NODES), "1").stdout, type=Ages)
    print(f"   every node heard after {first.waited:.0f} s", flush=True)
    with measure.spent(pid(collector)) as used:
        started = time.monotonic()
        done = installation.inside(place, "ages", str(NODES), str(AGES_SECONDS))
        elapsed = time.monotonic() - started
    ages = msgspec.json.decode(done.stdout, type=Ages)
    cores = used.seconds / elapsed
    how = (
        f"{NODES:,} simulated endpoints (8 NUMA nodes, 384 CPUs, {CONTAINERS} containers each; use moves every second; that of every "
        f"CPU and container asked for of all nodes in turn, for no page is open, and use by NUMA node in between) at a "
        f"period of {PERIOD:.0f} s, collected by one shift (monitoring.services.collect) with PostgreSQL, Redis, reports, "
        f"history and live pages as in an installation, bound to one CPU; {AGES_SECONDS} s after every node was heard"
    )
    return [
        Outcome(
            f"collector: p95 age of {ages.nodes:,} nodes at {PERIOD:.0f} s",
            f"{ages.p95:.2f} s (median {ages.median:.2f}, most {ages.most:.2f})",
            "-",
            ages.p95,
            1.5,
            "s",
            how=f"{how}: age of every node's newest answer as pages find it in Redis, sampled four times a second.",
        ),
        Outcome(
            f"collector: CPU for {ages.nodes:,} nodes at {PERIOD:.0f} s",
            f"{cores:.2f} cores",
            "-",
            cores,
            1,
            "cores",
            how=f"{how}: CPU of that process over the time.",
        ),
    ]


def settings(period: float) -> dict[str, str]:
    return {
        "NUMAWEB_COLLECT_PERIOD": str(period),
        "NUMAWEB_COLLECT_SHIFT": "600",
        "NUMAWEB_COLLECT_CONCURRENCY": "256",
        "NUMAWEB_LIVE_TICK": "1",
    }


def pages(url: str, cookie: str) -> dict[str, float]:
    """Seconds until each page was here whole, the median of several times."""
    port = urlsplit(url).port or 0
    found = {}
    for page in PAGES:
        taken = [fetch(port, page, cookie) for _ in range(REQUESTS + 1)][1:]
        found[page] = measure.spread(taken).median
    return found


def fetch(port: int, page: str, cookie: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    started = time.perf_counter()
    connection.request("GET", page, headers={"Cookie": cookie, "Accept": "text/html,application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{page} answered {response.status}")
    return time.perf_counter() - started


def of_pages(place: installation.Installation) -> Outcome:
    with installation.web(place) as web:
        cookie = installation.signed_in(place, 1, "administrator")[0]
        found = pages(web.url, cookie)
    slowest = max(found, key=lambda page: found[page])
    containers = known(place, "SELECT count(*) FROM monitoring_container")
    every = ", ".join(f"{page} {seconds * 1000:.0f} ms" for page, seconds in found.items())
    return Outcome(
        f"page: the slowest of {len(found)} at {NODES:,} nodes",
        f"{found[slowest]:.2f} s ({slowest})",
        "-",
        found[slowest],
        1,
        "s",
        how=f"Time from the request to the last byte of the answer, median of {REQUESTS}, with {NODES:,} nodes that are "
        f"collected every {PAGES_PERIOD:.0f} s meanwhile and {containers:,} containers in PostgreSQL: {every}.",
    )


def rounds_alone(place: installation.Installation) -> Outcome:
    """Fetching and decoding without storage: ages of what one process on core 0 hears."""
    with serving(place.folder, NODES, CONTAINERS, core="1") as announced:
        command = [
            *pinned("0"),
            sys.executable,
            "-m",
            "benchmarks.polling",
            str(announced),
            str(AGES_SECONDS),
        ]
        done = subprocess.run(
            command, cwd=servers.ROOT, env=place.surroundings, capture_output=True, text=True, timeout=600
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=dict[str, float])
    return Outcome(
        f"collector: p95 age of {NODES:,} nodes at {PERIOD:.0f} s, rounds alone",
        f"{found['p95']:.2f} s (median {found['median']:.2f}, most {found['most']:.2f})",
        "-",
        found["p95"],
        1.5,
        "s",
        how=f"Age of the newest answer of {NODES:,} simulated endpoints (8 NUMA nodes, 384 CPUs, {CONTAINERS} containers each; use "
        f"moves every second; unchanged sections left out; use of every CPU and container asked for in "
        f"turn, {found['whole']:.0f} s old at most at the end, as of nodes whose page nobody has open, and use by NUMA node in between), asked by monitoring.services.collection.roster in one process bound to "
        f"one CPU, of which it took {found['cores']:.2f}; nothing stored. Sampled four times a second for {AGES_SECONDS} s after "
        f"every endpoint was heard, which took {found['waited']:.0f} s; {found['failing']:.0f} failed at the end.",
    )


def rounds() -> list[Outcome]:
    with installation.installed(**settings(PERIOD)) as place:
        return [rounds_alone(place)]


def ages() -> list[Outcome]:
    with installation.installed(**settings(PERIOD)) as place, collected(place) as collector:
        return at_scale(place, collector)


def slowest_page() -> list[Outcome]:
    with installation.installed(**settings(PAGES_PERIOD)) as place, collected(place):
        installation.inside(place, "ages", str(NODES), "1")
        reported(place)
        installation.inside(place, "complete")
        return [of_pages(place)]
