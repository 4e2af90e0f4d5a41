"""A small HTTP/1.1 client: one kept-alive connection to one server, one question at a time, everything bounded.

It exists because of numbers: per question it takes about a sixth of the CPU time of a general client, and a collector
asks thousands of exporters every second. It knows what an exporter may answer and refuses the rest.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from monitoring.sources import failures
from monitoring.sources.failures import SourceError

HEAD_BYTES = 16 * 1024
CHUNK_LINE = 1024


class Answer(msgspec.Struct, frozen=True):
    """`body` is unpacked. `keep`: the connection may be used again."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    keep: bool


class Done(Protocol):
    """Called once for each question, with an answer or with the reason why there is none."""

    def __call__(self, answer: Answer | None, error: SourceError | None) -> None: ...


class Budget:
    """Bytes that all connections of a collector may hold of unfinished answers together."""

    def __init__(self, most: int) -> None:
        self.left = most


class Connection(asyncio.Protocol):
    """`ask` sends one question; `done` hears of it. Closed after any failure: what comes then is not what was asked."""

    __slots__ = (
        "_body",
        "_budget",
        "_done",
        "_head",
        "_headers",
        "_held",
        "_input",
        "_left",
        "_limit",
        "_mode",
        "_overhead",
        "_size",
        "_started",
        "_status",
        "closed",
        "transport",
        "used",
    )

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit, self._budget = limit, budget
        self._done: Done | None = None
        self.transport: Any = None
        self.closed = False
        self.used = 0
        """Questions asked so far."""
        self._started = False
        self._reset()

    def _reset(self) -> None:
        self._input = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._mode: Callable[[], bool] = self._read_head
        self._size = self._status = self._left = self._held = self._overhead = 0

    # The transport's side ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._done is None:
            return
        if self._mode == self._read_to_end and exc is None:
            self._finish(keep=False)
            return
        early, late = (
            "the exporter closed the connection before it answered",
            "the exporter broke off its answer",
        )
        self._fail(failures.UNREACHABLE, late if self._started else early)

    def data_received(self, data: bytes) -> None:
        if self._done is None:
            self.close()  # an answer that nobody asked for
            return
        self._started = True
        self._input = self._input + data if self._input else data
        try:
            while self._mode():
                pass
        except SourceError as error:
            self._fail(error.remedy, str(error))

    def eof_received(self) -> bool:
        return False

    # The asker's side ----------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a question may be asked."""
        return not self.closed and self._done is None

    @property
    def untouched(self) -> bool:
        """Whether not one byte of the answer came: the server may have closed the kept connection just before."""
        return not self._started

    def ask(self, question: bytes, done: Done) -> None:
        """Sends a question. Only while `idle`."""
        self._done = done
        self._started = False
        self._reset()
        self.used += 1
        self.transport.write(question)

    def give_up(self, remedy: str, cause: str) -> None:
        """Ends the question that is asked, for instance because it took too long."""
        if self._done is not None:
            self._fail(remedy, cause)

    def close(self) -> None:
        """Ends the connection at once; nobody hears of it."""
        self._done = None
        self._release()
        self.closed = True
        if self.transport is not None:
            self.transport.abort()

    # Reading -------------------------------------------------------------------------------------------------

    def _read_head(self) -> bool:
        end = self._input.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES:
            if len(self._input) > HEAD_BYTES:
                raise SourceError(failures.NOT_AN_EXPORTER, "the answer's headers are larger than 16 KiB")
            return False
        head, self._input = self._input[:end], self._input[end + 4 :]
        self._parse_head(head)
        if self._status >= 200:
            self._mode = self._choose_body()
        return True

    def _parse_head(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        if not first.startswith(b"HTTP/1.") or not first[9:12].isdigit():
            raise SourceError(failures.NOT_AN_EXPORTER, "what answers there does not speak HTTP/1.1")
        self._status = int(first[9:12])
        self._headers = {}
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise SourceError(failures.NOT_AN_EXPORTER, "the answer has a header line without a colon")
            self._headers[name.strip().lower()] = value.strip()

    def _choose_body(self) -> Callable[[], bool]:
        if self._status in (204, 304):
            return self._read_sized
        if self._headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            return self._read_chunk_line
        length = self._headers.get(b"content-length")
        if length is None:
            return self._read_to_end
        if not length.isdigit() or len(length) > 15:
            raise SourceError(failures.NOT_AN_EXPORTER, "the answer's length is no number")
        self._left = int(length)
        if self._left > self._limit:
            raise SourceError(
                failures.TOO_LARGE, f"the answer has {self._left} bytes, more than {self._limit}"
            )
        return self._read_sized

    def _read_sized(self) -> bool:
        piece = self._input[: self._left]
        self._input = self._input[len(piece) :]
        self._left -= len(piece)
        self._keep(piece)
        if self._left:
            return False
        if self._input:
            raise SourceError(failures.NOT_AN_EXPORTER, "more came than the answer's length says")
        self._finish(keep=self._headers.get(b"connection", b"").lower() != b"close")
        return False

    def _read_to_end(self) -> bool:
        self._keep(self._input)
        self._input = b""
        return False

    def _read_chunk_line(self) -> bool:
        end = self._input.find(b"\r\n")
        if end < 0:
            if len(self._input) > CHUNK_LINE:
                raise SourceError(failures.NOT_AN_EXPORTER, "a chunk of the answer has no length")
            return False
        text = self._input[:end].partition(b";")[0].strip()
        self._input = self._input[end + 2 :]
        self._overhead += end + 2
        if self._overhead > self._limit:
            raise SourceError(failures.TOO_LARGE, "the answer comes in too many small pieces")
        try:
            self._left = int(text, 16) if len(text) <= 8 else -1
        except ValueError:
            self._left = -1
        if self._left < 0:
            raise SourceError(failures.NOT_AN_EXPORTER, "a chunk's length is no number")
        self._mode = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        piece = self._input[: self._left]
        self._input = self._input[len(piece) :]
        self._left -= len(piece)
        self._keep(piece)
        if self._left or len(self._input) < 2:
            return False
        if self._input[:2] != b"\r\n":
            raise SourceError(failures.NOT_AN_EXPORTER, "a chunk is longer than it says")
        self._input = self._input[2:]
        self._mode = self._read_chunk_line
        return True

    def _read_trailer(self) -> bool:
        end = self._input.find(b"\r\n")
        if end < 0:
            return False
        line, self._input = self._input[:end], self._input[end + 2 :]
        if line:
            self._size += len(line)
            self._check_size()
            return True
        self._finish(keep=self._headers.get(b"connection", b"").lower() != b"close")
        return False

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        self._check_size()
        self._body.append(piece)
        self._held += len(piece)
        self._budget.left -= len(piece)
        if self._budget.left < 0:
            raise SourceError(failures.TOO_LARGE, "too much unfinished data of all exporters together")

    def _check_size(self) -> None:
        if self._size > self._limit:
            raise SourceError(failures.TOO_LARGE, f"the answer has more than {self._limit} bytes")

    # Ends ----------------------------------------------------------------------------------------------------

    def _finish(self, keep: bool) -> None:
        body = self._unpacked(b"".join(self._body))
        answer = Answer(self._status, self._headers, body, keep)
        done, self._done = self._done, None
        self._release()
        if not keep:
            self.close()
        if done is not None:
            done(answer, None)

    def _unpacked(self, body: bytes) -> bytes:
        packed = self._headers.get(b"content-encoding", b"identity").lower()
        if packed == b"identity":
            return body
        if packed not in (b"gzip", b"x-gzip", b"deflate"):
            raise SourceError(
                failures.NOT_AN_EXPORTER, "the answer is packed in a way that was not asked for"
            )
        return unpacked(body, self._limit)

    def _fail(self, remedy: str, cause: str) -> None:
        done = self._done
        self.close()
        if done is not None:
            done(None, SourceError(remedy, cause))

    def _release(self) -> None:
        self._budget.left += self._held
        self._held = 0
        self._body = []
        self._input = b""


def unpacked(body: bytes, limit: int) -> bytes:
    """Inflates at most `limit` bytes. Raises SourceError."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise SourceError(failures.GARBLED, "the answer cannot be unpacked") from error
    if len(plain) > limit:
        raise SourceError(failures.TOO_LARGE, f"the answer unpacks to more than {limit} bytes")
    if not inflater.eof:
        raise SourceError(failures.GARBLED, "the packed answer is cut off")
    return plain
