"""The outcome of a run, defined once for the API, pages, commands and metrics.

Stored while a run goes on: `on_track` or `at_risk`, with each report; when it ends: `met`, `missed`, `failed`,
`cancelled`, or `completed` where there is no target to judge by. Derived whenever a run is read: `stale`, for a live
run that has not reported for many of its iterations; and the outcome of a run that ended without one, because a process
of an earlier release ended it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Float, and_, case, func, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.charts.text import duration, seconds
from app.database.base import utc_now
from app.database.tables import Iteration, Run
from app.kinds.contract.run_outcome import LIVE, Ended, RunOutcome
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.settings import Settings

logger = logging.getLogger(__name__)

ATTENTION: tuple[RunOutcome, ...] = ("failed", "missed", "at_risk", "stale")
"""Outcomes that somebody should look at, the gravest first."""
ENDED = {"finished": "has finished", "failed": "has failed", "cancelled": "was cancelled"}
"""States of a run that has ended, in words."""
BY_STATE: dict[RunOutcome, str] = {"completed": "finished", "failed": "failed", "cancelled": "cancelled"}
"""Outcomes of runs that ended without one, and their states."""
NOT_JUDGED = "it was ended by an earlier release, which judges no runs"
LONGEST = 1_000
"""Characters of a reason that are stored."""
CompiledOf = Callable[[str], Compiled]
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
            predicted, if anything was.
        stale: whether it is silent for too long.
        outcome: as it is stored, or derived.
    """

    silent: ColumnElement[float]
    expected: ColumnElement[float | None]
    stale: ColumnElement[bool]
    outcome: ColumnElement[str]


def silence(rule: Staleness) -> Silence:
    """The expressions of ``Silence`` for any row of ``runs``; of a run that has ended only ``outcome`` is valid."""
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
    expected = case((and_(reports > 0, last.is_not(None)), mean), else_=Run.expected_seconds)
    live = and_(Run.outcome.in_(LIVE), Run.state == "running", ~Run.quiet)
    often = literal(rule.iterations, Float()) * func.coalesce(expected, floor)
    stale = and_(live, silent > floor, silent > often)
    by_state = [(_ended_without(state), outcome) for outcome, state in BY_STATE.items()]
    return Silence(silent, expected, stale, case((stale, "stale"), *by_state, else_=Run.outcome))


def _ended_without(state: str) -> ColumnElement[bool]:
    return and_(Run.outcome.in_(LIVE), Run.state == state)


def having(outcome: RunOutcome, rule: Staleness) -> ColumnElement[bool]:
    """The condition that a run has an outcome."""
    if outcome == "stale":
        return silence(rule).stale
    if outcome in LIVE:
        return and_(Run.outcome == outcome, Run.state == "running", ~silence(rule).stale)
    stored, state = Run.outcome == outcome, BY_STATE.get(outcome)
    return stored if state is None else or_(stored, _ended_without(state))


def counts(session: Session, rule: Staleness) -> dict[str, int]:
    """Number of runs of all tenants by outcome."""
    stored = session.execute(select(Run.outcome, func.count()).group_by(Run.outcome))
    found: dict[str, int] = {outcome: number for outcome, number in stored}  # noqa: C416 - mypy sees no pairs in rows
    live = silence(rule)
    derived = and_(Run.outcome.in_(LIVE), live.outcome != Run.outcome)
    both = (Run.outcome, live.outcome)
    for outcome, read, number in session.execute(select(*both, func.count()).where(derived).group_by(*both)):
        found[outcome] = max(0, found.get(outcome, 0) - number)
        found[read] = found.get(read, 0) + number
    return found


def ended_since(session: Session, rule: Staleness, span: timedelta) -> dict[str, int]:
    """Number of runs of all tenants that ended within the last ``span``, by outcome."""
    outcome = silence(rule).outcome
    found = session.execute(select(outcome, func.count()).where(Run.finished_at >= rule.now() - span).group_by(outcome))
    return {name: number for name, number in found}  # noqa: C416 - mypy sees no pairs in rows


def reason(run: Run, outcome: str, silent: float, expected: float | None) -> str | None:
    """Why a run has an outcome, by how it is stored and how long it is silent."""
    if outcome == "stale":
        return stale_reason(silent, expected)
    return run.outcome_reason if outcome == run.outcome else NOT_JUDGED


def stale_reason(silent: float, expected: float | None) -> str:
    """Why a run is stale; ``expected``: seconds of an iteration, if they are known."""
    said = f"no report for {_span(silent)}"
    if expected is None:
        return f"{said}; how long its iterations take is not known"
    return f"{said}; one was expected every {_span(expected)}"


def _span(value: float) -> str:
    return seconds(value) if value < 60 else duration(value)


def live(risk: str) -> tuple[RunOutcome, str | None]:
    """What is stored of a run that goes on, by the risk that its kind names: empty while it is on track."""
    return ("at_risk", risk[:LONGEST]) if risk else ("on_track", None)


def compiled(compiled_of: CompiledOf, workload: str) -> Compiled | str:
    """A workload to judge a run with; or why it can't be read, for then the run ends all the same."""
    try:
        return compiled_of(workload)
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("workload %s can't be read to judge a run", workload)
        return f"the workload can't be read: {type(error).__name__}: {error}"


def judged(run: Ended, compiled: Compiled | str) -> tuple[RunOutcome, str]:
    """Whether a run that has finished, with its state as stored, met its targets, as its kind judges, and why.

    A run ends whatever its kind says: one that can't be judged has `completed`, and the reason says why.
    """
    if isinstance(compiled, str):
        return "completed", compiled[:LONGEST]
    try:
        kind = KINDS[compiled.snapshot.spec.kind]
        found = kind.judge(compiled, run._replace(state=kind.engine.restore(run.state).state))
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("a run of workload %s can't be judged", compiled.snapshot.name)
        return "completed", f"its targets can't be judged: {type(error).__name__}: {error}"[:LONGEST]
    return "completed" if found.met is None else "met" if found.met else "missed", found.reason[:LONGEST]
