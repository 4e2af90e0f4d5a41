"""How a notice leaves: a mail through the mail server of the settings, or a signed call of a webhook.

The webhook's address comes from the settings; its name is resolved once, every address it has is judged, and the call goes to the
judged one. No proxy, no redirect, no retry: `notices` decides when it is tried again.
"""

from __future__ import annotations

import hashlib
import hmac
import smtplib
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

import msgspec
import urllib3
from django.conf import settings
from django.core.mail import EmailMessage
from django.utils.translation import gettext as _

from monitoring.sources import address
from monitoring.sources.failures import SourceError
from numacore.diagnosis import Reason
from policies.models import RolloutNode
from policies.words import rollout as words

SECONDS = 10.0
"""So long a receiver may take."""
SIGNATURE, MOMENT, IDENTITY = "X-Numaweb-Signature", "X-Numaweb-Timestamp", "X-Numaweb-Notice"


class SendError(Exception):
    """It did not arrive, and why; the text holds no secret."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a notice says; the body of a webhook's call is its JSON."""

    version: int = 1
    id: str
    """The same again where a notice is sent twice: whoever has seen it may leave it aside."""
    event: str
    at: datetime
    cluster: str
    rollout: int
    level: str
    target: str | None
    """Name of the pool or node; null = the whole cluster."""
    state: str
    nodes: dict[str, int]
    """Nodes by what came of them."""
    left: int
    """Nodes of which nothing has come yet."""
    causes: list[Reason]
    """Why; then why the node failed that stopped it."""
    text: str | None
    """The causes in words."""
    url: str | None


def mail(message: Message) -> None:
    """Raises SendError."""
    subject = words.event(message.event, message.rollout, message.cluster)
    made = EmailMessage(f"[numaweb] {subject}", _body(message, subject), to=settings.NUMAWEB_NOTICE_MAIL)
    try:
        made.send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise SendError(f"{type(error).__name__}: {error}") from None


def _body(message: Message, subject: str) -> str:
    counted = [
        f"{RolloutNode.Outcome(name).label}: {count}" for name, count in message.nodes.items() if count
    ]
    if message.left:
        counted.append(_("waiting: %(number)s") % {"number": message.left})
    lines = [
        subject,
        _("For: %(target)s") % {"target": words.target(message.level, message.target or "")},
        message.text or "",
        _("Nodes: %(counts)s") % {"counts": ", ".join(counted) or "0"},
        message.url or "",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def webhook(message: Message) -> None:
    """Raises SendError."""
    body = msgspec.json.encode(message)
    try:
        pool, path, host = _pool(settings.NUMAWEB_NOTICE_WEBHOOK)
        with pool:
            answer = pool.urlopen(
                "POST",
                path,
                body=body,
                headers={"Host": host, "Content-Type": "application/json", **signed(message.id, body)},
                redirect=False,
                retries=False,
                preload_content=False,
            )
            answer.release_conn()
    except SourceError as error:
        raise SendError(str(error)) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise SendError(f"{type(error).__name__}: {_words(error)}") from None
    if not 200 <= answer.status < 300:
        raise SendError(f"HTTP {answer.status}")


def _words(error: Exception) -> str:
    """What went wrong, without the address, whose path may be a secret."""
    cause = error.args[-1] if error.args else ""
    path = urlsplit(settings.NUMAWEB_NOTICE_WEBHOOK).path
    return str(cause).replace(path, "…") if len(path) > 1 else str(cause)


def signed(identity: str, body: bytes, now: float | None = None) -> dict[str, str]:
    """Headers by which the receiver knows us: HMAC-SHA256 over "timestamp.body" with the secret that both have."""
    moment = str(int(time.time() if now is None else now))
    digest = hmac.new(settings.NUMAWEB_NOTICE_SECRET.encode(), moment.encode() + b"." + body, hashlib.sha256)
    return {IDENTITY: identity, MOMENT: moment, SIGNATURE: f"sha256={digest.hexdigest()}"}


def _pool(url: str) -> tuple[urllib3.HTTPSConnectionPool, str, str]:
    """Connections to the very address that was judged, the path to ask there, and the Host header."""
    parts = urlsplit(url)
    base = address.parse(parts._replace(query="", fragment="").geturl())
    _family, ip = address.pick(address.resolve(base), "webhook")
    context = ssl.create_default_context(cafile=settings.NUMAWEB_NOTICE_CA or None)
    pool = urllib3.HTTPSConnectionPool(
        ip,
        base.port,
        timeout=SECONDS,
        ssl_context=context,
        server_hostname=base.host,
        assert_hostname=base.host,
        retries=False,
    )
    path = parts.path or "/"
    return pool, f"{path}?{parts.query}" if parts.query else path, base.authority


SENDERS: dict[str, Callable[[Message], None]] = {"mail": mail, "webhook": webhook}
