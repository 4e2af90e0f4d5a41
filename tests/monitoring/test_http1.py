"""The small HTTP client takes what an exporter may answer, in pieces of any size, and refuses the rest."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import Answer, Budget, Connection, unpacked

LIMIT = 1000
HEAD = b"HTTP/1.1 200 OK\r\n"


class Wire:
    """A transport that only notes."""

    def __init__(self) -> None:
        self.written = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True


class Talk:
    """One connection and what it said."""

    def __init__(self, budget: int = 10**6) -> None:
        self.budget = Budget(budget)
        self.connection = Connection(LIMIT, self.budget)
        self.wire = Wire()
        self.connection.connection_made(self.wire)  # type: ignore[arg-type]
        self.answers: list[Answer] = []
        self.errors: list[SourceError] = []

    def ask(self) -> "Talk":
        self.connection.ask(b"GET / HTTP/1.1\r\n\r\n", self.done)
        return self

    def done(self, answer: Answer | None, error: SourceError | None) -> None:
        assert (answer is None) != (error is None)
        if answer is not None:
            self.answers.append(answer)
        if error is not None:
            self.errors.append(error)

    def hear(self, data: bytes, size: int = 10**9) -> "Talk":
        for i in range(0, len(data), size):
            self.connection.data_received(data[i : i + size])
        return self


def sized(body: bytes, extra: bytes = b"") -> bytes:
    return HEAD + b"Content-Length: %d\r\n" % len(body) + extra + b"\r\n" + body


def chunked(*parts: bytes) -> bytes:
    packed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + packed + b"0\r\n\r\n"


@given(st.binary(max_size=LIMIT), st.integers(1, 50))
def test_it_takes_a_body_of_a_told_length_in_any_pieces(body: bytes, size: int) -> None:
    talk = Talk().ask().hear(sized(body), size)
    assert [answer.body for answer in talk.answers] == [body]
    assert talk.connection.idle


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(1, 50))
def test_it_takes_chunks_in_any_pieces(parts: list[bytes], size: int) -> None:
    talk = Talk().ask().hear(chunked(*parts), size)
    assert [answer.body for answer in talk.answers] == [b"".join(parts)]


@given(st.binary(max_size=3000), st.integers(1, 500))
def test_it_never_breaks_on_rubbish(rubbish: bytes, size: int) -> None:
    talk = Talk().ask().hear(rubbish, size)
    talk.connection.connection_lost(None)
    assert len(talk.answers) + len(talk.errors) == 1
    assert talk.budget.left == 10**6


def test_it_asks_again_on_the_same_connection() -> None:
    talk = Talk().ask().hear(sized(b"one")).ask().hear(sized(b"two"))
    assert [answer.body for answer in talk.answers] == [b"one", b"two"]
    assert talk.connection.used == 2


def test_it_takes_a_body_that_ends_with_the_connection() -> None:
    talk = Talk().ask().hear(HEAD + b"\r\nall of it")
    talk.connection.connection_lost(None)
    assert [answer.body for answer in talk.answers] == [b"all of it"]


def test_it_skips_an_interim_answer() -> None:
    talk = Talk().ask().hear(b"HTTP/1.1 100 Continue\r\n\r\n" + sized(b"then"))
    assert talk.answers[0].body == b"then"


def test_it_closes_where_the_server_wants_it() -> None:
    talk = Talk().ask().hear(sized(b"bye", b"Connection: close\r\n"))
    assert talk.answers[0].body == b"bye"
    assert talk.wire.aborted
    assert not talk.connection.idle


def test_it_unpacks_what_is_packed() -> None:
    body = gzip.compress(b"a" * 500)
    talk = Talk().ask().hear(sized(body, b"Content-Encoding: gzip\r\n"))
    assert talk.answers[0].body == b"a" * 500


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (HEAD + b"Content-Length: 1001\r\n\r\n", "1001 bytes"),
        (HEAD + b"Content-Length: -1\r\n\r\n", "no number"),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", "no number"),
        (HEAD + b"\r\n" + b"x" * 1001, "more than 1000"),
        (chunked(b"x" * 600, b"x" * 600), "more than 1000"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 400, "small pieces"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no number"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, "no length"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "longer than it says"),
        (sized(b"short") + b"and more", "more came"),
        (HEAD + b"X: " + b"y" * 20000, "headers"),
        (HEAD + b"no colon here\r\n\r\n", "colon"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not speak HTTP"),
        (sized(gzip.compress(b"a" * 5000, mtime=0), b"Content-Encoding: gzip\r\n"), "unpacks to more"),
        (sized(gzip.compress(b"a" * 500, mtime=0)[:20], b"Content-Encoding: gzip\r\n"), "cut off"),
        (sized(b"not packed", b"Content-Encoding: gzip\r\n"), "cannot be unpacked"),
        (sized(b"??", b"Content-Encoding: br\r\n"), "packed in a way"),
    ],
)
def test_it_refuses(raw: bytes, cause: str) -> None:
    talk = Talk().ask().hear(raw, 700)
    assert [str(error) for error in talk.errors] == [str(talk.errors[0])]
    assert cause in str(talk.errors[0])
    assert talk.wire.aborted
    assert talk.budget.left == 10**6


def test_it_tells_whether_anything_came_before_the_end() -> None:
    talk = Talk().ask()
    talk.connection.connection_lost(None)
    assert talk.connection.untouched
    assert "before it answered" in str(talk.errors[0])
    broken = Talk().ask().hear(sized(b"whole")[:-2])
    broken.connection.connection_lost(OSError("reset"))
    assert "broke off" in str(broken.errors[0])
    assert broken.budget.left == 10**6


def test_it_holds_no_more_of_all_answers_together_than_allowed() -> None:
    budget = 1500
    first, second = Talk(budget), Talk()
    second.connection._budget = first.budget
    first.ask().hear(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 900)
    second.ask().hear(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 900)
    assert "all exporters together" in str(second.errors[0])
    assert first.budget.left == 600
    first.hear(b"x" * 100)
    assert len(first.answers) == 1
    assert first.budget.left == budget


def test_it_hangs_up_on_an_answer_that_nobody_asked_for() -> None:
    talk = Talk().hear(sized(b"hello"))
    assert talk.wire.aborted
    assert talk.answers == []


def test_it_unpacks_plain_deflate_too() -> None:
    assert unpacked(zlib.compress(b"abc"), 10) == b"abc"
