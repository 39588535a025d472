"""Logging, and trace ids that join the work for one request over API, queue and workers."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NamedTuple, TextIO

from app.settings import Settings

# Trace ids over API, queue and workers: W3C Trace Context (Recommendation, 2021).


TRACE_DIGITS, SPAN_DIGITS = 32, 16

_TRACEPARENT = re.compile(r"(00|(?!ff)[0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


class Trace(NamedTuple):
    """Ids of one span.

    Attributes:
        trace_id: id shared by all work for one request, 32 hexadecimal digits.
        span_id: id of this span, 16 hexadecimal digits.
        parent_id: id of the parent span; empty for the first.
        sampled: whether the caller wants the span to be recorded.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """Value of the `traceparent` header for calls made in this span."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


class Context(NamedTuple):
    """Ids in the log lines of the present thread or task: its span, and its job (empty: none)."""

    trace: Trace
    job: str = ""


_current: ContextVar[Context | None] = ContextVar("telemetry_context", default=None)


def current() -> Context | None:
    """Context of the present thread or task; None outside requests and jobs."""
    return _current.get()


def current_traceparent() -> str | None:
    """`traceparent` of the present span; None outside requests and jobs."""
    context = _current.get()
    return None if context is None else context.trace.traceparent


@contextmanager
def working(trace: Trace, job: str = "") -> Iterator[None]:
    """Context manager: log lines within it contain the span's and the job's ids."""
    token = _current.set(Context(trace, job))
    try:
        yield
    finally:
        _current.reset(token)


def began(traceparent: str | None) -> Trace:
    """A new span, child of the one in ``traceparent``, or the first of a new trace if that is malformed or None."""
    digits = os.urandom((TRACE_DIGITS + SPAN_DIGITS) // 2).hex()
    span_id = digits[TRACE_DIGITS:]
    match = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if match is None or (match[1] == "00" and match[5]) or not (match[2].strip("0") and match[3].strip("0")):
        return Trace(digits[:TRACE_DIGITS], span_id)
    return Trace(match[2], span_id, match[3], bool(int(match[4], 16) & 1))


# The log: lines of text, or one JSON object per line. Callers' texts can't contain line breaks.


FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
INDENT = "    "
FIELDS = "fields"
"""Attribute of a log record with further fields: `logger.info(…, extra={FIELDS: {…}})`."""

_CONTROL = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in _CONTROL}


def escape(text: str) -> str:
    """The text with control characters and line separators escaped."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


class TextFormatter(logging.Formatter):
    """Formats a record as one line; tracebacks are indented, so that they can't imitate records."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """The record's line, escaped."""
        return escape(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the standard library's name
        """The traceback, each line escaped and indented."""
        return _indent(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the standard library's name
        """The stack, each line escaped and indented."""
        return _indent(stack_info)


def _indent(text: str) -> str:
    return "\n".join(INDENT + escape(line) for line in text.splitlines())


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, process, ids, and further fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, in ASCII."""
        fields: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_ids(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def stamp(seconds: float) -> str:
    """POSIX seconds as RFC 3339 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ids() -> dict[str, str]:
    context = current()
    if context is None:
        return {}
    ids = {"trace_id": context.trace.trace_id, "span_id": context.trace.span_id}
    return {**ids, "job": context.job} if context.job else ids


def configure(settings: Settings, text_format: str = FORMAT, stream: TextIO | None = None) -> None:
    """Configure this process's logging by the settings, to ``stream`` (None: standard error).

    ``text_format``: format of lines in text, for ``logging.Formatter``.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter(text_format))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
