"""From rounds to samples, and what becomes of samples that the database does not take."""

import pytest

from monitoring.history import METRICS, NodeSample
from monitoring.history.metrics import MISSING, PER_NUMA
from monitoring.services.collection.backlog import Backlog
from monitoring.services.collection.sampler import Sampler
from monitoring.sources.snapshot import NumaUse, Round


def told(
    busy: float | None, seconds: float | None = 2.0, used: int | None = 2048, remote: float | None = None
) -> Round:
    return Round(100.0, seconds, [NumaUse(busy, used, None, None, remote)], (), False)


def value(sample: NodeSample | None, name: str) -> float | None:
    assert sample is not None
    number = sample.numa[PER_NUMA.index(METRICS[name])][0]
    return None if number == MISSING else number / METRICS[name].scale


def test_it_weighs_means_by_time_and_keeps_the_highest() -> None:
    sampler = Sampler((0,))
    for each in (told(0.5, 1.0, remote=10.0), told(0.2, 3.0, remote=50.0)):
        sampler.add(each)
    sample = sampler.sample(7)
    assert value(sample, "busy") == pytest.approx(0.275)
    assert value(sample, "busy_max") == 0.5
    assert value(sample, "remote_pages_rate") == 40.0
    assert value(sample, "memory_used") == 2048


def test_it_takes_only_what_came_since_the_last_sample() -> None:
    sampler = Sampler((0,))
    sampler.add(told(0.9))
    sampler.sample(7)
    assert sampler.sample(7) is None
    sampler.add(told(0.1))
    assert value(sampler.sample(7), "busy_max") == 0.1


def test_it_leaves_gaps_where_nothing_can_be_compared() -> None:
    sampler = Sampler((0,))
    sampler.add(told(None, None))
    sample = sampler.sample(7)
    assert value(sample, "busy") is None
    assert value(sample, "pinned") is None
    assert value(sample, "memory_used") == 2048


def test_it_ignores_a_round_of_another_machine() -> None:
    sampler = Sampler((0, 1))
    sampler.add(told(0.5))
    assert sampler.sample(7) is None


def test_it_carries_what_the_last_report_said() -> None:
    sampler = Sampler((0,))
    sampler.pinned, sampler.crossing = [6], 2
    sampler.add(told(0.5))
    sample = sampler.sample(7)
    assert value(sample, "pinned") == 6
    assert sample is not None
    assert list(sample.values) == [2]


def some(count: int) -> list[NodeSample]:
    return [NodeSample(i, (0,), [[0]] * len(PER_NUMA), (0,)) for i in range(count)]


def test_it_keeps_a_minute_and_drops_the_oldest_with_a_count() -> None:
    backlog = Backlog(10)
    assert sum(backlog.add(at, some(5)) for at in range(0, 60, 10)) == 0
    assert backlog.add(60, some(5)) == 5
    written: list[int] = []
    assert backlog.drain(lambda at, samples: written.append(at)) == 30
    assert written == [10, 20, 30, 40, 50, 60]
    assert backlog.drain(lambda at, samples: written.append(at)) == 0


def test_it_keeps_what_could_not_be_written() -> None:
    backlog = Backlog(10)
    for at in (10, 20):
        backlog.add(at, some(1))

    def broken(at: int, samples: object) -> None:
        if at == 20:
            raise OSError("disk full")

    with pytest.raises(OSError, match="full"):
        backlog.drain(broken)
    written: list[int] = []
    backlog.drain(lambda at, samples: written.append(at))
    assert written == [20]
