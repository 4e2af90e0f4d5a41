"""Collection: what an answer costs against Prometheus that scrapes the same endpoints."""

import contextlib
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks import exporter, measure
from benchmarks.exporter import process
from benchmarks.outcome import Outcome
from tests import servers, stack

OURS, TARGETS = 1_000, 100
"""Endpoints that we ask, and those of them that Prometheus scrapes: it needs some 15 MB for each."""
SCRAPE, ROUND = 5, 1
"""Seconds between two scrapes of Prometheus, and between two rounds of ours."""
WARM_UP, WINDOW = 20.0, 10.0

PROMETHEUS = """
global: {{ scrape_interval: {seconds}s, scrape_timeout: {seconds}s }}
scrape_configs:
  - job_name: fleet
    static_configs: [ targets: {targets} ]
"""


@contextlib.contextmanager
def serving(folder: Path, nodes: int, containers: int, text: bytes = b"", core: str = "") -> Iterator[Path]:
    """The fleet; the file with its addresses."""
    announced, page = folder / "fleet.json", folder / "page.txt"
    page.write_bytes(text)
    command = [
        sys.executable,
        "-m",
        "benchmarks.fleet",
        str(nodes),
        str(containers),
        str(announced),
        str(page),
    ]
    with servers.running(servers.Server([*pinned(core), *command], folder, lambda _: announced.exists())):
        yield announced


def pinned(core: str) -> list[str]:
    return ["taskset", "--cpu-list", core] if core else []


def addresses(announced: Path) -> list[str]:
    return [each["url"] for each in json.loads(announced.read_text())["exporters"]]


def counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/counts", timeout=10) as response:
        return msgspec.json.decode(response.read(), type=dict[str, int])


def page_of_text() -> bytes:
    """`/metrics` of a real exporter on a server of the fleet's model, after its first interval."""
    with exporter.tree() as root:
        port = servers.free_port()
        with servers.running(exporter.ours(root.parent, root, port)):
            client = exporter.Client(port)
            measure.wait_until(lambda: b"numa_container_allocation{" in client.get("/metrics"), 30, "a page")
            return client.get("/metrics")


def against_prometheus() -> Outcome:
    """CPU per node and round of both while both ask the same endpoints."""
    text = page_of_text()
    samples = sum(1 for line in text.splitlines() if line and not line.startswith(b"#"))
    with tempfile.TemporaryDirectory(prefix="numaweb-bench-") as name, contextlib.ExitStack() as stay:
        folder = Path(name)
        announced = stay.enter_context(serving(folder, OURS, exporter.CONTAINERS, text))
        urls = addresses(announced)
        targets = json.dumps([url.removeprefix("http://") for url in urls[:TARGETS]])
        configuration = PROMETHEUS.format(seconds=SCRAPE, targets=targets)
        prometheus = stay.enter_context(stack.prometheus(folder, configuration)).server
        command = [sys.executable, "-m", "benchmarks.asking", str(announced), str(ROUND)]
        asking = servers.Server(command, folder, lambda self: "ready" in self.written())
        stay.enter_context(servers.running(asking))
        time.sleep(WARM_UP)
        measure.wait_until(lambda: counts(urls[0]).get("/v1/snapshot", 0) > 5 * OURS, 300, "the first rounds")
        pairs = [per_answer(process(asking), process(prometheus), urls[0]) for _ in range(measure.ROUNDS)]
    ours = measure.spread([us for us, _ in pairs])
    return Outcome(
        "collector: CPU per node and round",
        ours.shown("ms", 1e3, 3),
        measure.spread([them for _, them in pairs]).shown("ms", 1e3),
        measure.spread([us / them for us, them in pairs]).median,
        0.05,
        how=f"CPU of a process that asks {OURS:,} endpoints every {ROUND} s with monitoring.sources and decodes what they "
        f"tell (8 NUMA nodes, 384 CPUs, {exporter.CONTAINERS} containers; unchanged sections left out, use moves every "
        f"second; nothing stored), per answer. Peer: Prometheus that scrapes {TARGETS} of these endpoints every {SCRAPE} s for the "
        f"same machine as text ({samples} samples, {len(text):,} bytes, gzip; values stand still, which flatters it), its "
        f"storage included. Both at once, windows of {WINDOW:.0f} s after {WARM_UP:.0f} s.",
    )


def per_answer(us: int, them: int, url: str) -> tuple[float, float]:
    """CPU seconds per answer of both, over one window."""
    before = counts(url)
    with measure.spent(us) as ours, measure.spent(them) as theirs:
        time.sleep(WINDOW)
    now = counts(url)
    asked = {path: now[path] - before.get(path, 0) for path in ("/v1/snapshot", "/metrics")}
    return ours.seconds / asked["/v1/snapshot"], theirs.seconds / asked["/metrics"]


def run() -> list[Outcome]:
    return [against_prometheus()]
