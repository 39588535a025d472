"""Request log: one line per answered request with its decision, collected and written by a thread.

The standard library's logging would cost a tenth of a report's time. The event loop only stores values; lines are
formatted and written five times a second, in pieces that a pipe writes atomically (POSIX: `PIPE_BUF`), so that lines of
several processes don't mix. If the reader is too slow, lines are dropped and counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, TypeAlias

import msgspec

from app.telemetry.logs import SPAN_DIGITS, TRACE_DIGITS, Trace, began, escape, stamp

FLUSH_SECONDS = 0.2
MOST_LINES = 20_000
PIECE_BYTES = 4096
MOST_CALLERS = 4096
LOGGER = "steward.requests"
DIGITS = TRACE_DIGITS + SPAN_DIGITS

Answered: TypeAlias = tuple[float, float, str, str, int, str, str, bytes, "Trace | bytes", bytes]
"""Values of an answered request, a plain tuple for speed: end (POSIX seconds), duration in seconds, method, route,
status, tenant, caller, request id, span (or `traceparent` header), and the decision's JSON (empty: none).
"""

_encode = msgspec.json.Encoder().encode


class _Reason(msgspec.Struct, omit_defaults=True, gc=False):
    code: Any = None


class _Decision(msgspec.Struct, omit_defaults=True, gc=False):
    """Members of a decision that are logged."""

    run: Any = None
    workload: Any = None
    iteration: Any = None
    source: Any = None
    agent: Any = None
    policy: Any = None
    reason: _Reason | None = None


_decision = msgspec.json.Decoder(_Decision).decode


class RequestLog:
    """Request log of one process; bound to one event loop.

    Args:
        json: True: lines are JSON objects; False: text.
        stream: file to which lines are written; None: standard error.
    """

    def __init__(self, *, json: bool, stream: BinaryIO | None = None) -> None:
        self._shown: Callable[[bytes], bytes] = bytes if json else _for_people
        self._stream = stream
        self._waiting: list[Answered] = []
        self._writing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lost = 0

    def add(self, answered: Answered) -> None:
        """Log one request; its line is written within 0.2 s, or dropped and counted if 20,000 lines wait."""
        if len(self._waiting) >= MOST_LINES:
            self._lost += 1
            return
        self._waiting.append(answered)
        if len(self._waiting) == 1:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._writing is not None and not self._writing.done():  # the reader is slow
            self._timer = loop.call_later(FLUSH_SECONDS, self._flush)
            return
        self._writing = loop.run_in_executor(None, self._write, *self._take())

    def _take(self) -> tuple[list[Answered], int]:
        taken = self._waiting, self._lost
        self._waiting, self._lost = [], 0
        return taken

    async def close(self) -> None:
        """Write all waiting lines and stop the timer."""
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
        except OSError:  # the reader is gone, or the disk is full: no request may fail
            self._lost += lost + len(answered)


def _standard_error() -> BinaryIO:
    return sys.stderr.buffer


def pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines joined into pieces of at most 4,096 bytes; longer lines are pieces of their own."""
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
    """One JSON line per request; the last one contains the number of dropped lines."""
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
    decision_part = _decision_members(decision) if decision else b""
    begin, second = _begin(method, route, status, tenant, caller), int(ended)
    ids = f'","trace_id":"{trace_id}","span_id":"{span_id}"'.encode()
    return b'{"time":"%b.%03dZ%b%b%b,"seconds":%.6f%b}' % (
        _until_seconds(second),
        (ended - second) * 1000,
        ids,
        named,
        begin,
        seconds,
        decision_part,
    )


@lru_cache(maxsize=4)
def _until_seconds(second: int) -> bytes:
    return stamp(second).partition(".")[0].encode()


@lru_cache(maxsize=MOST_CALLERS)
def _begin(method: str, route: str, status: int, tenant: str, caller: str) -> bytes:
    """The beginning of a line, which many requests share; cached."""
    message = escape(f"{method} {route} {status}")
    line = {"level": "info", "logger": LOGGER, "message": message, "method": escape(method), "route": route}
    return b"," + _encode({**line, "status": status, "tenant": tenant, "caller": escape(caller)})[1:-1]


def _decision_members(decision: bytes) -> bytes:
    try:
        decision_part = _encode(_decision(decision))[1:-1]
    except msgspec.MsgspecError:  # a kind whose decision is no object: only the request is logged
        return b""
    return b"," + decision_part if decision_part else b""


def _for_people(line: bytes) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(line)
    when, message = fields.pop("time").replace("T", " ").replace(".", ",")[:-1], fields.pop("message")
    for name in ("level", "logger", "method", "route", "status"):
        fields.pop(name)
    reason = fields.pop("reason", {}).get("code", "")
    rest = " ".join(f"{name}={value}" for name, value in (fields | {"reason": reason}).items() if value != "")
    return escape(f"{when} INFO {LOGGER}: {message} {rest}").encode()
