"""The log: lines for people, or one JSON object a line. No text of a caller's can begin a line of its own."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from app.settings import Settings
from app.telemetry import trace

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
INDENT = "    "
FIELDS = "fields"
"""The attribute of a record that holds what it tells besides its message: `logger.info(…, extra={FIELDS: {…}})`."""

_CONTROL = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in _CONTROL}


def escaped(text: str) -> str:
    """The text in one line, with nothing in it that a terminal or a reader of lines acts on."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


class TextFormatter(logging.Formatter):
    """A line for a record; tracebacks are indented, so that nothing in them looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """The line."""
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the standard library's name
        """The lines of a traceback."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the standard library's name
        """The lines of a stack."""
        return _indented(stack_info)


def _indented(text: str) -> str:
    return "\n".join(INDENT + escaped(line) for line in text.splitlines())


class JsonFormatter(logging.Formatter):
    """A record as a JSON object: time, level, logger, message, ids, and what else it tells."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; ASCII alone."""
        told: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_ids(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def stamp(seconds: float) -> str:
    """A time, seconds since 1970, as RFC 3339 has it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ids() -> dict[str, str]:
    context = trace.current()
    if context is None:
        return {}
    ids = {"trace_id": context.trace.trace_id, "span_id": context.trace.span_id}
    return {**ids, "job": context.job} if context.job else ids


def configure(settings: Settings, text_format: str = FORMAT, stream: TextIO | None = None) -> None:
    """Have this process log as the settings say, to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter(text_format))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
