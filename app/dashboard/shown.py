"""What is shown of runs and workloads, as their kinds tell it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.dashboard import repository
from app.kinds.contract.stored import BrokenRow
from app.kinds.contract.views import MOST_STEPS, Shown, Step, Views
from app.kinds.registry import KINDS, MissingKind
from app.runs.repository import Loaded
from app.runs.schemas import RunListed

logger = logging.getLogger(__name__)

CompiledOf = Callable[[str], Any]
"""A workload, compiled, by name."""


class RunLine(NamedTuple):
    """A run in a list."""

    id: str
    workload: str
    outcome: str
    outcome_reason: str
    iterations: int
    allocation: str
    source: str
    reason: str
    drifted: bool
    created_at: datetime


def line(run: RunListed) -> RunLine:
    """A run with its last decision in words; or why that can't be told."""
    if run.problem is not None or isinstance(run.decision, dict):
        words = ("", "", run.problem or "")
    else:
        decision = run.decision
        words = (KINDS[decision.kind].summarise(decision), decision.source, decision.reason.text)
    stands = run.outcome, run.outcome_reason or ""
    return RunLine(run.id, run.workload, *stands, run.iterations, *words, bool(run.drift), run.created_at)


def views(kind: str) -> Views | None:
    """What a kind shows; None where it shows nothing, or was made before kinds did."""
    found: Views | None = getattr(KINDS[kind], "views", None) if kind in KINDS else None
    return found


def numbers(iterations: int, most: int = MOST_STEPS) -> tuple[list[int], int]:
    """Which of a run's reports are shown, and at what distance: evenly from all, with the last."""
    every = max(1, -(-iterations // most))
    found = list(range(0, iterations, every))
    if found and found[-1] != iterations - 1:
        found.append(iterations - 1)
    return found, every


def shown(session: Session, loaded: Loaded) -> Shown:
    """A run with those of its reports that are shown; those that were deleted by age are not there."""
    run, kind = loaded.run, views(loaded.kind)
    chosen, every = numbers(run.next_iteration, MOST_STEPS if kind is None else kind.most)
    found = repository.iterations(session, run.id, chosen)
    steps = [Step(row.iteration, row.report, row.decision, row.reported_at) for row in found]
    return Shown(run.start, run.decision, state(loaded.kind, run.state_vector), run.next_iteration, steps, every)


def state(kind: str, stored: Any) -> Any:
    """A run's state as its engine has it; None where that can't be read."""
    try:
        return KINDS[kind].engine.restore(stored)
    except (MissingKind, BrokenRow, LookupError, TypeError, ValueError):
        return None


def told(what: str, make: Callable[[], Sequence[Any]]) -> tuple[list[Any], str]:
    """What a kind tells, and why it can't where it fails: one part that fails takes no page with it."""
    try:
        return list(make()), ""
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("%s can't be shown", what)
        return [], f"{what} can't be shown: {type(error).__name__}: {error}"


def compiled_or_none(compiled_of: CompiledOf, workload: str) -> Any:
    """A workload, compiled; None where its kind is not here, or its spec can't be read."""
    try:
        return compiled_of(workload)
    except (MissingKind, BrokenRow):
        return None


def reason(decision: Mapping[str, Any]) -> str:
    """A stored decision's reason in words."""
    found = decision.get("reason")
    return str(found.get("text", "")) if isinstance(found, Mapping) else ""
