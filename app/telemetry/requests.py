"""One line for each request that was answered, with its decision: gathered, and written together by a thread.

The standard library's logging costs a tenth of what a report does. Here the event loop only keeps what it has at hand;
lines are made and written several times a second, in pieces that a pipe takes whole (POSIX: `PIPE_BUF`), so that the
lines of several processes don't mix. Where nobody reads them, lines are lost and counted, and no request waits.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

import msgspec

from app.telemetry.logs import escaped
from app.telemetry.trace import Trace

FLUSH_SECONDS = 0.2
MOST_LINES = 20_000
PIECE_BYTES = 4096
LOGGER = "steward.requests"


class Answered(NamedTuple):
    """What is at hand when a request was answered; ``decision`` is the JSON that it was answered with, if it was."""

    ended: float
    seconds: float
    method: str
    route: str
    status: int
    tenant: str
    caller: str
    request_id: str
    trace: Trace
    decision: bytes


class _Reason(msgspec.Struct):
    code: Any = None


class _Decision(msgspec.Struct):
    """What a line tells of a decision of any kind."""

    run: Any = None
    workload: Any = None
    iteration: Any = None
    source: Any = None
    agent: Any = None
    policy: Any = None
    reason: _Reason | None = None


class _Line(msgspec.Struct, omit_defaults=True):
    """A line, in the order of its fields."""

    time: datetime
    level: str
    logger: str
    message: str
    method: str
    route: str
    status: int
    seconds: float
    tenant: str
    caller: str
    request_id: str
    trace_id: str
    span_id: str
    run: Any = None
    workload: Any = None
    iteration: Any = None
    source: Any = None
    agent: Any = None
    policy: Any = None
    reason: Any = None
    lost: int = 0


_decision = msgspec.json.Decoder(_Decision)
_encode = msgspec.json.Encoder().encode
_NOTHING = _Decision()


class RequestLog:
    """The lines of one process; lives on one event loop.

    Args:
        json: whether lines are JSON objects, or for people.
        stream: where they go; None for standard error.
    """

    def __init__(self, *, json: bool, stream: BinaryIO | None = None) -> None:
        self._render: Callable[[_Line], bytes] = _encode if json else _text
        self._stream = stream
        self._waiting: list[Answered] = []
        self._writing: asyncio.Future[None] | None = None
        self._lost = 0

    def add(self, answered: Answered) -> None:
        """Tell of one request, soon."""
        if len(self._waiting) >= MOST_LINES:
            self._lost += 1
            return
        self._waiting.append(answered)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._writing is not None and not self._writing.done():  # whoever reads is slow
            loop.call_later(FLUSH_SECONDS, self._flush)
            return
        lines, lost = self._take()
        self._writing = loop.run_in_executor(None, self._write, lines, lost)

    def _take(self) -> tuple[list[Answered], int]:
        taken = self._waiting, self._lost
        self._waiting, self._lost = [], 0
        return taken

    async def close(self) -> None:
        """Write what waits."""
        if self._writing is not None:
            await self._writing
        self._write(*self._take())

    def _write(self, answered: Sequence[Answered], lost: int) -> None:
        stream = self._stream or _standard_error()
        for piece in pieces(self._render(line) for line in _lines(answered, lost)):
            stream.write(piece)
            stream.flush()


def _standard_error() -> BinaryIO:
    return sys.stderr.buffer


def pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, as many together as a pipe takes whole."""
    gathered, size = list[bytes](), 0
    for line in lines:
        if gathered and size + len(line) + 1 > PIECE_BYTES:
            yield b"\n".join((*gathered, b""))
            gathered, size = [], 0
        gathered.append(line)
        size += len(line) + 1
    if gathered:
        yield b"\n".join((*gathered, b""))


def _lines(answered: Sequence[Answered], lost: int) -> Iterator[_Line]:
    """A line each; the last one tells how many were lost after it."""
    for number, one in enumerate(answered, 1):
        yield _line(one, lost if number == len(answered) else 0)


def _line(one: Answered, lost: int) -> _Line:
    decision = _read(one.decision) if one.decision else _NOTHING
    return _Line(
        datetime.fromtimestamp(one.ended, UTC),
        "info",
        LOGGER,
        f"{one.method} {one.route} {one.status}",
        one.method,
        one.route,
        one.status,
        round(one.seconds, 6),
        one.tenant,
        one.caller if one.caller.isascii() else escaped(one.caller),
        one.request_id,
        one.trace.trace_id,
        one.trace.span_id,
        decision.run,
        decision.workload,
        decision.iteration,
        decision.source,
        decision.agent,
        decision.policy,
        None if decision.reason is None else decision.reason.code,
        lost,
    )


def _read(decision: bytes) -> _Decision:
    try:
        return _decision.decode(decision)
    except msgspec.MsgspecError:  # a kind whose decision is no object: its line tells of the request alone
        return _NOTHING


def _text(line: _Line) -> bytes:
    begin = f"{line.time:%Y-%m-%d %H:%M:%S},{line.time.microsecond // 1000:03d} INFO {LOGGER}: {line.message}"
    names = line.__struct_fields__[line.__struct_fields__.index("seconds") :]
    told = " ".join(f"{name}={value}" for name in names if (value := getattr(line, name)) not in (None, "", 0))
    return escaped(f"{begin} {told}").encode()
