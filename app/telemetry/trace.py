"""Ids that join what is done for one caller, over API, queue and workers: W3C Trace Context (Recommendation, 2021)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

TRACE_DIGITS, SPAN_DIGITS = 32, 16

_TRACEPARENT = re.compile(r"(00|(?!ff)[0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


class Trace(NamedTuple):
    """One span of work.

    Attributes:
        trace_id: of all that is done for one caller, 32 hexadecimal digits.
        span_id: of this piece of it, 16 digits.
        parent_id: of the piece that asked for it; empty where it is the first.
        sampled: whether its caller wants it to be recorded.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """As it is passed on."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


class Context(NamedTuple):
    """For what this thread or task works: the ids that its log lines bear."""

    trace: Trace
    job: str = ""


_current: ContextVar[Context | None] = ContextVar("telemetry_context", default=None)


def current() -> Context | None:
    """For what this thread or task works; None for itself."""
    return _current.get()


def current_traceparent() -> str | None:
    """What a job that is made now is to go on from."""
    context = _current.get()
    return None if context is None else context.trace.traceparent


@contextmanager
def working(trace: Trace, job: str = "") -> Iterator[None]:
    """Work for somebody: log lines bear the ids."""
    token = _current.set(Context(trace, job))
    try:
        yield
    finally:
        _current.reset(token)


def began(traceparent: str | None) -> Trace:
    """A new span: of the trace that ``traceparent`` names, or of a new one where it names none.

    What is malformed is as if it were not there, as the Recommendation has it.
    """
    digits = os.urandom((TRACE_DIGITS + SPAN_DIGITS) // 2).hex()
    span_id = digits[TRACE_DIGITS:]
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if found is None or (found[1] == "00" and found[5]) or not (found[2].strip("0") and found[3].strip("0")):
        return Trace(digits[:TRACE_DIGITS], span_id)
    return Trace(found[2], span_id, found[3], bool(int(found[4], 16) & 1))
