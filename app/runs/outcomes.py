"""The outcome of a run, defined once for the API, pages, commands and metrics.

Stored while a run goes on: `on_track` or `at_risk`, with each report; when it ends: `met`, `missed`, `failed`,
`cancelled`, or `completed` where there is no target to judge by. Derived whenever a run is read: `stale`, for a live
run that has not reported for many of its iterations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Float, and_, case, func, literal, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.database.base import utc_now
from app.database.tables.iteration import Iteration
from app.database.tables.run import Run
from app.kinds.contract.engine import CompiledWorkload
from app.kinds.contract.run_outcome import LIVE, Ended, RunOutcome
from app.kinds.contract.stored import BrokenRow
from app.kinds.registry import KINDS, MissingKind
from app.settings import Settings

logger = logging.getLogger(__name__)

ATTENTION: tuple[RunOutcome, ...] = ("failed", "missed", "at_risk", "stale")
"""Outcomes that somebody should look at, the gravest first."""
ENDED = {"finished": "has finished", "failed": "has failed", "cancelled": "was cancelled"}
"""States of a run that has ended, in words."""
LONGEST = 1_000
"""Characters of a reason that are stored."""
CompiledOf = Callable[[str], CompiledWorkload]
"""Gives a compiled workload by its id."""


class Staleness(NamedTuple):
    """When a live run is stale: after ``iterations`` of its expected iterations without a report, and no earlier than
    after ``seconds``; ``now`` is the clock.
    """

    iterations: float
    seconds: float
    now: Callable[[], datetime] = utc_now

    @classmethod
    def of(cls, settings: Settings, now: Callable[[], datetime] = utc_now) -> Staleness:
        """As the settings say."""
        return cls(settings.stale_after_iterations, settings.stale_after_seconds, now)


class seconds_between(FunctionElement[float]):  # noqa: N801 - named as a function of SQL
    """Seconds from a first time to a second one."""

    type = Float()
    inherit_cache = True


@compiles(seconds_between, "sqlite")
def _on_sqlite(element: seconds_between, compiler: SQLCompiler, **options: Any) -> str:
    first, second = (compiler.process(part, **options) for part in element.clauses)
    return f"((julianday({second}) - julianday({first})) * 86400.0)"


@compiles(seconds_between, "postgresql")
def _on_postgresql(element: seconds_between, compiler: SQLCompiler, **options: Any) -> str:
    first, second = (compiler.process(part, **options) for part in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM ({second} - {first})) AS double precision)"


class Silence(NamedTuple):
    """Expressions of SQL about a live run.

    Attributes:
        silent: seconds since its last report, or since its start.
        expected: seconds of an iteration: the mean interval of its reports so far; before the first one what was
            predicted, else the floor.
        stale: whether it is silent for too long.
        outcome: as it is stored, or `stale`.
    """

    silent: ColumnElement[float]
    expected: ColumnElement[float]
    stale: ColumnElement[bool]
    outcome: ColumnElement[str]


def silence(rule: Staleness) -> Silence:
    """The same for any run; on one that has ended only ``outcome`` means something."""
    last = (
        select(Iteration.reported_at)
        .where(Iteration.run_id == Run.id, Iteration.iteration == Run.next_iteration - 1)
        .correlate(Run)
        .scalar_subquery()
    )
    now, floor = literal(rule.now(), Run.created_at.type), literal(rule.seconds, Float())
    reports = Run.next_iteration - Run.decision["iteration"].as_integer()
    mean = seconds_between(Run.created_at, last) / reports
    silent = seconds_between(func.coalesce(last, Run.created_at), now)
    expected = case((and_(reports > 0, last.is_not(None)), mean), else_=func.coalesce(Run.expected_seconds, floor))
    live = and_(Run.outcome.in_(LIVE), Run.state == "running")
    stale = and_(live, silent > floor, silent > literal(rule.iterations, Float()) * expected)
    return Silence(silent, expected, stale, case((stale, "stale"), else_=Run.outcome))


def having(outcome: RunOutcome, rule: Staleness) -> ColumnElement[bool]:
    """The condition that a run has an outcome."""
    if outcome == "stale":
        return silence(rule).stale
    return and_(Run.outcome == outcome, ~silence(rule).stale if outcome in LIVE else true())


def counts(session: Session, rule: Staleness) -> dict[str, int]:
    """Number of runs of all tenants by outcome."""
    stored = session.execute(select(Run.outcome, func.count()).group_by(Run.outcome))
    found: dict[str, int] = {outcome: number for outcome, number in stored}  # noqa: C416 - mypy sees no pairs in rows
    stale = session.execute(select(Run.outcome, func.count()).where(silence(rule).stale).group_by(Run.outcome))
    for outcome, number in stale:
        found[outcome] = max(0, found.get(outcome, 0) - number)
        found["stale"] = found.get("stale", 0) + number
    return found


def stale_reason(silent: float, expected: float) -> str:
    """Why a run is stale."""
    return f"no report for {in_words(silent)}; one was expected every {in_words(expected)}"


def in_words(seconds: float) -> str:
    """A duration in the largest unit of which there is more than one."""
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def live(risk: str) -> tuple[RunOutcome, str | None]:
    """What is stored of a run that goes on, by the risk that its kind names: empty while it is on track."""
    return ("at_risk", risk[:LONGEST]) if risk else ("on_track", None)


def compiled(compiled_of: CompiledOf, workload: str) -> CompiledWorkload | str:
    """A workload to judge a run with; or why it can't be read, for then the run ends all the same."""
    try:
        return compiled_of(workload)
    except (MissingKind, BrokenRow) as error:
        return f"the workload can't be read: {error}"


def judged(run: Ended, compiled: CompiledWorkload | str) -> tuple[RunOutcome, str]:
    """Whether a run that has finished, with its state as stored, met its targets, as its kind judges, and why.

    A run ends whatever its kind says: one that can't be judged has `completed`, and the reason says why.
    """
    if isinstance(compiled, str):
        return "completed", compiled[:LONGEST]
    try:
        kind = KINDS[compiled.snapshot.spec.kind]
        found = kind.judge(compiled, run._replace(state=kind.engine.restore(run.state)))
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("a run of workload %s can't be judged", compiled.snapshot.name)
        return "completed", f"its targets can't be judged: {type(error).__name__}: {error}"[:LONGEST]
    return "completed" if found.met is None else "met" if found.met else "missed", found.reason[:LONGEST]
