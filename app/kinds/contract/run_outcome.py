"""Outcomes of runs: whether a run meets its targets while it runs, and whether it met them when it has finished.

A kind judges, since it knows what its targets mean: each decision carries a risk in words while the run goes on
(``Answered.risk``), and ``Kind.judge`` judges a run that has finished. The service adds what holds for all kinds: a
failed or cancelled run never met its targets, and a run that does not report is stale.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

RunOutcome = Literal["on_track", "at_risk", "stale", "met", "missed", "failed", "cancelled", "completed"]
LIVE: tuple[RunOutcome, ...] = ("on_track", "at_risk")
"""Outcomes that are stored while a run goes on; `stale` is derived when a run is read."""
DEFAULT_PROBABILITY = 0.5
"""Of meeting a target, below which a run is at risk where the target requires none."""


class Ended(NamedTuple):
    """A run that has finished.

    Attributes:
        start: the body it was started with.
        decision: its last one, as stored.
        state: after its last report, as its engine has it.
        reports: its reports in order, as stored.
    """

    start: Mapping[str, Any]
    decision: Mapping[str, Any]
    state: Any
    reports: Sequence[Mapping[str, Any]]


class Judgement(NamedTuple):
    """Whether a finished run met its targets, with the reason; `met` is None where there is no target to judge by."""

    met: bool | None
    reason: str


def in_time(late: int, due: int, what: str) -> Judgement:
    """The judgement of a run of which ``due`` tasks or jobs (``what``) had a deadline, and ``late`` missed it."""
    if not due:
        return Judgement(None, f"no {what} had a deadline")
    word = what if due == 1 else f"{what}s"
    return Judgement(not late, f"{due - late:,} of {due:,} {word} with a deadline ended in time")
