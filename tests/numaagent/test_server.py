"""The exporter as a process: what it answers, whom it refuses, how it starts and ends."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from numaagent.exporter.http import MAX_CONNECTIONS
from numaagent.readers import podresources_pb2 as api
from numacore import wire
from numacore.usage import Usage
from tests.numaagent import trees
from tests.numaagent.kubelet import Socket
from tests.numaagent.test_containers import NAMES, STATE, SYSTEMD_V2
from tests.servers import ROOT

TOKEN = "0123456789abcdef-token"
STAT = "proc/stat <<\n\tcpu  8 0 0 8 0 0 0 0 0 0\n" + "".join(
    f"\tcpu{i} 1 0 0 1 0 0 0 0 0 0\n" for i in range(8)
)


class Server:
    """A running exporter."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def get(
        self, path: str, method: str = "GET", *, tls: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = (
            http.client.HTTPSConnection("localhost", self.port, timeout=10, context=tls)
            if tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        )
        connection.request(
            method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    def snapshot(self, **headers: str) -> wire.Snapshot:
        return wire.decode(self.get("/v1/snapshot", tls=None, **headers)[1])

    def wait(self, tls: ssl.SSLContext | None = None) -> None:
        """Until it has taken its first reading."""
        for _ in range(200):
            if self.get("/healthz", tls=tls)[0].status == 200:
                return
            time.sleep(0.05)
        raise AssertionError("the exporter did not become ready")


@contextmanager
def serving(root: Path, tls: ssl.SSLContext | None = None, **environ: str) -> Iterator[Server]:
    """Runs an exporter on a tree until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "numaagent", "exporter", "--root", str(root), "--listen", "127.0.0.1:0"],
        cwd=ROOT,
        env={**os.environ, "NODE_NAME": "node-1", **environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        assert match, line + process.stderr.read()
        server = Server(process, int(match[1]))
        server.wait(tls)
        yield server
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = trees.build(SYSTEMD_V2 + NAMES + STATE + STAT, tmp_path_factory.mktemp("node"))
    with serving(root) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(TOKEN + "\n")
    with serving(
        trees.build(SYSTEMD_V2, folder / "root"), NUMAAGENT_TOKEN_FILE=str(folder / "token")
    ) as found:
        yield found


def test_it_tells_everything_to_who_has_nothing(server: Server) -> None:
    response, body = server.get("/v1/snapshot")
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    snapshot = wire.decode(body)
    assert snapshot.exporter.node == "node-1"
    assert all(section.data for section in snapshot.sections.values())


def test_it_leaves_out_sections_that_the_caller_has(server: Server) -> None:
    known = {name: section.hash for name, section in server.snapshot().sections.items()}
    _, body = server.get(f"/v1/snapshot?have={wire.format_have({**known, 'usage': 'old'})}")
    again = wire.decode(body)
    assert {name for name, section in again.sections.items() if section.data} == {"usage"}
    assert {name: section.hash for name, section in again.sections.items() if name != "usage"} == {
        name: found for name, found in known.items() if name != "usage"
    }


def test_it_tells_use_by_numa_node_only_to_who_asks_so_and_has_all_else(server: Server) -> None:
    whole = server.snapshot()
    known = {name: section.hash for name, section in whole.sections.items() if name != wire.USAGE}
    sums = wire.decode(server.get(f"/v1/snapshot?{wire.format_question(known, True)}")[1])
    assert set(sums.sections) == {wire.MACHINE, wire.KUBELET, wire.CONTAINERS, wire.NUMA}
    assert {name for name, section in sums.sections.items() if section.data} == {wire.NUMA}
    del known[wire.CONTAINERS]
    again = wire.decode(server.get(f"/v1/snapshot?{wire.format_question(known, True)}")[1])
    assert {name for name, section in again.sections.items() if section.data} == {
        wire.CONTAINERS,
        wire.USAGE,
    }


def test_it_takes_any_rubbish_in_have(server: Server) -> None:
    assert server.get("/v1/snapshot?have=" + "x" * 5000 + ",,:,machine:")[0].status == 200


def test_it_says_that_it_is_well(server: Server) -> None:
    response, body = server.get("/healthz")
    health = json.loads(body)
    assert (response.status, health["status"]) == (200, "ok")
    assert 0 <= health["age_seconds"] < 20


def test_it_answers_head_without_a_body(server: Server) -> None:
    response, body = server.get("/metrics", "HEAD")
    assert (response.status, body) == (200, b"")
    assert int(response.headers["Content-Length"]) > 1000


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_only_answers_reads(server: Server, method: str) -> None:
    response, body = server.get("/metrics", method)
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert body == b"The exporter only answers GET and HEAD.\n"


def test_it_says_what_pages_there_are(server: Server) -> None:
    response, body = server.get("/v2/snapshot")
    assert response.status == 404
    assert b"Known: /metrics /v1/snapshot /healthz" in body
    assert b"/v1/snapshot" in server.get("/")[1]


def test_it_compresses_only_what_is_asked_for_and_worth_it(server: Server) -> None:
    assert "Content-Encoding" not in server.get("/healthz", Accept_Encoding="gzip")[0].headers
    assert "Content-Encoding" not in server.get("/v1/snapshot")[0].headers


def test_it_compresses_large_answers(tmp_path: Path) -> None:
    with serving(trees.machine("256ia64-64n2s2c", tmp_path)) as large:
        response, body = large.get("/v1/snapshot", Accept_Encoding="gzip")
        assert response.headers["Content-Encoding"] == "gzip"
        assert wire.decode(gzip.decompress(body)).exporter.node == "node-1"


def test_it_asks_for_the_token(guarded: Server) -> None:
    response, body = guarded.get("/v1/snapshot")
    assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Bearer realm="numaweb"')
    assert b"Authorization: Bearer TOKEN" in body
    for wrong in ("Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer", f"Bearer {TOKEN}x", "Bearer \xff"):
        assert guarded.get("/v1/snapshot", Authorization=wrong)[0].status == 401, wrong
    assert guarded.snapshot(Authorization=f"Bearer {TOKEN}").version == wire.VERSION
    assert guarded.snapshot(Authorization=f"bearer  {TOKEN} ").version == wire.VERSION


def test_it_shows_metrics_and_health_without_a_token(guarded: Server) -> None:
    assert guarded.get("/metrics")[0].status == 200
    assert guarded.get("/healthz")[0].status == 200


def ask(server: Server, text: bytes, patience: float = 5.0) -> bytes:
    """Sends bytes as they are; everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=patience) as connection:
        connection.sendall(text)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /healthz\r\n\r\n", b"400"),
        (b"\x00\xff\x80\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/3\r\n\r\n", b"505"),
        (b"GET /healthz HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"413"),
        (b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"413"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET /healthz HTTP/1.1\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /healthz?" + b"&".join([b"a=1"] * 50) + b" HTTP/1.1\r\n\r\n", b"400"),
    ],
)
def test_it_refuses_requests_that_are_none_and_closes(server: Server, request_: bytes, status: bytes) -> None:
    answer = ask(server, request_)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in answer
    assert server.get("/healthz")[0].status == 200


def test_it_answers_several_requests_on_one_connection(server: Server) -> None:
    answer = ask(
        server, b"GET /healthz HTTP/1.1\r\n\r\n" * 3 + b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 4


def test_it_serves_others_while_one_says_nothing(server: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for each in silent[:10]:
        each.sendall(b"GET /met")
    assert server.get("/healthz")[0].status == 200
    for each in silent:
        each.close()


def test_silent_connections_make_room_for_others_and_the_longest_idle_ones_first(server: Server) -> None:
    with contextlib.ExitStack() as stay:

        def connected() -> socket.socket:
            return stay.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))

        def asked(connection: socket.socket) -> bytes:
            connection.sendall(b"HEAD /healthz HTTP/1.1\r\n\r\n")
            return connection.recv(4096)

        kept = connected()
        for number in range(MAX_CONNECTIONS + 72):
            silent = connected()
            if number % 3 == 0:
                silent.sendall(b"GET /met")
            if number == 100:
                assert server.get("/healthz")[0].status == 200  # all before it are there
                assert asked(kept).startswith(b"HTTP/1.1 200")  # this one works, and idles for less long
        assert server.get("/healthz")[0].status == 200
        assert asked(connected()).startswith(b"HTTP/1.1 200")
        assert asked(kept).startswith(b"HTTP/1.1 200")


def test_it_ends_cleanly_when_told_to(tmp_path: Path) -> None:
    with serving(trees.build(SYSTEMD_V2, tmp_path)) as found:
        idle = socket.create_connection(("127.0.0.1", found.port))
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(5) == 0
        idle.close()


def test_it_says_that_its_port_is_taken(server: Server, tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2, tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "numaagent",
            "exporter",
            "--root",
            str(root),
            "--listen",
            f"127.0.0.1:{server.port}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{server.port}: " in done.stderr
    assert "choose another with --listen or NUMAAGENT_LISTEN" in done.stderr


def test_it_shows_what_it_could_not_read(tmp_path: Path) -> None:
    description = SYSTEMD_V2 + "var/lib/kubelet/cpu_manager_state = {\nvar/lib/kubelet/config.yaml = [\n"
    with serving(trees.build(description, tmp_path)) as found:
        problems = {(p.reader, p.what) for p in found.snapshot().problems}
        assert problems >= {
            ("cpu-state", "/var/lib/kubelet/cpu_manager_state"),
            ("kubelet-config", "/var/lib/kubelet/config.yaml"),
            ("cpu-times", "/proc/stat"),
        }
        metrics = found.get("/metrics")[1].decode()
        assert re.search(
            r'numa_exporter_scrape_errors_total\{node="node-1",reader="cpu-state"\} [1-9]', metrics
        )


def test_it_answers_at_once_while_the_kubelets_socket_hangs() -> None:
    root = Path(tempfile.mkdtemp(prefix="na"))
    trees.build(SYSTEMD_V2 + NAMES + STATE, root)
    path = root / "var/lib/kubelet/pod-resources/kubelet.sock"
    kubelet = Socket(path, api.ListPodResourcesResponse(), api.AllocatableResourcesResponse())
    kubelet.hang = True
    kubelet.start()
    try:
        with serving(root) as found:
            before = time.monotonic()
            snapshots = [found.snapshot() for _ in range(5)]
            assert time.monotonic() - before < 2.0
            causes = {problem.cause for problem in snapshots[-1].problems if problem.reader == "podresources"}
            assert causes == {"the kubelet did not answer within 2 s; see whether it is busy or stuck"}
            assert kubelet.calls > 0
    finally:
        kubelet.stop()
        shutil.rmtree(root)


def test_it_needs_no_capability(tmp_path: Path) -> None:
    """Root owns the kubelet's files; that is all that root is needed for."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root with setpriv can give up what it may do")
    root = trees.build(SYSTEMD_V2 + NAMES + STATE, tmp_path)
    (root / "var/lib/kubelet").chmod(0o700)
    (root / "var/lib/kubelet/cpu_manager_state").chmod(0o600)
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    done = subprocess.run(
        [*bare, sys.executable, "-m", "numaagent", "exporter", "--root", str(root), "--once"],
        cwd=ROOT,
        capture_output=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not [problem for problem in wire.decode(done.stdout).problems if "right" in problem.cause]
    assert b'"defaultCpuSet"' not in done.stdout
    assert b'"policy":"static"' in done.stdout


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a certificate of the server and one of a client."""
    if shutil.which("openssl") is None:
        pytest.skip("not here: openssl")
    folder = tmp_path_factory.mktemp("papers")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(
        "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority", "-days", "2"
    )
    for name in ("server", "client"):
        (folder / "names").write_text("subjectAltName=DNS:localhost\n")
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.crt", "-days", "2", "-extfile", "names")  # fmt: skip
    return folder


def test_it_speaks_tls_and_knows_its_clients(papers: Path, tmp_path: Path) -> None:
    known = ssl.create_default_context(cafile=str(papers / "ca.crt"))
    stranger = ssl.create_default_context(cafile=str(papers / "ca.crt"))
    known.load_cert_chain(papers / "client.crt", papers / "client.key")
    environ = {
        "NUMAAGENT_TLS_CERT_FILE": str(papers / "server.crt"),
        "NUMAAGENT_TLS_KEY_FILE": str(papers / "server.key"),
        "NUMAAGENT_TLS_CLIENT_CA_FILE": str(papers / "ca.crt"),
    }
    with serving(trees.build(SYSTEMD_V2, tmp_path), known, **environ) as found:
        assert found.get("/v1/snapshot", tls=known)[0].status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            found.get("/v1/snapshot", tls=stranger)
        with pytest.raises((http.client.HTTPException, OSError)):
            found.get("/v1/snapshot")
        assert found.get("/healthz", tls=known)[0].status == 200


def test_it_says_that_its_certificate_cannot_be_used(tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2, tmp_path / "root")
    (tmp_path / "bad").write_text("no certificate\n")
    done = subprocess.run(
        [sys.executable, "-m", "numaagent", "exporter", "--root", str(root), "--listen", "127.0.0.1:0"],
        cwd=ROOT,
        env={
            **os.environ,
            "NUMAAGENT_TLS_CERT_FILE": str(tmp_path / "bad"),
            "NUMAAGENT_TLS_KEY_FILE": str(tmp_path / "bad"),
        },
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 2
    assert "the certificate, key or client authority cannot be used" in done.stderr


def test_it_stays_small(server: Server) -> None:
    """64 MiB is what the exporter may use on a large node; on this small one it has to leave room."""
    for _ in range(20):
        server.snapshot()
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident
    assert int(resident[1]) < 56 * 1024


def test_it_sends_numbers_that_its_reader_takes(server: Server) -> None:
    snapshot = server.snapshot()
    usage = snapshot.sections[wire.USAGE].data
    assert usage is not None
    found = wire.decode_section(Usage, usage)
    assert found.cpu is not None
    assert found.cpu.busy == (1,) * 8
    assert msgspec.json.decode(usage)["containers_of"] == snapshot.sections[wire.CONTAINERS].hash
