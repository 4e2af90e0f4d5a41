"""Addresses that administrators enter: what may be asked at all, and the one IP address that is then used.

A name is resolved once, every address it has is judged, and the connection goes to the judged address itself, so that
a name server cannot answer the judge one thing and the connection another.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from monitoring.sources import failures
from monitoring.sources.failures import SourceError

Use = Literal["exporter", "prometheus", "apiserver", "webhook"]
IP = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset(
    ipaddress.ip_address(each)
    for each in (
        *("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
"""Where clouds hand out the machine's own credentials to whoever asks from inside."""
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
LONGEST = 500
HOST = re.compile(r"^[A-Za-z0-9._-]{1,253}$")
PORTS = {"http": 80, "https": 443}


class Address(msgspec.Struct, frozen=True):
    """A checked base address. `path` has no slash at its end."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str = ""

    @property
    def authority(self) -> str:
        """As it stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str) -> Address:
    """Reads a base address. Raises SourceError with what is wrong with it."""
    if len(url) > LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise SourceError(
            failures.ADDRESS, "the address has characters that an address cannot have, or is too long"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SourceError(failures.ADDRESS, f"the address cannot be read: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise SourceError(failures.ADDRESS, "the address must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise SourceError(failures.ADDRESS, "the address must not hold a user name or password")
    if parts.query or parts.fragment:
        raise SourceError(failures.ADDRESS, "the address must end before '?' and '#'")
    host = parts.hostname or ""
    if not (HOST.match(host) or _ip(host)):
        raise SourceError(failures.ADDRESS, "the address names no host")
    return Address(
        "https" if parts.scheme == "https" else "http",
        host,
        port or PORTS[parts.scheme],
        parts.path.rstrip("/"),
    )


def pick(
    found: Iterable[tuple[int, str]], use: Use, allowed: frozenset[str] = frozenset()
) -> tuple[int, str]:
    """The first address to use of what a name resolves to: (family, text). Raises SourceError if any is forbidden."""
    found = list(found)
    for _, text in found:
        if reason := forbidden(text, use, allowed):
            raise SourceError(failures.ADDRESS, reason)
    if not found:
        raise SourceError(failures.ADDRESS, "the host name has no address")
    return found[0]


def forbidden(text: str, use: Use, allowed: frozenset[str] = frozenset()) -> str:
    """Why this IP address may not be asked; "" = it may. `allowed`: addresses that an administrator let through."""
    address = reached(ipaddress.ip_address(text.partition("%")[0]))
    if address in METADATA or address.is_link_local:
        return f"{address} is a link-local or cloud metadata address, which numaweb never asks"
    # Python counts ::1 as reserved, for all of ::/8 is.
    if address.is_multicast or address.is_unspecified or (address.is_reserved and not address.is_loopback):
        return f"{address} is no address of one host"
    if use == "prometheus" and address.is_loopback and str(address) not in allowed:
        return f"{address} is numaweb's own machine: list it in NUMAWEB_PROMETHEUS_ALLOW to ask there"
    return ""


def reached(address: IP) -> IP:
    """Whom one really speaks to: IPv4 inside IPv6 (mapped, NAT64 of RFC 6052, 6to4 of RFC 3056) is that IPv4 host."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_literal(host: str) -> bool:
    """Whether the host is an IP address and no name."""
    return _ip(host) is not None


def is_name(text: str) -> bool:
    """Whether a text is a host name whose parts TLS can ask for (RFC 5890: at most 63 characters each), or an IP address."""
    parts = text.removesuffix(".").split(".")
    return is_literal(text) or (bool(HOST.match(text)) and all(0 < len(part) <= 63 for part in parts))


def resolve(address: Address) -> list[tuple[int, str]]:
    """All IP addresses of the host: (family, text). Blocking. Raises SourceError."""
    if literal := _ip(address.host):
        return [(socket.AF_INET6 if literal.version == 6 else socket.AF_INET, str(literal))]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceError(failures.ADDRESS, f"the host name {address.host} cannot be resolved") from error
    return [(int(family), str(place[0])) for family, _, _, _, place in found]


def _ip(host: str) -> IP | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
