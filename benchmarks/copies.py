"""Thousands of objects in an API server's storage: copies of a few that it wrote itself, byte for byte but for their names.

Making each by the API costs a control plane half an hour of CPU time, and only what stands there afterwards is of interest. A text within a stored
object is replaced by one of the same length, so that lengths within stay true (etcd holds protobuf); watchers of the storage, the API server above all,
hear of the copies as of any other write.
"""

import base64
import itertools
import json
import urllib.request
from collections.abc import Iterable
from typing import NamedTuple

AT_ONCE = 100
"""Writes in one transaction; etcd takes 128 (server 3.6, embed/config.go `DefaultMaxTxnOps`)."""
SECONDS = 60

Replaced = tuple[str, str]
"""A text and another of the same length."""


class Stored(NamedTuple):
    """One object as etcd keeps it."""

    key: str
    value: bytes

    def copied(self, *replaced: Replaced) -> "Stored":
        """The same with other names. Raises ValueError where a text has another length or is not in it."""
        key, value = self.key, self.value
        for old, new in replaced:
            if len(old.encode()) != len(new.encode()) or old.encode() not in value:
                raise ValueError(f"{old!r} is not in {self.key} or not as long as {new!r}")
            key, value = key.replace(old, new), value.replace(old.encode(), new.encode())
        return Stored(key, value)


def read(etcd: str, key: str) -> Stored:
    """What etcd at this address keeps there. Raises LookupError when there is nothing."""
    found = _asked(etcd, "range", {"key": _base64(key.encode())}).get("kvs", [])
    if not found:
        raise LookupError(f"etcd has no {key}")
    return Stored(key, base64.b64decode(found[0]["value"]))


def write(etcd: str, objects: Iterable[Stored]) -> None:
    """All of them, some in each transaction."""
    waiting = iter(objects)
    while some := list(itertools.islice(waiting, AT_ONCE)):
        puts = [
            {"requestPut": {"key": _base64(each.key.encode()), "value": _base64(each.value)}} for each in some
        ]
        _asked(etcd, "txn", {"success": puts})


def _asked(etcd: str, what: str, question: object) -> dict[str, list[dict[str, str]]]:
    request = urllib.request.Request(
        f"{etcd}/v3/kv/{what}", json.dumps(question).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        return dict(json.load(response))


def _base64(plain: bytes) -> str:
    return base64.b64encode(plain).decode()
