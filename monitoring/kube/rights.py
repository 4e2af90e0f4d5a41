"""Rights in the words of RBAC: what a refusal asked for, and what an identity lacks before it is refused anything.

`missing` asks the API server about the caller's own rights (SelfSubjectAccessReview, which every signed-in identity may
create through `system:basic-user`), so it is right for every authorizer and not only for RBAC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

_REFUSED = re.compile(
    r'cannot (?P<verb>[a-z*]+) (?:resource "(?P<resource>[^"/]+)(?:/(?P<subresource>[^"]+))?" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?|path "(?P<path>[^"]+)")'
)


class Right(msgspec.Struct, frozen=True, order=True):
    """One verb on one kind of resource, as a rule of an RBAC role grants it.

    `why` is a code for what needs it (a page, a part), for which pages have a sentence. A path such as `/version` stands
    in `resource` with its slash.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    why: str = ""

    def __str__(self) -> str:
        """As a person writes it: `list pods`, `get nodes/configz`, `watch numatopologies.nodeinfo.volcano.sh`."""
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        name = f"{name}.{self.group}" if self.group else name
        return f"{self.verb} {name} in {self.namespace}" if self.namespace else f"{self.verb} {name}"


class Reviewer(Protocol):
    """The part of `client.Client` that is needed here."""

    async def review(self, body: bytes) -> bool: ...


def refused(message: str) -> Right | None:
    """The right that a refusal names; None where the words are not Kubernetes's own.

    The words: apiserver 1.37, endpoints/handlers/responsewriters/errors.go; they are the same since 1.9.
    """
    found = _REFUSED.search(message)
    if found is None:
        return None
    if path := found["path"]:
        return Right(found["verb"], "", path)
    return Right(
        found["verb"],
        found["group"],
        found["resource"],
        found["subresource"] or "",
        found["namespace"] or "",
    )


async def missing(reviewer: Reviewer, wanted: Iterable[Right]) -> list[Right]:
    """Those of the wanted rights that the API server would refuse, in the order given.

    Raises:
        ApiError: the API server did not answer the question itself.
    """
    return [right for right in wanted if not await reviewer.review(_question(right))]


def _question(right: Right) -> bytes:
    if right.resource.startswith("/"):
        spec: dict[str, object] = {"nonResourceAttributes": {"path": right.resource, "verb": right.verb}}
    else:
        named = {
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        spec = {"resourceAttributes": {name: value for name, value in named.items() if value}}
    return msgspec.json.encode(
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    )
