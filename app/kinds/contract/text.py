"""Text that programs read: times, names and values of what was given. Figures for people: ``app.charts.text``."""

from datetime import datetime
from typing import Any

import numpy as np

from app.kinds.contract.inputs import FieldIssue

MAXIMUM_NAME = 255


def timestamp(now: datetime) -> str:
    """RFC 3339, UTC, to the millisecond."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_issue(name: str) -> FieldIssue | None:
    """What is wrong with an execution's identifier; any printable Unicode is accepted."""
    if name and len(name) <= MAXIMUM_NAME and name.isprintable():
        return None
    return FieldIssue("/execution", f"must be 1 to {MAXIMUM_NAME} printable characters", printable(name[:80]))


def printable(text: str) -> str:
    """Text that can be written as UTF-8 and stored: what can't is replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain(value: Any) -> Any:
    """A value that JSON can carry: not-a-number and infinities as words."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else str(number)
    return printable(value) if isinstance(value, str) else value
