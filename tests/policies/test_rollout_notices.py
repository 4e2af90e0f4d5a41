"""Notices about rollouts: a mail at a real mail server, a signed call at a real https server, tried again while nobody is there."""

from __future__ import annotations

import hashlib
import hmac
import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.db import transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.models import Cluster
from numacore.diagnosis import Reason
from policies.models import Notice, Rollout
from policies.services import notices
from tests.policies import rollouts
from tests.policies.rollouts import Outcome, State

SECRET = "a secret that both sides have"
NOW = datetime(2026, 6, 1, 22, 30, tzinfo=UTC)


class Letters(socketserver.StreamRequestHandler):
    """A mail server that keeps what it is told: as much of RFC 5321 as a sender needs."""

    kept: list[str]

    def handle(self) -> None:
        self.say(220)
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                self.say(354)
                lines = iter(self.rfile.readline, b".\r\n")
                self.kept.append(b"".join(lines).decode())
            self.say(221 if verb == b"QUIT" else 250)
            if verb == b"QUIT":
                return

    def say(self, code: int) -> None:
        self.wfile.write(f"{code} ok\r\n".encode())


@pytest.fixture
def letters(settings: Settings) -> Iterator[list[str]]:
    kept: list[str] = []
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), type("Kept", (Letters,), {"kept": kept}))
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.server_address[1]
    settings.NUMAWEB_NOTICE_MAIL = ["ops@example.org"]
    yield from served(server, kept)


class Hook(BaseHTTPRequestHandler):
    """A receiver that keeps calls and answers with the status that a test sets."""

    kept: list[tuple[str, dict[str, str], bytes]]
    status: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.kept.append((self.path, dict(self.headers), body))
        self.send_response(self.status[0])
        self.send_header("Location", "https://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def served(server: socketserver.BaseServer, kept: list[str]) -> Iterator[list[str]]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield kept
    server.shutdown()
    server.server_close()
    thread.join()


def certificate(folder: Path) -> Path:
    """A key and its certificate for 127.0.0.1, in one file that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    now = timezone.now()
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "hook.pem"
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    return file


class Receiver:
    """What came to a webhook, and what it answers."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, dict[str, str], bytes]] = []
        self.status = [200]


@pytest.fixture
def hook(settings: Settings, tmp_path: Path) -> Iterator[Receiver]:
    receiver, file = Receiver(), certificate(tmp_path)
    kept = type("Kept", (Hook,), {"kept": receiver.kept, "status": receiver.status})
    server = HTTPServer(("127.0.0.1", 0), kept)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    settings.NUMAWEB_NOTICE_WEBHOOK = f"https://127.0.0.1:{server.server_port}/hooks/s3cr3t?room=numa"
    settings.NUMAWEB_NOTICE_SECRET, settings.NUMAWEB_NOTICE_CA = SECRET, str(file)
    settings.NUMAWEB_PUBLIC_URL = "https://numa.example.org"
    for _ in served(server, []):
        yield receiver


@pytest.fixture
def stopped(west: Cluster) -> Rollout:
    cause = Reason("kubelet-dies", {"times": 3, "status": 255})
    why = {"code": "node-failed", "values": {"node": "node-1", "why": cause.code}}
    made = rollouts.rollout(west, State.STOPPED, cause=why)
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    rollouts.settle(made, "node-1", Outcome.FAILED, cause)
    return made


def told(rollout: Rollout, event: str = "stopped") -> list[Notice]:
    notices.tell(rollout, event, NOW)
    return list(Notice.objects.order_by("pk"))


def test_without_receivers_nothing_is_written(stopped: Rollout) -> None:
    assert told(stopped) == []


def test_a_mail_says_what_happened_and_why(stopped: Rollout, letters: list[str], settings: Settings) -> None:
    settings.NUMAWEB_PUBLIC_URL = "https://numa.example.org"
    told(stopped)
    notices.send_due(NOW)
    (letter,) = letters
    assert f"Subject: [numaweb] Rollout {stopped.pk} in cluster west stopped by itself." in letter
    assert "To: ops@example.org" in letter
    assert (
        "Node node-1 stopped it. The kubelet ended 3 times after its start, the last time with status 255."
        in letter
    )
    assert "changed: 1, failed, as before: 1, waiting: 2" in letter
    assert f"https://numa.example.org/c/west/rollouts/{stopped.pk}/" in letter
    (notice,) = Notice.objects.all()
    assert (notice.state, notice.sent, notice.error) == ("sent", NOW, "")


def test_a_mail_is_in_the_language_of_the_settings(
    stopped: Rollout, letters: list[str], settings: Settings
) -> None:
    settings.LANGUAGE_CODE = "zh-hans"
    told(stopped)
    notices.send_due(NOW)
    assert "base64" in letters[0].lower() or "utf-8" in letters[0].lower()
    assert "stopped by itself" not in letters[0]


def test_a_call_of_a_webhook_is_signed_and_has_the_facts(stopped: Rollout, hook: Receiver) -> None:
    told(stopped)
    notices.send_due(NOW)
    ((path, headers, body),) = hook.kept
    assert path == "/hooks/s3cr3t?room=numa"
    found = json.loads(body)
    assert (found["version"], found["event"], found["rollout"]) == (1, "stopped", stopped.pk)
    assert [each["code"] for each in found["causes"]] == ["node-failed", "kubelet-dies"]
    assert found["causes"][1]["values"] == {"times": 3, "status": 255}
    assert (found["nodes"]["changed"], found["nodes"]["failed"], found["left"]) == (1, 1, 2)
    assert found["url"] == f"https://numa.example.org/c/west/rollouts/{stopped.pk}/"
    signed = headers["X-Numaweb-Timestamp"].encode() + b"." + body
    wanted = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Numaweb-Signature"] == f"sha256={wanted}"
    assert headers["X-Numaweb-Notice"] == found["id"]


@pytest.mark.parametrize("status", [500, 302])
def test_what_is_not_taken_is_tried_again_later_and_no_redirect_followed(
    stopped: Rollout, hook: Receiver, status: int
) -> None:
    told(stopped)
    hook.status[0] = status
    notices.send_due(NOW)
    (notice,) = Notice.objects.all()
    assert (notice.state, notice.tries, notice.error) == ("waiting", 1, f"HTTP {status}")
    notices.send_due(NOW + timedelta(seconds=14))
    assert len(hook.kept) == 1, "its pause is not over"
    hook.status[0] = 204
    notices.send_due(NOW + timedelta(seconds=15))
    assert Notice.objects.get().state == "sent"
    assert hook.kept[0][1]["X-Numaweb-Notice"] == hook.kept[1][1]["X-Numaweb-Notice"]


def test_it_gives_up_after_some_hours_and_says_why(stopped: Rollout, hook: Receiver) -> None:
    told(stopped)
    hook.status[0] = 503
    for hour in range(notices.MOST_TRIES + 3):
        notices.send_due(NOW + timedelta(hours=hour))
    (notice,) = Notice.objects.all()
    assert (notice.state, notice.tries, notice.error) == ("failed", notices.MOST_TRIES, "HTTP 503")
    assert len(hook.kept) == notices.MOST_TRIES


def test_a_certificate_of_somebody_else_is_not_believed(
    stopped: Rollout, hook: Receiver, settings: Settings
) -> None:
    settings.NUMAWEB_NOTICE_CA = ""
    told(stopped)
    notices.send_due(NOW)
    error = Notice.objects.get().error
    assert "certificate" in error.lower()
    assert "s3cr3t" not in error
    assert hook.kept == []


def test_a_metadata_service_is_never_called(stopped: Rollout, hook: Receiver, settings: Settings) -> None:
    settings.NUMAWEB_NOTICE_WEBHOOK = "https://169.254.169.254/latest"
    told(stopped)
    notices.send_due(NOW)
    assert "metadata" in Notice.objects.get().error


def test_a_server_that_is_away_is_said_without_the_secret_path(
    stopped: Rollout, hook: Receiver, settings: Settings
) -> None:
    settings.NUMAWEB_NOTICE_WEBHOOK = "https://127.0.0.1:1/hooks/s3cr3t"
    told(stopped)
    notices.send_due(NOW)
    error = Notice.objects.get().error
    assert "refused" in error
    assert "s3cr3t" not in error


def test_each_event_is_told_once_and_again_when_it_happens_again(stopped: Rollout, hook: Receiver) -> None:
    told(stopped)
    notices.send_due(NOW)
    notices.send_due(NOW + timedelta(hours=1))
    assert len(hook.kept) == 1
    notices.tell(stopped, "stopped", NOW + timedelta(hours=2))
    notices.tell(stopped, "returned", NOW + timedelta(hours=2))
    notices.send_due(NOW + timedelta(hours=2))
    assert [json.loads(body)["event"] for _path, _headers, body in hook.kept] == [
        "stopped",
        "stopped",
        "returned",
    ]
    identities = {headers["X-Numaweb-Notice"] for _path, headers, _body in hook.kept}
    assert len(identities) == 3


def write_and_fail(rollout: Rollout) -> None:
    with transaction.atomic():
        notices.tell(rollout, "stopped", NOW)
        raise RuntimeError("the state was not written after all")


def test_a_notice_goes_with_the_transaction_that_it_was_written_in(stopped: Rollout, hook: Receiver) -> None:
    with pytest.raises(RuntimeError):
        write_and_fail(stopped)
    assert not Notice.objects.exists()
