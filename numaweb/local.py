"""Local mode: everything in one process group, for `manage.py local` (`make run`).

Web, worker and beat are this process: a real Celery worker and a real beat in threads, over Celery's in-memory broker
and never eager. Beside it run an exporter for this very machine and a simulated cluster, both seen only over HTTP.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from celery.beat import EmbeddedService
from celery.worker import state
from django.conf import settings
from django.core.management import call_command

from monitoring import services
from monitoring.services import EndpointSpec, watching
from monitoring.tasks import start_shifts
from numaweb import bootstrapping, celery, children, server

log = logging.getLogger(__name__)

# Beside the shifts of collection, each of which keeps a thread busy.
SPARE_THREADS = 3
ANNOUNCE_SECONDS = 60.0
WORKER_END_SECONDS = 10.0
WATCHER_END_SECONDS = 5.0
HERE, SIMULATED, KUBERNETES = "this-machine", "simulated", "kubernetes"


class StartError(Exception):
    """Something that local mode needs did not start; the text names it and the remedy."""


Say = Callable[[str], None]


def run(say: Say) -> None:
    """Start everything, serve until Ctrl-C or SIGTERM, end everything in reverse order."""
    os.umask(0o077)  # the database holds sessions, wherever its folder is
    server.ensure_free(settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT)
    signal.signal(signal.SIGTERM, interrupt)
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
        stack.callback(say, "Everything has ended.")
        made = prepare(say)
        register(stack, say)
        say("Background work: a worker and a schedule in this process")
        stack.enter_context(worker())
        stack.enter_context(beat())
        stack.enter_context(watcher())
        Server(lambda: greet(say, made)).run()
        say("Ending")


def interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def prepare(say: Say) -> bootstrapping.Made | None:
    say(f"Database: {settings.DATABASES['default']['NAME']}")
    call_command("migrate", verbosity=0, interactive=False)
    return bootstrapping.bootstrap()


def register(stack: contextlib.ExitStack, say: Say) -> None:
    folder = settings.STATE_DIR / "local"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    say(f"Exporter: this machine (log: {folder / 'exporter.log'})")
    services.ensure_cluster(HERE, socket.gethostname(), "plain", [exporter(stack, folder)])
    if settings.NUMAWEB_SIMULATED_NODES:
        say(
            f"Simulated cluster: {settings.NUMAWEB_SIMULATED_NODES} servers (log: {folder / 'simulator.log'})"
        )
        services.ensure_cluster(SIMULATED, "Simulated", "simulated", simulation(stack, folder))
    if settings.NUMAWEB_KUBECONFIG:
        say(f"Kubernetes: the cluster of {settings.NUMAWEB_KUBECONFIG}")
        services.ensure_connection(KUBERNETES, "Kubernetes")


def start(stack: contextlib.ExitStack, child: children.Child) -> None:
    child.start()
    stack.callback(child.stop)


def exporter(stack: contextlib.ExitStack, folder: Path) -> EndpointSpec:
    port = children.free_port()
    command = [sys.executable, "-m", "numaagent", "exporter", "--listen", f"127.0.0.1:{port}"]
    start(stack, children.Child("exporter", command, folder / "exporter.log"))
    return EndpointSpec(f"http://127.0.0.1:{port}", socket.gethostname())


def simulation(stack: contextlib.ExitStack, folder: Path) -> list[EndpointSpec]:
    # Its trees are in a folder of its own choice, which it removes, as it does those of a simulator that was killed.
    announced = folder / "announced.json"
    announced.unlink(missing_ok=True)
    command = [sys.executable, "-m", "numasim", "run", "--announce", str(announced)]
    command += ["--nodes", str(settings.NUMAWEB_SIMULATED_NODES), "--seed", "1"]
    child = children.Child("simulator", command, folder / "simulator.log")
    start(stack, child)
    return wait_for_announcement(announced, child.log_file)


def wait_for_announcement(file: Path, log_file: Path) -> list[EndpointSpec]:
    deadline = time.monotonic() + ANNOUNCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            return msgspec.json.decode(file.read_bytes(), type=Announcement).exporters
        time.sleep(0.1)
    raise StartError(f"The simulated cluster did not start within {ANNOUNCE_SECONDS:.0f} s; see {log_file}.")


class Announcement(msgspec.Struct, frozen=True):
    """What the simulator writes as soon as its exporters answer."""

    exporters: list[EndpointSpec]


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """A real Celery worker in a thread, for all queues; at the end it finishes what it has begun."""
    controller = celery.app.WorkController(
        pool="threads",
        concurrency=settings.NUMAWEB_COLLECT_SHARDS + SPARE_THREADS,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
    )
    thread = threading.Thread(target=controller.start, name="worker", daemon=True)
    thread.start()
    start_shifts.apply_async(queue="default")  # beat's first comes only after a while
    try:
        yield
    finally:
        stopping: Any = state
        stopping.should_stop = 0  # Celery's own word for "end when done", as its signal handlers set it
        thread.join(WORKER_END_SECONDS)
        if thread.is_alive():
            log.warning("the worker did not end within %s s", WORKER_END_SECONDS)


@contextlib.contextmanager
def beat() -> Iterator[None]:
    service: Any = EmbeddedService(celery.app, thread=True, scheduler_cls=celery.app.conf.beat_scheduler)
    service.start()
    try:
        yield
    finally:
        service.stop()


@contextlib.contextmanager
def watcher() -> Iterator[None]:
    """A thread that watches the API servers of connected clusters; without any it only looks for new connections."""
    stop = threading.Event()
    thread = threading.Thread(target=watching.work, args=[stop], name="watcher", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WATCHER_END_SECONDS)


class Server(uvicorn.Server):
    """Says where the pages are as soon as they answer, and not before."""

    def __init__(self, ready: Callable[[], None]) -> None:
        super().__init__(server.configuration())
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()


def greet(say: Say, made: bootstrapping.Made | None) -> None:
    everywhere = settings.NUMAWEB_LISTEN in ("0.0.0.0", "::")  # noqa: S104
    host = "localhost" if everywhere else settings.NUMAWEB_LISTEN
    also = ", and at every address of this machine" if everywhere else ""
    say(f"Ready: http://{host}:{settings.NUMAWEB_PORT}{also}; Ctrl-C ends it")
    if made and made.password:
        say(f"Sign in as {made.username} with the password {made.password} (shown only now)")
    elif made:
        say(f"Sign in as {made.username} with the password that you gave")
