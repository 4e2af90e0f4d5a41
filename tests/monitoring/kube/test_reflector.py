"""Whatever the API server does, the copy becomes what the server has, and nothing is asked more often than it has to be."""

import asyncio
import json
from functools import partial
from typing import Any

import msgspec
import pytest

from monitoring.kube.client import Client, Limits
from monitoring.kube.reflector import Reflector
from monitoring.kube.resources import NODES, NUMATOPOLOGIES
from monitoring.kube.rights import Right
from monitoring.kube.sinks import Absent, Listing, Watching
from tests.kubecontract import topology
from tests.monitoring.kube.answers import breaking_off, line, refusing, saying, status_object, stuck
from tests.monitoring.kube.fake import FakeApiServer
from tests.monitoring.kube.recording import LIMITS, QUICK, Copy, Time, mirror, until

SUSPICIOUS = msgspec.structs.replace(QUICK, silence=0.05)


@pytest.fixture
async def server() -> Any:
    async with FakeApiServer() as server:
        for name in "abcd":
            server.create(topology(name))
        yield server


# ---------------------------------------------------------------- what it tells


async def test_it_shows_everything_and_then_what_happens(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.shows(*"abcd")
        await it.watches()
        server.create(topology("e"))
        server.delete(topology("a"))
        await it.shows(*"bcde")
    assert it.copy.begun == it.copy.ended == 1
    listing, watching = it.copy.states
    assert isinstance(listing, Listing)
    assert (listing.done, listing.remaining) == (3, 1)
    assert isinstance(watching, Watching)


async def test_it_gathers_what_comes_together_but_not_more_than_a_batch_holds(server: FakeApiServer) -> None:
    pace = msgspec.structs.replace(QUICK, batch=4, gather=1.0)
    async with mirror(server, pace) as it:
        await it.watches()
        for number in range(10):
            server.create(topology(f"n{number}"))
        await until(lambda: len(it.copy.names) == 14, "all of them")
    assert max(map(len, it.copy.batches)) <= 4
    assert len(it.copy.batches) <= 4
    assert [name for batch in it.copy.batches for _, name in batch] == [f"n{number}" for number in range(10)]


async def test_it_hands_over_soon_though_more_keeps_coming(server: FakeApiServer) -> None:
    async with mirror(server, msgspec.structs.replace(QUICK, gather=0.02)) as it:
        await it.watches()
        for number in range(30):
            server.create(topology(f"n{number}"))
            await asyncio.sleep(0.004)
        assert len(it.copy.batches) > 1
        await until(lambda: len(it.copy.names) == 34, "all of them")


async def test_what_comes_alone_is_told_at_once_and_a_stream_now_and_then(server: FakeApiServer) -> None:
    async with mirror(server, msgspec.structs.replace(QUICK, between=30.0)) as it:
        await it.watches()
        server.create(topology("alone"))
        await until(lambda: "alone" in it.copy.names, "the first change")
        for number in range(20):
            server.create(topology(f"n{number}"))
            await asyncio.sleep(0.004)
        assert [len(batch) for batch in it.copy.batches] == [1]
    async with mirror(server, msgspec.structs.replace(QUICK, between=0.2)) as it:
        await it.watches()
        for number in range(20, 40):
            server.create(topology(f"n{number}"))
            await asyncio.sleep(0.004)
        await until(lambda: "n39" in it.copy.names, "all of them")


async def test_an_error_of_the_sink_ends_it(server: FakeApiServer) -> None:
    copy = Copy()
    copy.fail = RuntimeError("the database is full")
    async with Client(server.access, LIMITS) as client:
        running = asyncio.ensure_future(Reflector(client, NUMATOPOLOGIES, copy, QUICK).run())
        await until(lambda: server.watching == 1, "a watch")
        server.create(topology("e"))
        with pytest.raises(RuntimeError, match="the database is full"):
            await running
    await until(lambda: server.watching == 0, "an end of the watch")


async def test_the_next_page_comes_while_one_is_put_away(server: FakeApiServer) -> None:
    class Patient(Copy):
        async def page(self, objects: Any) -> None:
            await super().page(objects)
            if len(self.names) < 4:
                await until(lambda: "continue" in server.asked[-1].query, "a request for the next page")

    copy = Patient()
    async with Client(server.access, LIMITS) as client:
        running = asyncio.ensure_future(Reflector(client, NUMATOPOLOGIES, copy, QUICK).run())
        await until(lambda: copy.ended == 1, "a whole list")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert sorted(copy.names) == ["a", "b", "c", "d"]


async def test_it_stops_when_it_is_told_to(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
    await until(lambda: server.watching == 0, "an end of the watch")


# ---------------------------------------------------------------- connections that end


def on_the_watch(server: FakeApiServer, number: int) -> bool:
    return server.watches == number and server.watching == 1


async def test_it_goes_on_after_a_watch_that_ended_by_itself_without_a_list(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        for number, name in enumerate("efg", start=1):
            await until(partial(on_the_watch, server, number), "a watch")
            server.create(topology(name))
            server.end_watches()
        await it.shows(*"abcdefg")
    assert it.copy.begun == 1
    assert not it.copy.waits


@pytest.mark.parametrize(
    "piece", [b"", b'{"type":"ADDED","object":{"meta'], ids=["between", "inside an event"]
)
async def test_it_misses_nothing_when_the_connection_is_cut(server: FakeApiServer, piece: bytes) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.create(topology("e"))
        server.say(piece)
        await it.shows(*"abcde")
        server.cut()
        server.create(topology("f"))
        server.delete(topology("a"))
        await it.shows(*"bcdef")
    # Several pages were known, so nothing was listed again.
    assert it.copy.begun == 1
    assert it.copy.causes[0] == "Unreachable"


async def test_it_takes_half_an_event_before_the_end_for_a_cut(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.say(b'{"type":"DELETED","object":{"metadata":{"name":"a"')
        server.end_watches()
        await until(lambda: bool(it.copy.waits), "a wait")
        server.create(topology("e"))
        await it.shows(*"abcde")
    assert "in the middle of an event" in it.copy.waits[0].error
    assert it.reflector.malformed == 0


async def test_a_silent_connection_is_given_up_once_bookmarks_are_known_to_come(
    server: FakeApiServer,
) -> None:
    async with mirror(server, SUSPICIOUS) as it:
        await it.watches()
        server.hush()
        server.create(topology("e"))
        server.say(line("BOOKMARK", {"kind": "Numatopology", "metadata": {"resourceVersion": "1004"}}))
        await it.shows(*"abcde")
    assert it.copy.causes[0] == "Silent"
    assert it.copy.waits[0].remedy == "check-api-server-network"


async def test_what_gets_no_bookmarks_may_be_silent_until_the_end_that_was_asked_for(
    server: FakeApiServer,
) -> None:
    """Events are so on a real server, and custom resources that do not change."""
    async with mirror(server, SUSPICIOUS) as it:
        await it.watches()
        await asyncio.sleep(0.15)
        assert not it.copy.waits
    # But not for ever.
    pace = msgspec.structs.replace(SUSPICIOUS, watch=(1.0, 1.0), grace=-0.9)
    async with mirror(server, pace) as it:
        await until(lambda: it.copy.causes[:1] == ["Silent"], "suspicion")


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_loop(server: FakeApiServer) -> None:
    time = Time()
    pace = msgspec.structs.replace(QUICK, steady=30.0, backoff=(1.0, 60.0), spacing=5.0)
    async with mirror(server, pace, ticks=time, sleep=time.sleep, chance=lambda: 1.0) as it:
        for _ in range(9):
            server.next_watches.append(saying(b""))
        await until(lambda: len(it.copy.waits) == 9, "nine watches")
    assert time.slept[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert it.copy.begun == 1


# ---------------------------------------------------------------- 410


async def test_it_lists_again_after_410_and_clears_what_is_gone(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.hush()
        server.delete(topology("b"))
        server.create(topology("e"))
        server.expire()
        server.say(line("ERROR", status_object(410, "Expired", "too old resource version")))
        await it.shows(*"acde")
    assert it.copy.causes == ["Gone"]
    assert it.copy.begun == 2


async def test_it_lists_again_after_410_as_a_status(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.next_watches.append(refusing(410, "Gone"))
        server.end_watches()
        await until(lambda: it.copy.ended == 2, "a second list")
    assert it.copy.causes == ["Gone"]


async def test_a_list_that_takes_too_long_begins_anew(server: FakeApiServer) -> None:
    """Its pages are of a moment that the server forgot meanwhile."""

    class Slow(Copy):
        async def page(self, objects: Any) -> None:
            await super().page(objects)
            if self.begun == 1:
                server.delete(topology("a"))
                server.expire()

    copy = Slow()
    async with Client(server.access, LIMITS) as client:
        running = asyncio.ensure_future(Reflector(client, NUMATOPOLOGIES, copy, QUICK).run())
        await until(lambda: copy.ended == 1, "a whole list")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert sorted(copy.names) == ["b", "c", "d"]
    assert (copy.begun, copy.causes) == (2, ["Gone"])


async def test_a_server_that_always_says_410_does_not_get_a_storm_of_lists(server: FakeApiServer) -> None:
    """In ten rounds of failures it lists ten times and rests for minutes."""
    time = Time()
    pace = msgspec.structs.replace(QUICK, steady=30.0, backoff=(1.0, 60.0), spacing=5.0)
    gone = line("ERROR", status_object(410, "Expired", "too old"))
    server.next_watches.extend(saying(gone) for _ in range(100))
    async with mirror(server, pace, ticks=time, sleep=time.sleep, chance=lambda: 0.0) as it:
        await until(lambda: len(it.copy.waits) >= 10, "ten failures")
    assert server.lists("numatopologies") == it.reflector.lists_begun
    # Half of 1, 2, 4, ... but never sooner than the spacing after the list before.
    assert time.slept[:9] == [5.0, 5.0, 5.0, 5.0, 8.0, 16.0, 30.0, 30.0, 30.0]


async def test_the_next_list_waits_as_long_as_the_last_one_took(server: FakeApiServer) -> None:
    time = Time()

    class Slow(Copy):
        async def page(self, objects: Any) -> None:
            time.now += 40.0

    copy = Slow()
    server.next_watches.append(refusing(410, "Gone"))
    async with Client(server.access, LIMITS) as client:
        reflector = Reflector(client, NUMATOPOLOGIES, copy, QUICK, ticks=time, sleep=time.sleep)
        running = asyncio.ensure_future(reflector.run())
        await until(lambda: copy.ended == 2, "a second list")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert time.slept == [80.0]


async def test_it_lists_once_in_a_while_without_any_cause(server: FakeApiServer) -> None:
    """What a server never told is found then."""
    async with mirror(server, msgspec.structs.replace(QUICK, watch=(1.0, 1.0), relist=1.0)) as it:
        await it.watches()
        del server.objects["numatopologies.nodeinfo.volcano.sh", "b"]
        await until(lambda: it.copy.begun == 2, "a second list")
        await it.shows(*"acd")
    assert not it.copy.waits


# ---------------------------------------------------------------- another server


@pytest.mark.parametrize("page", [3, 500], ids=["several pages", "one page"])
async def test_it_notices_a_server_that_came_back_empty(server: FakeApiServer, page: int) -> None:
    async with mirror(server, msgspec.structs.replace(QUICK, page=page)) as it:
        await it.watches()
        server.restore()
        await it.shows()
        server.create(topology("z"))
        await it.shows("z")
    assert int(it.copy.names["z"]) < 10


async def test_it_notices_a_server_that_came_back_with_an_older_state(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        saved = server.backup()
        server.create(topology("e"))
        server.delete(topology("a"))
        await it.shows(*"bcde")
        server.restore(saved)
        await it.shows(*"abcd")


async def test_it_notices_versions_that_go_back_behind_a_connection_that_stays(server: FakeApiServer) -> None:
    """As behind a load balancer: the bookmarks tell."""
    async with mirror(server) as it:
        await it.watches()
        server.objects = {}
        server.version = server.oldest = 7
        bookmark = {"kind": "Numatopology", "metadata": {"resourceVersion": "7"}}
        server.say(line("BOOKMARK", bookmark))
        await it.shows()
    assert it.copy.causes == ["Gone"]
    assert "before 10" in it.copy.waits[0].error


async def test_a_bookmark_moves_the_place_to_go_on_from(server: FakeApiServer) -> None:
    """Else a quiet resource would be forgotten by the server and listed again and again."""
    async with mirror(server) as it:
        await it.watches()
        server.version = 5000
        server.say(line("BOOKMARK", {"kind": "Numatopology", "metadata": {"resourceVersion": "5000"}}))
        server.end_watches()
        await until(lambda: server.asked[-1].query.get("resourceVersion") == "5000", "a watch from there")
        await it.watches()
    assert it.copy.begun == 1


async def test_it_finds_a_server_again_that_was_away(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        await server.stop()
        await until(lambda: len(it.copy.waits) >= 3, "attempts")
        assert it.copy.waits[-1].remedy == "check-api-server-runs"
        assert sorted(it.copy.names) == list("abcd")
        server.delete(topology("a"))
        await server.start()
        await it.shows(*"bcd")
        server.create(topology("e"))
        await it.shows(*"bcde")


# ---------------------------------------------------------------- refusals


async def test_it_waits_as_long_as_a_busy_server_asks(server: FakeApiServer) -> None:
    time = Time()
    server.next_lists.append(refusing(429, "TooManyRequests", "too many requests", retry_after=17))
    server.next_lists.append(refusing(429, "TooManyRequests", "too many requests", retry_after=99_999_999))
    async with mirror(server, ticks=time, sleep=time.sleep) as it:
        await it.shows(*"abcd")
    assert time.slept == [17.0, 300.0]
    assert it.copy.causes == ["TooMany", "TooMany"]


async def test_it_says_which_right_is_missing_and_goes_on_once_it_is_there(server: FakeApiServer) -> None:
    copy = Copy()
    access = server.identity([])
    async with Client(access, LIMITS) as client:
        running = asyncio.ensure_future(Reflector(client, NODES, copy, QUICK).run())
        await until(lambda: bool(copy.waits), "a refusal")
        assert copy.waits[0].right == Right("list", "", "nodes")
        assert copy.waits[0].remedy == "grant-right"
        server._users[access.token] = ("now", None)
        await until(lambda: isinstance(copy.states[-1], Watching), "a watch")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_watch_without_the_right_to_it_is_no_loop(server: FakeApiServer) -> None:
    copy, time = Copy(), Time()
    pace = msgspec.structs.replace(QUICK, backoff=(1.0, 60.0), spacing=5.0)
    async with Client(server.identity([Right("list", "", "nodes")]), LIMITS) as client:
        reflector = Reflector(client, NODES, copy, pace, ticks=time, sleep=time.sleep, chance=lambda: 1.0)
        running = asyncio.ensure_future(reflector.run())
        await until(lambda: len(copy.waits) >= 6, "refusals")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert copy.waits[0].right == Right("watch", "", "nodes")
    assert time.slept[:6] == [5.0, 5.0, 5.0, 8.0, 16.0, 32.0]


async def test_a_resource_that_is_not_defined_is_no_failure(server: FakeApiServer) -> None:
    server.undefine("numatopologies")
    async with mirror(server) as it:
        await until(lambda: len(it.copy.states) >= 2, "rests")
        assert all(isinstance(each, Absent) for each in it.copy.states)
        assert it.copy.ended >= 1
        server.define("numatopologies")
        server.create(topology("e"))
        await it.shows("e")
        await it.watches()
        server.undefine("numatopologies")
        await it.shows()
        await until(lambda: isinstance(it.copy.states[-1], Absent), "its absence")


async def test_a_web_server_that_knows_nothing_does_not_pass_for_an_empty_cluster(
    server: FakeApiServer,
) -> None:
    """A path that no longer leads to the API server is 404 too."""
    async with mirror(server) as it:
        await it.watches()
        server.always = saying(b"<h1>Not found</h1>", 404)
        server.cut()
        await until(lambda: len(it.copy.waits) >= 3, "attempts")
        assert it.copy.waits[-1].remedy == "check-api-server-address"
        assert sorted(it.copy.names) == list("abcd")
        server.always = None
        await until(lambda: it.copy.ended == 2, "a list")


async def test_another_error_during_a_watch_costs_no_list(server: FakeApiServer) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.say(line("ERROR", status_object(500, "InternalError", "unable to decode an event")))
        await until(lambda: server.watches == 2, "another watch")
        server.create(topology("e"))
        await it.shows(*"abcde")
    assert (it.copy.begun, it.copy.causes) == (1, ["ApiError"])
    assert it.copy.waits[0].error == "unable to decode an event"


# ---------------------------------------------------------------- garbage

EVENT = {"type": "ADDED", "object": {"metadata": {"name": "x"}}}


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>502 Bad Gateway</html>\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"SURPRISE","object":{}}\n',
        b'{"type":"BOOKMARK","object":{}}\n',
        b'{"type":"ERROR","object":{"code":410}}\n',
        json.dumps(EVENT).encode() + b"\n",
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
    ],
)
async def test_what_is_no_event_leads_to_a_list(server: FakeApiServer, garbage: bytes) -> None:
    async with mirror(server) as it:
        await it.watches()
        server.say(garbage)
        await until(lambda: it.copy.ended == 2, "a second list")
        await it.watches()
        server.create(topology("e"))
        await it.shows(*"abcde")
    assert it.copy.causes == ["Garbled"]
    assert it.reflector.malformed == 1


async def test_an_event_beyond_the_limit_is_not_collected(server: FakeApiServer) -> None:
    async with mirror(server, msgspec.structs.replace(QUICK, line=10_000)) as it:
        await it.watches()
        for _ in range(20):
            server.say(b" " * 1000)
        await until(lambda: it.copy.causes == ["Garbled"], "an end")
    assert "longer than 10000 bytes" in it.copy.waits[0].error


async def test_an_object_of_another_form_hides_no_other_and_is_counted(server: FakeApiServer) -> None:
    server.create(topology("odd", cpuDetail={"0": {"numa": "zero"}}))
    async with mirror(server) as it:
        await it.shows(*"abcd")
        await it.watches()
        server.create(topology("e"))
        await it.shows(*"abcde")
    watching = it.copy.states[-1]
    assert isinstance(watching, Watching)
    assert watching.unreadable == 1
    assert watching.example.startswith("odd: ")
    assert "`int`" in watching.example


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (saying(b'{"metadata":{"resourceVersion":"5"}}'), "Garbled"),
        (saying(b'{"items":[]}'), "Garbled"),
        (saying(b'{"metadata":{"resourceVersion":""},"items":[]}'), "Garbled"),
        (saying(b"<html>"), "Garbled"),
        (saying(b" " * 300_000), "TooLarge"),
        (saying(b"", 302, Location="http://127.0.0.1:1/"), "Garbled"),
        (saying(b"", 204), "Garbled"),
        (breaking_off(b'{"metadata":{"resourceVersion":"5"},"items":[]'), "Unreachable"),
        (refusing(500, "InternalError", "etcdserver: leader changed"), "ApiError"),
        (refusing(503, "ServiceUnavailable"), "ApiError"),
    ],
    ids=[
        "no items",
        "no version",
        "empty version",
        "html",
        "too large",
        "redirect",
        "empty answer",
        "cut",
        "500",
        "503",
    ],
)
async def test_an_answer_that_is_no_list_changes_nothing(
    server: FakeApiServer, answer: Any, cause: str
) -> None:
    """Above all it is no empty cluster."""
    async with mirror(server) as it:
        await it.shows(*"abcd")
        await it.watches()
        server.next_lists.extend([answer, answer])
        server.say(line("ERROR", status_object(410, "Expired", "too old")))
        await until(lambda: len(it.copy.waits) >= 3, "attempts")
        assert sorted(it.copy.names) == list("abcd")
        await until(lambda: it.copy.ended == 2, "a whole list")
    assert it.copy.causes == ["Gone", cause, cause]
    assert all(each.error for each in it.copy.waits)


async def test_a_server_that_does_not_answer_is_not_waited_for(server: FakeApiServer) -> None:
    server.next_lists.append(stuck)
    async with mirror(server, limits=Limits(answer=0.3)) as it:
        await until(lambda: bool(it.copy.waits), "an end of patience")
        await it.shows(*"abcd")
    first = it.copy.waits[0]
    assert (first.cause, first.remedy) == ("Unreachable", "check-api-server-network")
    assert first.error == "no answer within 0.3 s"
