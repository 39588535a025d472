"""Lines that are left out of a log because they can't be right: how many, which, and why."""

from __future__ import annotations

from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.reading import Skipped
from app.kinds.workflow.formats.reading import LISTED, refuse

OTHER = "other reasons"
MOST_SKIPPED = 100_000


class Skipping:
    """Collects the lines that a reader leaves out; of each reason the first ``LISTED`` line numbers are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._found: dict[tuple[str, str], tuple[int, list[int]]] = {}

    def add(self, line: int, field: str, reason: str) -> None:
        """A line was left out. Reasons beyond the first ``LISTED`` are counted together.

        Raises:
            InvalidInput: too many were, for this to be a log with a few bad lines.
        """
        if self.count == MOST_SKIPPED:
            message = f"would be the {MOST_SKIPPED + 1:,}th line to be left out: is this a log in this format?"
            refuse([FieldIssue(f"/lines/{line}/{field}".rstrip("/"), message, None)])
        self.count += 1
        key = (field, reason)
        if key not in self._found and len(self._found) >= LISTED:
            key = ("", OTHER)
        count, lines = self._found.setdefault(key, (0, []))
        self._found[key] = (count + 1, lines)
        if len(lines) < LISTED:
            lines.append(line)

    @property
    def found(self) -> tuple[Skipped, ...]:
        """What was left out, the most frequent reason first."""
        every = [Skipped(field, reason, count, tuple(lines)) for (field, reason), (count, lines) in self._found.items()]
        return tuple(sorted(every, key=lambda one: -one.count))


def field_of(issue: FieldIssue) -> str:
    """The column that an issue of a line points at; empty for the whole line."""
    return "/".join(issue.pointer.split("/")[3:])


def line_of(issue: FieldIssue) -> int:
    """The number of the line that an issue points at."""
    return int(issue.pointer.split("/")[2])
