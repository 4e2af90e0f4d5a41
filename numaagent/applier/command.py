"""`python -m numaagent.applier`: carries out one order, or tells what it would do."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from numaagent.applier import course, look, places, steps, trust, writing
from numaagent.applier.course import Course, Told
from numaagent.applier.places import Host
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Waits
from numacore.change import order as orders
from numacore.change import undo
from numacore.change.order import Answer, Order

NOT_DONE, NOT_USABLE, LOST = 1, 2, 3
"""Exit status: refused or taken back; arguments that cannot be used; the node needs somebody."""
STATUS = {"applied": 0, "unchanged": 0, "restored": NOT_DONE, "refused": NOT_DONE, "failed": LOST}
TERMINATION_LOG = "/dev/termination-log"


def main(arguments: list[str], environ: Mapping[str, str], waits: Waits | None = None) -> int:
    """Runs the applier; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        told = _told(options, environ, waits or Waits())
        data, known = _input(options.order, "--order"), trust.keys(_input(options.keys, "--keys"))
    except RefusedError as error:
        sys.stderr.write(f"numaagent applier: {error.words}\n")
        return NOT_USABLE
    if options.look:
        return asyncio.run(_look(told, data, known))
    answer = asyncio.run(_ended(told, data, known))
    tell(told.host, answer, options.termination_log)
    return STATUS[answer.outcome]


async def carry_out(told: Told, data: bytes, known: dict[str, Ed25519PublicKey]) -> Answer:
    """One order, from its bytes to its answer. Never raises for what may be wrong with a node or an order."""
    order: Order | None = None
    try:
        order, document = trust.opened(data, known)
        trust.check(order, told.host, told.node)
        with _locked(told.host):
            trust.check_epoch(order, document, trust.seen(told.host))
            return await steps.run(Course(told, data, order, document))
    except (RefusedError, FailedError, OSError) as error:
        return course.refused(told, order, error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        ended = RefusedError("ended", "somebody ended the applier before anything was changed")
        return course.refused(told, order, ended)


async def _ended(told: Told, data: bytes, known: dict[str, Ed25519PublicKey]) -> Answer:
    """Whoever ends this program (a deleted Job) makes it go back first, once; after that it finishes."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def end() -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_IGN)
        if task is not None:
            task.cancel()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end)
    return await carry_out(told, data, known)


async def _look(told: Told, data: bytes, known: dict[str, Ed25519PublicKey]) -> int:
    try:
        order, document = trust.opened(data, known)
        sys.stdout.write(await look.text(told, order, document))
    except (RefusedError, FailedError, OSError) as error:
        sys.stdout.write(f"refused: {error.words if not isinstance(error, OSError) else error}\n")
        return NOT_DONE
    return 0


def tell(host: Host, answer: Answer, termination_log: str) -> None:
    """Leaves the answer where the kubelet takes it from, on the node, and in the log."""
    data = orders.encode_answer(answer)
    with contextlib.suppress(OSError), open(termination_log, "wb") as file:
        file.write(data)
    with contextlib.suppress(OSError):
        writing.write(host.at(places.LAST_ANSWER), data)
    sys.stdout.write(data.decode() + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _locked(host: Host) -> Iterator[None]:
    """One applier at a time on a node; the lock goes with the process. Raises RefusedError, OSError."""
    writing.make_folder(host.at(undo.STATE))
    descriptor = os.open(host.at(places.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise RefusedError(
            "busy", f"{places.LOCK}: another applier is at work on this node; wait for its answer"
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


def _told(options: argparse.Namespace, environ: Mapping[str, str], waits: Waits) -> Told:
    root = os.path.realpath(options.host)
    if not os.path.isdir(root):
        raise RefusedError("arguments", f"--host: {root} is no folder; mount the host's folders below it")
    host = Host(root)
    token = _input(options.token, "--token").decode("ascii", "replace").strip() if options.token else None
    return Told(
        host=host,
        node=environ.get("NODE_NAME") or socket.gethostname(),
        bus=f"unix:path={host.at(places.BUS)}",
        token=token or None,
        waits=waits,
    )


def _input(path: str, name: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(orders.MAX_BYTES + 1)
    except OSError as error:
        raise RefusedError("arguments", f"{name}: {path} cannot be read: {error.strerror}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m numaagent.applier",
        description="Carries out one signed order on this node's kubelet, and takes it back if the kubelet is not well after it.",
        epilog="environment: NODE_NAME, the name of the node; default: the host name. Exit status: 0 applied or unchanged, "
        f"{NOT_DONE} refused or taken back, {NOT_USABLE} arguments, {LOST} the node needs somebody.",
    )
    parser.add_argument("--order", metavar="FILE", required=True, help="the signed order, as JSON")
    parser.add_argument("--keys", metavar="FILE", required=True, help="public keys that are believed, as PEM")
    parser.add_argument(
        "--host", metavar="DIR", default="/", help="the host's folders are below DIR; default /"
    )
    parser.add_argument(
        "--token",
        metavar="FILE",
        help="token for the kubelet's /configz; default: none, then its state files tell",
    )
    parser.add_argument("--look", action="store_true", help="say what would be done, and change nothing")
    parser.add_argument(
        "--termination-log",
        metavar="FILE",
        default=TERMINATION_LOG,
        help=f"where the answer goes; default {TERMINATION_LOG}",
    )
    return parser
