"""An API server in this process, small and with faults on demand. tests/kubecontract.py holds it to what the real one does.

It serves lists in pages, watches with bookmarks, discovery, reviews of rights, and refuses as Kubernetes does. It knows no schemas, no
admission, no namespaces' lives and no controllers.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import itertools
import json
import ssl
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from aiohttp import web

from monitoring.kube.access import Access
from monitoring.kube.rights import Right
from tests.monitoring.kube.answers import Answer, as_json, line, status, status_object

Object = dict[str, Any]


class Kind(NamedTuple):
    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def store(self) -> str:
        """Versions of one kind are views of the same objects."""
        return f"{self.plural}.{self.group}"


KINDS = (
    Kind("", "v1", "nodes", "Node"),
    Kind("", "v1", "pods", "Pod", True),
    Kind("", "v1", "events", "Event", True),
    Kind("apps", "v1", "daemonsets", "DaemonSet", True),
    Kind("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology"),
    Kind("topology.node.k8s.io", "v1alpha1", "noderesourcetopologies", "NodeResourceTopology"),
    Kind("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", "NodeResourceTopology"),
)


class _Past(NamedTuple):
    version: int
    store: str
    type: str
    object: Object


class FakeApiServer:
    """`async with FakeApiServer() as server`; everything that changes it is synchronous and belongs into the same event loop."""

    namespace = "default"

    def __init__(self, tls: ssl.SSLContext | None = None, ca: str | None = None) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        """By store and name, in the order of etcd's keys."""
        self.version = 1000
        self.oldest = 1000
        """A watch may go on from here on."""
        self.kinds = list(KINDS)
        self.next_lists: deque[Answer] = deque()
        """What the next lists get instead of an answer."""
        self.next_watches: deque[Answer] = deque()
        self.always: Answer | None = None
        """What everybody gets for everything."""
        self.asked: list[web.Request] = []
        self.bookmark_every = 60.0
        """Seconds. As seen on 1.37 for pods; other resources get fewer or none."""
        self._history: list[_Past] = []
        self._snapshots: dict[int, dict[tuple[str, str], Object]] = {}
        self._users: dict[str, tuple[str, frozenset[Right] | None]] = {"admin": ("admin", None)}
        self._watchers: set[_Watch] = set()
        self._numbers = itertools.count(1)
        self._tls, self._ca = tls, ca
        self._port = 0
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """At the same port as before."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuses connections and drops those that there are."""
        if self._runner is not None:
            self.cut()
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def access(self) -> Access:
        return Access(self.url, self._ca, token="admin")

    # ------------------------------------------------------------ what happens in the cluster

    def create(self, thing: Object) -> Object:
        made = copy.deepcopy(thing)
        kind = self._kind_of(made)
        meta = made["metadata"]
        if kind.namespaced:
            meta.setdefault("namespace", "default")
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": _now()}
        assert (kind.store, _key(made)) not in self.objects, "it exists already"
        self._happen("ADDED", kind, made)
        return copy.deepcopy(made)

    def patch(self, thing: Object, change: Object) -> Object:
        """A merge patch."""
        kind = self._kind_of(thing)
        made = _merged(copy.deepcopy(self.objects[kind.store, _key(thing)]), change)
        self._happen("MODIFIED", kind, made)
        return copy.deepcopy(made)

    def delete(self, thing: Object) -> None:
        kind = self._kind_of(thing)
        self._happen("DELETED", kind, copy.deepcopy(self.objects[kind.store, _key(thing)]))

    def identity(self, rights: Iterable[Right]) -> Access:
        """Somebody who has these rights and no others."""
        name = f"somebody-{next(self._numbers)}"
        self._users[name] = (f"system:serviceaccount:default:{name}", frozenset(rights))
        return Access(self.url, self._ca, token=name)

    def dismiss(self, access: Access) -> None:
        """The token counts no more."""
        del self._users[access.token]

    def undefine(self, plural: str) -> None:
        """A custom resource goes, with its objects."""
        for key in [key for key in self.objects if key[0].startswith(f"{plural}.")]:
            del self.objects[key]
        self.kinds = [kind for kind in self.kinds if kind.plural != plural]
        self.cut()

    def define(self, plural: str) -> None:
        self.kinds += [kind for kind in KINDS if kind.plural == plural]

    def _happen(self, event: str, kind: Kind, thing: Object) -> None:
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        key = (kind.store, _key(thing))
        before = self.objects.pop(key, None)
        if event != "DELETED":
            self.objects[key] = thing
            self.objects = dict(sorted(self.objects.items()))
        self._history.append(_Past(self.version, kind.store, event, copy.deepcopy(thing)))
        for watcher in self._watchers:
            watcher.offer(self._history[-1], before)

    # ------------------------------------------------------------ what happens to the server

    def expire(self) -> None:
        """Forgets the past: watches from older versions and further pages of lists that have begun are 410."""
        self.version += 1
        self.oldest = self.version
        self._history.clear()
        self._snapshots.clear()

    def backup(self) -> tuple[int, dict[tuple[str, str], Object]]:
        return self.version, copy.deepcopy(self.objects)

    def restore(self, saved: tuple[int, dict[tuple[str, str], Object]] = (1, {})) -> None:
        """Comes back with an older state, or empty, and counts its versions from there."""
        self.version, objects = saved
        self.objects = copy.deepcopy(objects)
        self.oldest = min(self.oldest, self.version)
        self._history = [each for each in self._history if each.version <= self.version]
        self._snapshots.clear()
        self.cut()

    async def restart(self) -> None:
        """It remembers objects and nothing of the past."""
        await self.stop()
        self.expire()
        await self.start()

    async def restart_empty(self) -> None:
        """Without an object, and with no custom resource defined."""
        await self.stop()
        self.restore()
        self.kinds = [kind for kind in KINDS if not kind.group.count(".")]
        await self.start()

    def cut(self) -> None:
        """Drops the connections of all watches."""
        for watcher in self._watchers:
            if watcher.transport is not None:
                watcher.transport.abort()

    def hush(self) -> None:
        """The watches that there are get no events, no bookmarks and no end any more; their connections stay."""
        for watcher in self._watchers:
            watcher.hushed = True
            watcher.queue.put_nowait(b"")

    def end_watches(self) -> None:
        """Ends all watches as their time-out does."""
        self.say(None)

    def say(self, raw: bytes | None) -> None:
        """Sends these bytes on all watches, whatever they are."""
        for watcher in self._watchers:
            watcher.queue.put_nowait(raw)

    @property
    def watching(self) -> int:
        return len(self._watchers)

    @property
    def watches(self) -> int:
        """Watches that were asked for so far."""
        return sum("watch" in each.query for each in self.asked)

    def lists(self, plural: str) -> int:
        """Lists that have begun: first pages that were asked for."""
        return sum(
            each.path.endswith(f"/{plural}") and not {"watch", "continue"} & set(each.query)
            for each in self.asked
        )

    # ------------------------------------------------------------ answers

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.always is not None:
            return await self.always(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self._users:
            return status(401, "Unauthorized", "Unauthorized")
        path = request.path
        if path == "/version":
            return as_json({"major": "1", "minor": "37", "gitVersion": "v1.37.2", "platform": "linux/amd64"})
        if path == "/apis":
            names = sorted({kind.group for kind in self.kinds if kind.group})
            return as_json(
                {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": each} for each in names]}
            )
        if request.method == "POST" and path.endswith("/selfsubjectaccessreviews"):
            return await self._review(request, token)
        here = [kind for kind in self.kinds if kind.root == path]
        if here:
            resources = [{"name": kind.plural, "kind": kind.name} for kind in here]
            return as_json(
                {"kind": "APIResourceList", "groupVersion": here[0].api_version, "resources": resources}
            )
        kind = next((each for each in self.kinds if f"{each.root}/{each.plural}" == path), None)
        if kind is None:
            return web.Response(status=404, text="404 page not found\n")
        watch = request.query.get("watch") == "true"
        verb = "watch" if watch else "list"
        if not self._may(token, verb, kind.group, kind.plural):
            return _forbidden(self._users[token][0], verb, kind)
        waiting = self.next_watches if watch else self.next_lists
        if waiting:
            return await waiting.popleft()(request)
        return await self._watch(request, kind) if watch else self._list(request, kind)

    def _may(self, token: str, verb: str, group: str, plural: str) -> bool:
        rights = self._users[token][1]
        return rights is None or Right(verb, group, plural) in {
            Right(r.verb, r.group, r.resource) for r in rights
        }

    async def _review(self, request: web.Request, token: str) -> web.Response:
        asked = (await request.json())["spec"]
        if "nonResourceAttributes" in asked:
            return as_json({"kind": "SelfSubjectAccessReview", "status": {"allowed": True}}, 201)
        wanted = asked["resourceAttributes"]
        rights = self._users[token][1]
        right = Right(
            wanted["verb"], wanted.get("group", ""), wanted["resource"], wanted.get("subresource", "")
        )
        held = None if rights is None else {Right(r.verb, r.group, r.resource, r.subresource) for r in rights}
        allowed = held is None or right in held
        return as_json({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}, 201)

    def _list(self, request: web.Request, kind: Kind) -> web.Response:
        limit = int(request.query.get("limit", "0"))
        version, after = self.version, ""
        if token := request.query.get("continue", ""):
            try:
                version, after = json.loads(base64.urlsafe_b64decode(token))
            except ValueError:
                return status(400, "BadRequest", "continue key is not valid")
            if version not in self._snapshots:
                return status(410, "Expired", "The provided continue parameter is too old")
            everything = self._snapshots[version]
        else:
            everything = self.objects
        wanted = _selector(request)
        found = [
            (key[1], each)
            for key, each in everything.items()
            if key[0] == kind.store and key[1] > after and wanted(each)
        ]
        meta: Object = {"resourceVersion": str(version)}
        if limit and len(found) > limit:
            # One snapshot for each version: objects are never changed in place.
            self._snapshots.setdefault(version, dict(everything))
            meta["continue"] = base64.urlsafe_b64encode(
                json.dumps([version, found[limit - 1][0]]).encode()
            ).decode()
            if not {"labelSelector", "fieldSelector"} & set(request.query):
                meta["remainingItemCount"] = len(found) - limit
            found = found[:limit]
        # Items of a built-in list come without their kind, those of a custom resource with it.
        items = [_seen(kind, each) for _, each in found]
        return as_json(
            {"kind": f"{kind.name}List", "apiVersion": kind.api_version, "metadata": meta, "items": items}
        )

    async def _watch(self, request: web.Request, kind: Kind) -> web.StreamResponse:
        start = int(request.query.get("resourceVersion", "0"))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if start < self.oldest:
            gone = status_object(410, "Expired", f"too old resource version: {start} ({self.oldest})")
            await response.write(line("ERROR", gone))
            return response
        watcher = _Watch(self, request, kind, start)
        past: dict[str, Object] = {}
        for each in [each for each in self._history if each.store == kind.store]:
            watcher.offer(each, past.get(_key(each.object)))
            past[_key(each.object)] = each.object
            if each.type == "DELETED":
                del past[_key(each.object)]
        self._watchers.add(watcher)
        try:
            with suppress(ConnectionError):
                await watcher.serve(response)
        finally:
            self._watchers.discard(watcher)
        return response

    def _kind_of(self, thing: Object) -> Kind:
        return next(
            kind for kind in KINDS if (kind.api_version, kind.name) == (thing["apiVersion"], thing["kind"])
        )


class _Watch:
    """One watch: what it wants to hear, and its clock."""

    def __init__(self, server: FakeApiServer, request: web.Request, kind: Kind, start: int) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.transport = request.transport
        self.hushed = False
        self._server, self._kind, self._start = server, kind, start
        self._wanted = _selector(request)
        self._bookmarks = request.query.get("allowWatchBookmarks") == "true"
        self._seconds = float(request.query.get("timeoutSeconds", "1800"))

    def offer(self, past: _Past, before: Object | None) -> None:
        if past.store != self._kind.store or past.version <= self._start or self.hushed:
            return
        was = before is not None and self._wanted(before)
        now = past.type != "DELETED" and self._wanted(past.object)
        if was or now:
            event = "DELETED" if not now else "MODIFIED" if was else "ADDED"
            self.queue.put_nowait(line(event, _seen(self._kind, past.object, whole=True)))

    async def serve(self, response: web.StreamResponse) -> None:
        end = time.monotonic() + self._seconds
        mark = time.monotonic() + self._server.bookmark_every
        while (now := time.monotonic()) < end or self.hushed:
            try:
                async with asyncio.timeout(None if self.hushed else max(0.0, min(mark, end) - now)):
                    raw = await self.queue.get()
            except TimeoutError:
                if mark <= time.monotonic() < end:
                    mark += self._server.bookmark_every
                    if self._bookmarks:
                        await response.write(self._bookmark())
                continue
            if raw is None:
                return
            if raw:
                await response.write(raw)

    def _bookmark(self) -> bytes:
        meta = {"resourceVersion": str(self._server.version), "creationTimestamp": None}
        return line(
            "BOOKMARK", {"kind": self._kind.name, "apiVersion": self._kind.api_version, "metadata": meta}
        )


# ---------------------------------------------------------------- forms


def _seen(kind: Kind, thing: Object, *, whole: bool = False) -> Object:
    """An object as this version of its kind shows it."""
    shown = dict(thing)
    if kind.group.count(".") or whole:
        shown |= {"apiVersion": kind.api_version, "kind": kind.name}
    else:
        shown.pop("apiVersion", None)
        shown.pop("kind", None)
    if (kind.plural, kind.version) == ("noderesourcetopologies", "v1alpha1"):
        shown.pop("attributes", None)
    return shown


def _key(thing: Object) -> str:
    meta = thing["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _selector(request: web.Request) -> Callable[[Object], bool]:
    """Equality of labels, and of fields that are named with dots."""
    labels = _pairs(request.query.get("labelSelector", ""))
    fields = _pairs(request.query.get("fieldSelector", ""))

    def wanted(thing: Object) -> bool:
        has = thing["metadata"].get("labels", {})
        return all(has.get(key) == value for key, value in labels) and all(
            _field(thing, path) == value for path, value in fields
        )

    return wanted


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = [each.partition("=") for each in text.split(",") if each]
    return [(key, value) for key, _, value in parts]


def _field(thing: Object, path: str) -> str:
    value: Any = thing
    for part in path.split("."):
        value = value.get(part, {}) if isinstance(value, dict) else {}
    return value if isinstance(value, str) else ""


def _merged(value: Object, change: Object) -> Object:
    """RFC 7386."""
    for key, new in change.items():
        if new is None:
            value.pop(key, None)
        elif isinstance(new, dict):
            value[key] = _merged(dict(value.get(key) or {}), new)
        else:
            value[key] = new
    return value


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _forbidden(user: str, verb: str, kind: Kind) -> web.Response:
    name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return status(
        403,
        "Forbidden",
        f'{name} is forbidden: User "{user}" cannot {verb} resource "{kind.plural}" in API group "{kind.group}" at the cluster scope',
    )
