"""The kinds of pods that arrive, each drawn with names and sizes from a seeded generator."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

import msgspec

from numacore.workload import QOS
from numasim import wave
from numasim.workload import GIB, MIB, Habit, Pod, Room, Want


def draw(rng: random.Random, born: float, room: Room) -> Pod:
    """A pod of any kind that this node may get."""
    kinds = [kind for kind in room.mix if _suits(kind, room)]
    kind = rng.choices(kinds, [room.mix[kind] for kind in kinds])[0]
    return _pod(rng, born, MAKERS[kind](rng, room))


def resident(rng: random.Random, kind: str, room: Room) -> Pod:
    """A pod of this kind that came long ago and stays."""
    return _pod(rng, -rng.uniform(1, 20) * 86400, MAKERS[kind](rng, room), forever=True)


def _suits(kind: str, room: Room) -> bool:
    return bool(
        (kind != "inference" or room.accelerators)
        and (kind != "packets" or room.huge_size)
        and (kind != "wide" or room.numa_cpus < room.largest * 4)
    )


def daemons(rng: random.Random, room: Room) -> list[Pod]:
    """The pods that every node has."""
    names = [
        ("kube-system", "kube-proxy", 0.1, 64),
        ("kube-system", "cilium", 0.3, 384),
        ("monitoring", "node-exporter", 0.1, 48),
        ("monitoring", "fluent-bit", 0.2, 128),
        ("storage", "csi-node", 0.05, 64),
    ]
    if room.accelerators:
        names.append(("kube-system", f"{room.accelerator.split('.')[0]}-device-plugin", 0.05, 64))
    age = rng.uniform(20, 90) * 86400
    return [
        _pod(
            rng,
            -age,
            _Draft(
                f"{name}-{_suffix(rng, 5)}",
                space,
                "Burstable",
                (_want(rng, name, cpu, 0.3, mib * MIB, limits=0),),
            ),
            forever=True,
        )
        for space, name, cpu, mib in names
    ]


class _Draft(msgspec.Struct):
    name: str
    namespace: str
    qos: QOS
    containers: tuple[Want, ...]
    habit: Habit = "anywhere"
    lives: tuple[float, float] = (300, 1500)


def _suffix(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=length))


def _ordinal(rng: random.Random, room: Room) -> int:
    return room.ordinal + rng.randrange(10)


def _deployed(rng: random.Random, name: str) -> str:
    return f"{name}-{_suffix(rng, 9)}-{_suffix(rng, 5)}"


def _want(
    rng: random.Random,
    name: str,
    cpu: float,
    busy: float,
    memory: int,
    *,
    limits: float = 1.0,
    huge: dict[int, int] | None = None,
    devices: dict[str, int] | None = None,
) -> Want:
    """A container that keeps `busy` of its CPUs busy; limits = requests x `limits`, 0 = none."""
    return Want(
        name=name,
        cpu=cpu,
        cpu_limit=round(cpu * limits, 3),
        memory=memory,
        memory_limit=int(memory * limits),
        huge=huge or {},
        devices=devices or {},
        load=wave.daily(rng, cpu * busy, rng.uniform(0.3, 0.8)),
        fill=wave.daily(rng, rng.uniform(0.62, 0.88), 0.05),
    )


def _pod(rng: random.Random, born: float, draft: _Draft, *, forever: bool = False) -> Pod:
    lives = float("inf") if forever else rng.uniform(*draft.lives)
    return Pod(
        uid=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        name=draft.name,
        namespace=draft.namespace,
        qos=draft.qos,
        containers=draft.containers,
        habit=draft.habit,
        born=born,
        dies=born + lives,
        ids=tuple(f"{rng.getrandbits(256):064x}" for _ in range(1 + len(draft.containers))),
    )


def _cpus(rng: random.Random, room: Room, *choices: int) -> int:
    return rng.choice([n for n in choices if n <= room.largest] or [1])


def _memory(rng: random.Random, room: Room, cpus: float, per_cpu: int) -> int:
    return min(room.memory, max(256 * MIB, int(cpus * per_cpu * rng.uniform(0.6, 1.2)))) // MIB * MIB


def _database(rng: random.Random, room: Room) -> _Draft:
    """Whole CPUs, Guaranteed; now and then its memory has drifted to another NUMA node."""
    engine, image = rng.choice(
        [("postgres", "postgres"), ("mysql", "mysqld"), ("kafka", "broker"), ("mongo", "mongod")]
    )
    cpus = _cpus(rng, room, 2, 4, 4, 8, 8, 16, 24)
    main = _want(rng, image, cpus, rng.uniform(0.25, 0.75), _memory(rng, room, cpus, 3 * GIB))
    side = _want(rng, "metrics", 0.1, 0.3, 64 * MIB)
    name = f"{engine}-{rng.choice(['orders', 'ledger', 'users', 'events', 'stock'])}-{_ordinal(rng, room)}"
    habit: Habit = "drifted" if rng.random() < 0.3 else "local"
    return _Draft(
        name,
        rng.choice(["payments", "data-platform", "shop"]),
        "Guaranteed",
        (main, side),
        habit,
        (1800, 14400),
    )


def _inference(rng: random.Random, room: Room) -> _Draft:
    """Whole CPUs beside a GPU or NPU, often with a network function."""
    cpus = _cpus(rng, room, 4, 6, 8)
    devices = {"accelerator": rng.choice([1, 1, 1, 2] if room.accelerators > 1 else [1])}
    if room.network and rng.random() < 0.6:
        devices["network"] = 1
    main = _want(
        rng, "server", cpus, rng.uniform(0.4, 0.9), _memory(rng, room, cpus, 4 * GIB), devices=devices
    )
    name = _deployed(
        rng, rng.choice(["llm-serving", "vision-serving", "embeddings", "speech-to-text", "ranker"])
    )
    return _Draft(name, "ml-serving", "Guaranteed", (main,), "local", (400, 2400))


def _web(rng: random.Random, room: Room) -> _Draft:
    """Burstable and floating."""
    cpu = rng.choice([0.25, 0.5, 1.0, 2.0])
    main = _want(rng, "app", cpu, rng.uniform(0.3, 1.4), _memory(rng, room, cpu, GIB), limits=2.0)
    names = [
        "storefront",
        "cart",
        "checkout",
        "search-api",
        "recommendations",
        "gateway",
        "catalog",
        "session",
    ]
    proxies = (_want(rng, "istio-proxy", 0.1, 0.5, 128 * MIB, limits=4.0),) if rng.random() < 0.4 else ()
    return _Draft(
        _deployed(rng, rng.choice(names)),
        rng.choice(["shop", "search", "web"]),
        "Burstable",
        (main, *proxies),
    )


def _batch(rng: random.Random, room: Room) -> _Draft:
    """BestEffort: no requests, takes what is free."""
    want = _want(rng, "job", 1.0, rng.uniform(0.4, 1.0), _memory(rng, room, 1, GIB), limits=0)
    job = f"{rng.choice(['report', 'etl', 'thumbnails', 'reindex', 'backup'])}-{rng.randrange(29_000_000, 29_400_000)}"
    free = msgspec.structs.replace(want, cpu=0.0)
    return _Draft(f"{job}-{_suffix(rng, 5)}", "batch", "BestEffort", (free,), "anywhere", (60, 420))


def _cache(rng: random.Random, room: Room) -> _Draft:
    """Guaranteed, but with a fraction of a CPU: the kubelet gives it no CPU of its own."""
    cpu = rng.choice([0.5, 1.5, 2.5])
    main = _want(rng, "redis", cpu, rng.uniform(0.2, 0.6), _memory(rng, room, cpu, 2 * GIB))
    return _Draft(
        f"redis-{rng.choice(['cart', 'session', 'feed'])}-{_ordinal(rng, room)}",
        "shop",
        "Guaranteed",
        (main,),
    )


def _half_limited(rng: random.Random, room: Room) -> _Draft:
    """Whole CPUs, yet a side container without limits makes the pod Burstable: nothing is pinned."""
    cpus = _cpus(rng, room, 2, 4)
    main = _want(rng, "engine", cpus, rng.uniform(0.3, 0.6), _memory(rng, room, cpus, 2 * GIB))
    side = _want(rng, "log-shipper", 0.1, 0.2, 64 * MIB, limits=0)
    return _Draft(_deployed(rng, "pricing-engine"), "payments", "Burstable", (main, side))


def _packets(rng: random.Random, room: Room) -> _Draft:
    """A packet forwarder on huge pages."""
    cpus = _cpus(rng, room, 2, 4)
    pages = max(1, GIB // room.huge_size)
    devices = {"network": 1} if room.network else {}
    huge = {room.huge_size: pages}
    main = _want(rng, "forwarder", cpus, 0.9, _memory(rng, room, cpus, GIB), huge=huge, devices=devices)
    return _Draft(f"upf-{_suffix(rng, 5)}", "telecom", "Guaranteed", (main,), "local", (900, 3600))


def _wide(rng: random.Random, room: Room) -> _Draft:
    """More CPUs than a NUMA node has: it lies over two of them, wherever it is let in."""
    cpus = room.numa_cpus * 5 // 4 // 4 * 4
    main = _want(rng, "clickhouse", cpus, rng.uniform(0.3, 0.6), _memory(rng, room, 8, 4 * GIB))
    return _Draft(
        f"clickhouse-{_ordinal(rng, room)}", "data-platform", "Guaranteed", (main,), "local", (900, 3600)
    )


def _executor(rng: random.Random, room: Room) -> _Draft:
    """Burstable and hungry: it takes many CPUs of the shared pool."""
    cpu = float(max(1, room.largest // 4))
    main = _want(rng, "executor", cpu, rng.uniform(0.3, 0.7), _memory(rng, room, cpu, GIB), limits=2.0)
    name = f"spark-{rng.choice(['sessions', 'billing', 'features'])}-exec-{_ordinal(rng, room)}"
    return _Draft(name, "batch", "Burstable", (main,), "anywhere", (120, 900))


MAKERS: dict[str, Callable[[random.Random, Room], _Draft]] = {
    "database": _database,
    "inference": _inference,
    "web": _web,
    "batch": _batch,
    "cache": _cache,
    "half-limited": _half_limited,
    "packets": _packets,
    "wide": _wide,
    "executor": _executor,
}
MIX = {
    "database": 5,
    "inference": 5,
    "web": 6,
    "batch": 3,
    "cache": 2,
    "half-limited": 1,
    "packets": 2,
    "executor": 2,
}
"""What an ordinary node gets."""
