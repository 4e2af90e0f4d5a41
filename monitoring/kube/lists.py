"""Lists, page by page, decoded from the raw body.

A list is asked for without a resourceVersion. That is the newest state as a majority of etcd knows it, never older than what was
seen before from another API server, and in pages whatever the version of Kubernetes; from 1.34 on the API server answers it out of its
own cache. With `resourceVersion=0` an older API server ignores the limit (150,000 pods in one answer of 700 MB) and may answer with
a state from before its last disconnection. Sources: Kubernetes documentation, API concepts, and KEP-2340.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from monitoring.kube.errors import Garbled
from monitoring.kube.objects import KubeObject
from monitoring.kube.resources import Getter, Resource

T = TypeVar("T", bound=KubeObject)
ITEM = TypeVar("ITEM")

LIMIT = 500
"""Objects of a page, as many as kubectl and client-go ask for."""


class Selectors(msgspec.Struct, frozen=True):
    """Which objects of a resource, in Kubernetes's own selector language."""

    label: str = ""
    field: str = ""

    @property
    def params(self) -> dict[str, str]:
        both = {"labelSelector": self.label, "fieldSelector": self.field}
        return {name: value for name, value in both.items() if value}


EVERYTHING = Selectors()


class Page(msgspec.Struct, Generic[T], frozen=True):
    """`version` is the list's own resourceVersion, the same on every page: a watch goes on from there. `remaining` objects are still to come,
    None where the server does not say. `unreadable` ones are not among the objects; `example` names one, and why."""

    objects: list[T]
    version: str
    more: bool
    remaining: int | None = None
    unreadable: int = 0
    example: str = ""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    next: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[ITEM]):
    """`items` has to be there: an answer without it is no empty cluster."""

    metadata: _ListMeta
    items: list[ITEM] | None


class _Head(msgspec.Struct):
    metadata: _ListMeta


@cache
def _decoder(item: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_List[item])


async def pages(
    client: Getter, resource: Resource[T], *, limit: int = LIMIT, selectors: Selectors = EVERYTHING
) -> AsyncGenerator[Page[T], None]:
    """All objects of a resource; the next page is on its way while its reader works on one. Whoever asks starts again when this raises;
    nothing is repeated in here. Close it (`contextlib.aclosing`): a reader that leaves in the middle leaves a request behind otherwise.

    Raises:
        Gone: the list took longer than the server remembers (5 minutes by default).
        ApiError: anything else that is in the way.
    """
    params = {"limit": str(limit), **selectors.params}

    def ask(token: str) -> asyncio.Task[bytes]:
        following = {"continue": token} if token else {}
        return asyncio.ensure_future(client.get(resource.path, {**params, **following}))

    token, coming = "", ask("")
    try:
        while True:
            page, following = decode(resource, await coming)
            if following:
                if following == token:
                    raise Garbled(200, "EndlessList", "the server gives the same page again and again")
                token, coming = following, ask(following)
            yield page
            if not following:
                return
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def head(client: Getter, resource: Resource[Any]) -> str:
    """The resourceVersion that a list would have now."""
    body = await client.get(resource.path, {"limit": "1"})
    try:
        return msgspec.json.decode(body, type=_Head).metadata.resource_version
    except msgspec.DecodeError as error:
        raise _garbled(error) from None


def decode(resource: Resource[T], body: bytes) -> tuple[Page[T], str]:
    """A page of its raw body, and the token of the next one (empty: it was the last).

    An object of another form than its kind has must not hide the others, so then each is read by itself.
    """
    try:
        found = _decoder(resource.type).decode(body)
        items, unreadable, example = found.items or [], 0, ""
    except msgspec.ValidationError:
        found, items, unreadable, example = _one_by_one(resource, body)
    except msgspec.DecodeError as error:
        raise _garbled(error) from None
    meta = found.metadata
    page = Page(items, meta.resource_version, bool(meta.next), meta.remaining_item_count, unreadable, example)
    return page, meta.next


class _Named(msgspec.Struct):
    metadata: dict[str, msgspec.Raw] = {}


def _one_by_one(resource: Resource[T], body: bytes) -> tuple[_List[msgspec.Raw], list[T], int, str]:
    try:
        found = _decoder(msgspec.Raw).decode(body)
    except msgspec.DecodeError as error:
        raise _garbled(error) from None
    items: list[T] = []
    unreadable, example = 0, ""
    for raw in found.items or []:
        try:
            items.append(resource.decode(raw))
        except msgspec.DecodeError as error:
            unreadable += 1
            example = example or f"{_name(raw)}: {error}"[:300]
    return found, items, unreadable, example


def _name(raw: msgspec.Raw) -> str:
    try:
        return str(msgspec.json.decode(msgspec.json.decode(raw, type=_Named).metadata["name"], type=str))
    except (msgspec.DecodeError, KeyError):
        return "?"


def _garbled(error: msgspec.DecodeError) -> Garbled:
    return Garbled(200, "NotAList", f"the answer is no list of Kubernetes: {error}")
