"""The outcome of a run, defined once for the API, pages, commands and metrics.

Stored while a run goes on: `on_track` or `at_risk`, with each report; when it ends: `met`, `missed`, `failed`,
`cancelled`, `cap_reached` where it was stopped at a cap, or `completed` where there is no target to judge by. Derived
whenever a run is read: `stale`, for a live run that has not reported for many of its iterations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Float, and_, case, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.charts.text import duration
from app.database.base import utc_now
from app.database.tables import Iteration, Run
from app.kinds.contract.caps import CAP_OF
from app.kinds.contract.run_outcome import LIVE, EndedRun, RunOutcome
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.settings import Settings

logger = logging.getLogger(__name__)

ATTENTION: tuple[RunOutcome, ...] = ("failed", "missed", "cap_reached", "at_risk", "stale")
"""Outcomes that need attention, the gravest first."""
HAPPENED = {
    "failed": "failed",
    "missed": "missed its targets",
    "cap_reached": "was stopped at a cap",
    "at_risk": "is at risk",
    "stale": "does not report",
}
"""Predicates of sentences about a run, by outcome of ``ATTENTION``."""
REMEDIES = {
    "failed": "look at the end of its process's output, mend the fault, and start it again",
    "cap_reached": "raise the cap, or continue the work with fewer resources or in the next month",
    "stale": "look whether its process still works; if not, end the run as failed",
}
"""What to do about a run whose outcome does not depend on its workload's targets."""
ENDED = {"finished": "has finished", "failed": "has failed", "cancelled": "was cancelled"}
"""Words for the states of a run that has ended."""
LONGEST = 1_000
"""Largest number of characters of a stored reason."""
CompiledOf = Callable[[str], Compiled]
"""Function from a workload's id to its compiled form."""


class Staleness(NamedTuple):
    """Rule by which a live run is stale: without a report for ``iterations`` times its expected iteration time, and for
    at least ``seconds``; ``now`` is the clock."""

    iterations: float
    seconds: float
    now: Callable[[], datetime] = utc_now

    @classmethod
    def of(cls, settings: Settings, now: Callable[[], datetime] = utc_now) -> Staleness:
        """The rule from the service's settings."""
        return cls(settings.stale_after_iterations, settings.stale_after_seconds, now)


class seconds_between(FunctionElement[float]):  # noqa: N801 - named as a function of SQL
    """SQL function: seconds from its first time argument to its second."""

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
    """SQL expressions about a live run.

    Attributes:
        silent_seconds: seconds since its last report, or since its start.
        expected: expected seconds per iteration: the mean interval between its reports; before the first report the
            prediction made at its start, or NULL.
        stale: whether it is stale.
        outcome: its stored outcome, or the one derived from its state.
    """

    silent_seconds: ColumnElement[float]
    expected: ColumnElement[float | None]
    stale: ColumnElement[bool]
    outcome: ColumnElement[str]


def silence(rule: Staleness) -> Silence:
    """SQL expressions of ``Silence`` for rows of ``runs``; for ended runs only ``outcome`` is valid."""
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
    return Silence(silent, expected, stale, case((stale, "stale"), else_=Run.outcome))


def having(outcome: RunOutcome, rule: Staleness) -> ColumnElement[bool]:
    """SQL condition that a run has this outcome, stored or derived by ``rule``."""
    if outcome == "stale":
        return silence(rule).stale
    if outcome in LIVE:
        return and_(Run.outcome == outcome, Run.state == "running", ~silence(rule).stale)
    return Run.outcome == outcome


def counts(session: Session, rule: Staleness) -> dict[str, int]:
    """Number of runs of all tenants by outcome, stored or derived by ``rule``."""
    stored = session.execute(select(Run.outcome, func.count()).group_by(Run.outcome))
    counts: dict[str, int] = {outcome: number for outcome, number in stored}  # noqa: C416 - mypy sees no pairs in rows
    live = silence(rule)
    derived = and_(Run.outcome.in_(LIVE), live.outcome != Run.outcome)
    both = (Run.outcome, live.outcome)
    for outcome, read, number in session.execute(select(*both, func.count()).where(derived).group_by(*both)):
        counts[outcome] = max(0, counts.get(outcome, 0) - number)
        counts[read] = counts.get(read, 0) + number
    return counts


def ended_since(session: Session, rule: Staleness, span: timedelta) -> dict[str, int]:
    """Number of runs of all tenants that ended in the last ``span``, by outcome; ``rule`` has the clock."""
    outcome = silence(rule).outcome
    rows = session.execute(select(outcome, func.count()).where(Run.finished_at >= rule.now() - span).group_by(outcome))
    return {name: number for name, number in rows}  # noqa: C416 - mypy sees no pairs in rows


def reason(run: Run, outcome: str, silent: float, expected: float | None) -> str | None:
    """Why a run has its outcome, in words; None if not stored.

    ``silent``: seconds without a report. ``expected``: seconds per iteration, None: unknown.
    """
    if outcome == "stale":
        return stale_reason(silent, expected)
    return run.outcome_reason


def stale_reason(silent: float, expected: float | None) -> str:
    """Why a run is stale, in words; ``silent``: seconds without report, ``expected``: seconds per iteration."""
    text = f"no report for {duration(silent)}"
    if expected is None:
        return f"{text}; the duration of its iterations is unknown"
    return text if expected < 1 else f"{text}; expected every {duration(expected)}"  # below: reported in a burst


def is_capped(outcome: str, reason: str) -> bool:
    """Whether a cap is the reason of an outcome: it is reached, or the run is at risk of reaching it."""
    return outcome == "cap_reached" or (outcome == "at_risk" and CAP_OF in reason)


def remedy(outcome: str, reason: str, spec: Any) -> str:
    """Advice on a run with an outcome of ``ATTENTION`` and its reason, as an imperative.

    ``spec``: its workload's spec, None: it can't be read.
    """
    if is_capped(outcome, reason):
        return REMEDIES["cap_reached"]
    if outcome in REMEDIES:
        return REMEDIES[outcome]
    return "look at its workload, which can't be read" if spec is None else KINDS[spec.kind].describe(spec).remedy


def running_outcome(risk: str) -> tuple[RunOutcome, str | None]:
    """Outcome and reason to store for a running run: at risk for the reason ``risk``, on track if that is empty."""
    return ("at_risk", risk[:LONGEST]) if risk else ("on_track", None)


def compiled_or_reason(compiled_of: CompiledOf, workload: str) -> Compiled | str:
    """The compiled workload for judging a run; if it can't be read, the reason in words. Never raises."""
    try:
        return compiled_of(workload)
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("workload %s can't be read to judge a run", workload)
        return f"the workload can't be read: {type(error).__name__}: {error}"


def judge_run(run: EndedRun, compiled: Compiled | str) -> tuple[RunOutcome, str]:
    """Outcome of a finished run (`met`, `missed` or `completed`) and its reason, as its kind judges it.

    Never raises: a run that can't be judged is `completed`, and the reason says why.
    """
    if isinstance(compiled, str):
        return "completed", compiled[:LONGEST]
    try:
        kind = KINDS[compiled.snapshot.spec.kind]
        verdict = kind.judge(compiled, run._replace(state=kind.engine.restore(run.state).state))
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("a run of workload %s can't be judged", compiled.snapshot.name)
        return "completed", f"its targets can't be judged: {type(error).__name__}: {error}"[:LONGEST]
    return "completed" if verdict.met is None else "met" if verdict.met else "missed", verdict.reason[:LONGEST]
