"""Outcomes of runs: whether a run is on track for its targets, and whether it met them in the end.

A kind judges by its own targets: each decision carries a risk text (``EncodedDecision.risk``), and ``Kind.judge``
judges a finished run. The service adds that failed or cancelled runs never met their targets, and that a run without
reports is stale."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

RunOutcome = Literal["on_track", "at_risk", "stale", "met", "missed", "failed", "cancelled", "completed", "cap_reached"]
LIVE: tuple[RunOutcome, ...] = ("on_track", "at_risk")
"""Outcomes stored while a run goes on; `stale` is derived on reading."""
DEFAULT_PROBABILITY = 0.5
"""Probability of meeting a target below which a run is at risk, if the target sets none."""


class EndedRun(NamedTuple):
    """A finished run.

    Attributes:
        start: body of the request that started it.
        decision: last decision as stored.
        state: the engine's state after the last report.
        reports: all reports as stored, in order.
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
    """Judge a run with ``due`` tasks or jobs that have deadlines, of which ``late`` missed theirs; ``what`` is the
    singular noun for one. A run without deadlines is undetermined (``met`` None)."""
    if not due:
        return Judgement(None, f"no {what} had a deadline")
    word = what if due == 1 else f"{what}s"
    return Judgement(not late, f"{due - late:,} of {due:,} {word} with a deadline ended in time")
