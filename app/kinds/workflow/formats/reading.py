"""What reading a trace comes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.reading import Skipped
from app.kinds.workflow.trace import Trace

LISTED = 20
"""Most errors that are told of one file."""


Where = Callable[[int, str], str]
"""The pointer of a task (by index) and a field (``runtime``, ``submit``, ``memory``, ``processors``, ``parents``)."""


class Reading(NamedTuple):
    """A trace as read, and what a reader of the file should know.

    Attributes:
        trace: its tasks.
        where: points to a task's field in the file.
        lacks: sentences on what the file does not say, and what that means.
        warnings: what was mended, left out, or looks wrong: the line (``/lines/12/runtime``) or JSON pointer of its
            first or worst case, a sentence, and the value there.
        name: what the file calls itself; may be empty.
        machines: processors of each recorded machine; empty when unknown.
        dropped: tasks in the file that are not in the trace; each kind of them has a warning.
        skipped: lines that can't be right, left out because that was asked for; not counted in ``dropped``.
    """

    trace: Trace
    where: Where
    lacks: tuple[str, ...] = ()
    warnings: tuple[FieldIssue, ...] = ()
    name: str = ""
    machines: tuple[int, ...] = ()
    dropped: int = 0
    skipped: tuple[Skipped, ...] = ()


def refuse(issues: Sequence[FieldIssue]) -> None:
    """Raise what is wrong, if anything is.

    Raises:
        InvalidInput: the first ``LISTED`` issues, in order.
    """
    if issues:
        raise InvalidInput(issues[:LISTED])


def counted(count: int, noun: str) -> str:
    """``1 job``, ``28,481 jobs``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def share_lacking(missing: int, tasks: int, noun: str, thing: str, consequence: str) -> tuple[str, ...]:
    """The sentence on something that all or some tasks lack; none where nothing is missing."""
    if not missing:
        return ()
    who = f"no {noun} has {thing}" if missing == tasks else f"{counted(missing, noun)} of {tasks:,} without {thing}"
    return (f"{who}: {consequence}",)
