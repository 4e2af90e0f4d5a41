"""The hot store in a real Redis keeps the contract that the one in memory keeps, and comes back after a restart."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from monitoring.hot import Store, StoreError
from monitoring.hot.redisstore import RedisStore
from tests import stack
from tests.monitoring import hot_contract


@pytest.fixture
def store(redis: stack.Part) -> Iterator[RedisStore]:
    url = redis.url.replace("/0", "/9")
    with Redis.from_url(url) as client:
        client.flushdb()
        yield RedisStore(url)
        client.flushdb()


@pytest.mark.parametrize("it", hot_contract.CONTRACT)
def test_redis(it: Callable[[Store], None], store: RedisStore) -> None:
    it(store)


def test_it_writes_everything_again_after_redis_came_back_empty(tmp_path: Path) -> None:
    with stack.redis(tmp_path) as part:
        store = RedisStore(part.url)
        store.put([hot_contract.state(received=100.0)])
        part.server.kill()
        with pytest.raises(StoreError):
            store.put([hot_contract.state(received=102.0)])
        part.server.start()
        store.put([hot_contract.state(received=104.0)])
        assert store.get(7) == hot_contract.state(received=104.0)


def test_it_notices_that_redis_lost_everything_in_between(store: RedisStore, redis: stack.Part) -> None:
    store.put([hot_contract.state(received=100.0)])
    with Redis.from_url(redis.url.replace("/0", "/9")) as client:
        client.flushdb()
    store.put([hot_contract.state(received=102.0)])
    store.put([hot_contract.state(received=104.0)])
    assert store.get(7) == hot_contract.state(received=104.0)


def test_it_writes_everything_once_more_when_another_process_may_have_written(
    store: RedisStore, redis: stack.Part
) -> None:
    store.put([hot_contract.state(machine="m1")])
    RedisStore(redis.url.replace("/0", "/9")).put([hot_contract.state(machine="m2")])
    store.begin()
    store.put([hot_contract.state(machine="m1")])
    assert store.get(7) == hot_contract.state(machine="m1")
