"""What speaks for an agent besides its simulator: shadow runs, and logged runs scored off-policy.

A promotion can require either; it is refused, with what is missing, while the evidence does not allow it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.agents import repository as agents
from app.agents.schemas import GainInterval, Requirement, ShadowRead
from app.database.engine import check_deadline
from app.database.tables import Evaluation, Iteration, Run, Workload

FEWEST_RUNS = 5
MARGIN = 0.01  # of practical equivalence, where an agent's verdict states none
LARGEST = 1_000  # shadow runs, the newest
AT_ONCE = 500  # iterations
NORMAL = 1.959964  # standard errors of a 95 % interval of very many values
FEW = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157)
"""The same by Student's t, of 1 to 9 degrees of freedom."""


def shadow(session: Session, workload: Workload, version: int) -> ShadowRead:
    """What the agent would have decided in the runs that it was a shadow of."""
    newest = (
        select(Run.id)
        .where(Run.workload_id == workload.id, Run.shadow_version == version)
        .order_by(Run.created_at.desc())
        .limit(LARGEST)
    )
    statement = select(Iteration).where(Iteration.run_id.in_(newest)).order_by(Iteration.run_id, Iteration.iteration)
    with session.scalars(statement.execution_options(yield_per=AT_ONCE)) as rows:
        runs = [_counted(run) for _, run in groupby(rows, key=lambda row: row.run_id)]
    return _summary(workload.name, version, runs)


class _Counted(NamedTuple):
    """A run beside which a shadow decided: how often, and what its steps would have gained, where that is known."""

    decisions: int
    failures: int
    agreed: int
    known: bool
    gain: float


def _counted(run: Iterator[Iteration]) -> _Counted:
    """Of a run of any length, row by row."""
    check_deadline()
    decisions, failures, agreed, known, gain = 0, 0, 0, False, 0.0
    for step in (row.decision.get("shadow") for row in run):
        if step is not None:
            decisions, known = decisions + 1, known or step["gain"] is not None
            gain += step["gain"] or 0.0
            failures += step["problem"] is not None
            agreed += step["problem"] is None and bool(step["agrees"])
    return _Counted(decisions, failures, agreed, known, gain)


def _summary(workload: str, version: int, runs: Sequence[_Counted]) -> ShadowRead:
    decisions, failures = sum(run.decisions for run in runs), sum(run.failures for run in runs)
    answered = decisions - failures
    return ShadowRead(
        workload=workload,
        agent=version,
        runs=len(runs),
        decisions=decisions,
        failures=failures,
        agreement=sum(run.agreed for run in runs) / answered if answered else None,
        gain=interval([run.gain for run in runs]) if any(run.known for run in runs) else None,
    )


def interval(values: Sequence[float]) -> GainInterval:
    """Mean and 95 % interval; one value alone says nothing of its spread."""
    mean = fmean(values)
    if len(values) < 2:
        return GainInterval(mean=mean, low=None, high=None)
    half = standard_errors(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return GainInterval(mean=mean, low=mean - half, high=mean + half)


def standard_errors(freedom: int) -> float:
    """Standard errors of a 95 % interval by Student's t; beyond the table as Fisher and Cornish expand it (1960)."""
    if freedom <= len(FEW):
        return FEW[freedom - 1]
    z = NORMAL
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def missing(session: Session, workload: Workload, version: int, required: Sequence[Requirement]) -> list[str]:
    """What the evidence lacks for a promotion that requires it, in words; empty when nothing does."""
    found = {"shadow": _missing_shadow, "off_policy": _missing_off_policy}
    agent = agents.find(session, workload.id, version)
    margin = 0.0 if agent is None else _margin(agent.report)
    problems = [found[name](session, workload, version, margin) for name in dict.fromkeys(required)]
    return [text for text in problems if text]


def _margin(report: Mapping[str, Any]) -> float:
    """By how much returns may differ and still be level: of the agent's verdict; 0 where it was never judged."""
    best = (report.get("heuristics") or {}).get(report.get("best_heuristic"))
    return 0.0 if best is None else float(report.get("equivalence_margin", MARGIN)) * abs(float(best["mean"]))


def _missing_shadow(session: Session, workload: Workload, version: int, margin: float) -> str:
    seen = shadow(session, workload, version)
    if seen.runs < FEWEST_RUNS:
        return (
            f"shadow: needs {FEWEST_RUNS} runs beside which it decided, has {seen.runs}; start runs with "
            f'"shadow": {version}'
        )
    if seen.failures:
        return f"shadow: it failed in {seen.failures} of {seen.decisions} decisions"
    if seen.gain is None:
        return (
            f"shadow: nothing tells what its steps would have gained in a workload of kind {workload.kind}, only that "
            f"{seen.agreement or 0.0:.0%} were what was done; leave it out of `require`"
        )
    return _judged("shadow", seen.gain, margin)


def _missing_off_policy(session: Session, workload: Workload, version: int, margin: float) -> str:
    """The newest evaluation that scored the version on logged runs counts."""
    reports = session.scalars(
        select(Evaluation.report)
        .where(Evaluation.workload_id == workload.id)
        .order_by(Evaluation.created_at.desc())
        .limit(agents.LARGEST_SEARCH)
    )
    for report in reports:
        scored = (report.get("off_policy") or {}).get(str(version))
        if scored is not None:
            break
    else:
        return f"off_policy: nothing has scored agent {version} on logged runs; ask for it with POST /evaluations"
    if "replay" not in scored:
        return f"off_policy: {scored.get('reason', 'it could not be scored')}"
    if scored["runs"] < FEWEST_RUNS:
        return f"off_policy: needs {FEWEST_RUNS} logged runs, has {scored['runs']}"
    return _judged("off_policy", GainInterval(**scored["replay"]["advantage"]), margin)


def _judged(name: str, gain: GainInterval | None, margin: float) -> str:
    if gain is None or gain.low is None or gain.low < -margin:
        gained = "nothing" if gain is None else f"{gain.mean:+.5f} (95 % interval {gain.low:+.5f} to {gain.high:+.5f})"
        return f"{name}: it may be worse than what was done: expected gain in return per run {gained}"
    return ""
