"""One line for each request that was answered, with its decision: gathered, and written together by a thread.

The standard library's logging costs a tenth of what a report does. Here the event loop only keeps what it has at hand;
lines are made and written several times a second, in pieces that a pipe takes whole (POSIX: `PIPE_BUF`), so that the
lines of several processes don't mix. Where nobody reads them, lines are lost and counted, and no request waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, TypeAlias

import msgspec

from app.telemetry.logs import SPAN_DIGITS, TRACE_DIGITS, Trace, began, escaped, stamp

FLUSH_SECONDS = 0.2
MOST_LINES = 20_000
PIECE_BYTES = 4096
MOST_CALLERS = 4096
LOGGER = "steward.requests"
DIGITS = TRACE_DIGITS + SPAN_DIGITS

Answered: TypeAlias = tuple[float, float, str, str, int, str, str, bytes, "Trace | bytes", bytes]
"""What is at hand when a request was answered, a plain tuple, as one is made each time: when (seconds since 1970),
after how many seconds, method, route, status, tenant, caller, what its caller calls it, its span (or the header to
begin one from, as it came), and the JSON of the decision that it was answered with (empty: none)."""

_encode = msgspec.json.Encoder().encode


class _Reason(msgspec.Struct, omit_defaults=True, gc=False):
    code: Any = None


class _Decision(msgspec.Struct, omit_defaults=True, gc=False):
    """What a line tells of a decision of any kind."""

    run: Any = None
    workload: Any = None
    iteration: Any = None
    source: Any = None
    agent: Any = None
    policy: Any = None
    reason: _Reason | None = None


_decision = msgspec.json.Decoder(_Decision).decode


class RequestLog:
    """The lines of one process; lives on one event loop.

    Args:
        json: whether lines are JSON objects, or for people.
        stream: where they go; None for standard error.
    """

    def __init__(self, *, json: bool, stream: BinaryIO | None = None) -> None:
        self._shown: Callable[[bytes], bytes] = bytes if json else _for_people
        self._stream = stream
        self._waiting: list[Answered] = []
        self._writing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lost = 0

    def add(self, answered: Answered) -> None:
        """Tell of one request, soon."""
        if len(self._waiting) >= MOST_LINES:
            self._lost += 1
            return
        self._waiting.append(answered)
        if len(self._waiting) == 1:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._writing is not None and not self._writing.done():  # whoever reads is slow
            self._timer = loop.call_later(FLUSH_SECONDS, self._flush)
            return
        self._writing = loop.run_in_executor(None, self._write, *self._take())

    def _take(self) -> tuple[list[Answered], int]:
        taken = self._waiting, self._lost
        self._waiting, self._lost = [], 0
        return taken

    async def close(self) -> None:
        """Stop the timer, and write all lines that wait."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        self._write(*self._take())

    def _write(self, answered: Sequence[Answered], lost: int) -> None:
        stream = self._stream or _standard_error()
        try:
            for piece in pieces(map(self._shown, _lines(answered, lost))):
                stream.write(piece)
                stream.flush()
        except OSError:  # whoever read is gone, or the disk is full: no request may fail for it
            self._lost += lost + len(answered)


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


def _lines(answered: Sequence[Answered], lost: int) -> Iterator[bytes]:
    """A line each, as JSON; the last one tells how many were lost after it."""
    digits = os.urandom(len(answered) * DIGITS // 2).hex()  # all new ids at once
    for number, one in enumerate(answered):
        line = _line(one, digits[number * DIGITS : (number + 1) * DIGITS])
        yield line[:-1] + b',"lost":%d}' % lost if lost and number == len(answered) - 1 else line


def _line(one: Answered, digits: str) -> bytes:
    ended, seconds, method, route, status, tenant, caller, request_id, trace, decision = one
    if trace == b"":
        trace_id, span_id = digits[:TRACE_DIGITS], digits[TRACE_DIGITS:]
    else:
        trace_id, span_id, *_ = began(trace.decode("latin-1")) if isinstance(trace, bytes) else trace
    named = b',"request_id":"%b"' % request_id if request_id else b""
    told = _told(decision) if decision else b""
    begin, second = _begin(method, route, status, tenant, caller), int(ended)
    ids = f'","trace_id":"{trace_id}","span_id":"{span_id}"'.encode()
    return b'{"time":"%b.%03dZ%b%b%b,"seconds":%.6f%b}' % (
        _until_seconds(second),
        (ended - second) * 1000,
        ids,
        named,
        begin,
        seconds,
        told,
    )


@lru_cache(maxsize=4)
def _until_seconds(second: int) -> bytes:
    return stamp(second).partition(".")[0].encode()


@lru_cache(maxsize=MOST_CALLERS)
def _begin(method: str, route: str, status: int, tenant: str, caller: str) -> bytes:
    """What many lines have in common."""
    message = escaped(f"{method} {route} {status}")
    line = {"level": "info", "logger": LOGGER, "message": message, "method": escaped(method), "route": route}
    return b"," + _encode({**line, "status": status, "tenant": tenant, "caller": escaped(caller)})[1:-1]


def _told(decision: bytes) -> bytes:
    try:
        told = _encode(_decision(decision))[1:-1]
    except msgspec.MsgspecError:  # a kind whose decision is no object: its line tells of the request alone
        return b""
    return b"," + told if told else b""


def _for_people(line: bytes) -> bytes:
    told: dict[str, Any] = msgspec.json.decode(line)
    when, message = told.pop("time").replace("T", " ").replace(".", ",")[:-1], told.pop("message")
    for name in ("level", "logger", "method", "route", "status"):
        told.pop(name)
    reason = told.pop("reason", {}).get("code", "")
    rest = " ".join(f"{name}={value}" for name, value in (told | {"reason": reason}).items() if value != "")
    return escaped(f"{when} INFO {LOGGER}: {message} {rest}").encode()
