"""Addresses that administrators enter: what may be asked, and what never."""

import socket

import pytest

from monitoring.sources import address
from monitoring.sources.failures import SourceError


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://node-1:9117", "node-1", 9117, "node-1:9117"),
        ("https://node-1.example.org/", "node-1.example.org", 443, "node-1.example.org"),
        ("http://10.0.0.7", "10.0.0.7", 80, "10.0.0.7"),
        ("http://[fd12::7]:9117/base", "fd12::7", 9117, "[fd12::7]:9117"),
    ],
)
def test_it_reads(url: str, host: str, port: int, authority: str) -> None:
    found = address.parse(url)
    assert (found.host, found.port, found.authority) == (host, port, authority)


@pytest.mark.parametrize(
    "url",
    [
        *("", "node-1:9117", "ftp://node-1", "file:///etc/passwd", "gopher://x", "http://", "http://:80"),
        *("http://user@node-1", "http://user:secret@node-1", "http://node-1?x=1", "http://node-1#x"),
        *(
            "http://node-1:99999",
            "http://node 1",
            "http://node-1/\r\nX: y",
            "http://n\u00f6de",
            "http://a/" + "b" * 600,
        ),
        *("http://[::1", "http://no|de"),
    ],
)
def test_it_refuses_to_read(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        address.parse(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "ip",
    [
        *(
            "169.254.169.254",
            "169.254.1.1",
            "fe80::1",
            "fe80::1%eth0",
            "::ffff:169.254.169.254",
            "100.100.100.200",
        ),
        *("fd00:ec2::254", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"),
        *(
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::169.254.169.254",
            "64:ff9b::",
            "::ffff:0.0.0.0",
        ),
    ],
)
@pytest.mark.parametrize("use", ["exporter", "prometheus"])
def test_it_never_asks(ip: str, use: address.Use) -> None:
    assert address.forbidden(ip, use)


@pytest.mark.parametrize(
    "ip",
    ["10.1.2.3", "192.168.0.1", "172.16.0.9", "fd12:3456::1", "8.8.8.8", "2600::1", "64:ff9b::10.1.2.3"],
)
@pytest.mark.parametrize("use", ["exporter", "prometheus"])
def test_it_may_ask(ip: str, use: address.Use) -> None:
    assert address.forbidden(ip, use) == ""


@pytest.mark.parametrize("ip", ["127.0.0.1", "127.0.0.53", "::1"])
def test_it_asks_exporters_on_the_own_machine_and_prometheus_there_only_if_allowed(ip: str) -> None:
    assert address.forbidden(ip, "exporter") == ""
    assert "NUMAWEB_PROMETHEUS_ALLOW" in address.forbidden(ip, "prometheus")
    assert address.forbidden(ip, "prometheus", frozenset({ip})) == ""


@pytest.mark.parametrize("ip", ["::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::1"])
def test_another_way_of_writing_the_own_machine_is_no_way_around(ip: str) -> None:
    assert "NUMAWEB_PROMETHEUS_ALLOW" in address.forbidden(ip, "prometheus")


def test_it_refuses_a_name_if_any_of_its_addresses_is_forbidden() -> None:
    found = [(socket.AF_INET, "10.0.0.1"), (socket.AF_INET, "169.254.169.254")]
    with pytest.raises(SourceError, match="metadata"):
        address.pick(found, "exporter")
    assert address.pick(found[:1], "exporter") == found[0]
    with pytest.raises(SourceError, match="no address"):
        address.pick([], "exporter")


def test_it_resolves_names_and_takes_numbers_as_they_are() -> None:
    assert address.resolve(address.parse("http://127.0.0.1:80")) == [(socket.AF_INET, "127.0.0.1")]
    assert {"127.0.0.1", "::1"} & {ip for _, ip in address.resolve(address.parse("http://localhost"))}
    with pytest.raises(SourceError, match="cannot be resolved"):
        address.resolve(address.parse("http://no-such-host.invalid"))
