"""SQL queries on adaptations, and on drift states of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.agents.algorithms import ONLINE
from app.database.tables import ADVISED, DRIFTED, RULED, Adaptation, Iteration, Job, Run
from app.jobs.repository import OPEN
from app.kinds.contract.engine import Chain
from app.samples.intake import Cut

MOST_RUNS = 100
"""Number of newest runs of a workload that are examined."""


def shadow(session: Session, workload_id: str) -> int | None:
    """Version of the agent that the adaptation in progress runs as a shadow, without effect; None if it runs none."""
    statement = select(Adaptation.agent_version).where(Adaptation.going_on.is_(True), Adaptation.state == "shadow")
    return session.scalar(statement.where(Adaptation.workload_id == workload_id))


def newest(session: Session, workload_id: str, number: int) -> Sequence[Adaptation]:
    """The newest ``number`` adaptations of a workload, newest first."""
    statement = select(Adaptation).where(Adaptation.workload_id == workload_id)
    return session.scalars(statement.order_by(Adaptation.created_at.desc(), Adaptation.id).limit(number)).all()


class StoredDrift(NamedTuple):
    """Drift stored by an adaptation.

    Attributes:
        since: time at which the adaptation began.
        drifts: successive drifts up to then, oldest first: ratios of measured over expected values by stream.
        model: version of the domain model that the notice compared with.
        cuts: first drifted iteration by run id.
    """

    since: datetime
    drifts: Chain
    model: int | None
    cuts: Mapping[str, int]


def history(session: Session, workload_id: str) -> Sequence[StoredDrift]:
    """Drift stored by each adaptation of a workload, oldest first."""
    columns = Adaptation.created_at, Adaptation.steps, Adaptation.notice
    statement = select(*columns).where(Adaptation.workload_id == workload_id)
    rows = session.execute(statement.order_by(Adaptation.created_at, Adaptation.id))
    stored = [(row, row.steps[0]["figures"]) for row in rows if row.steps]
    return [
        StoredDrift(row.created_at, figures["drifts"], row.notice["model"], figures["since"]) for row, figures in stored
    ]


def cuts(session: Session, run: Run) -> Sequence[Cut]:
    """Iterations at which a run is cut into samples, in order; a cut is never before the preceding one."""
    cuts = list[Cut]()
    for one in history(session, run.workload_id):
        if run.id in one.cuts:
            since = max(one.cuts[run.id], cuts[-1].since if cuts else 0)
            cuts = [*(cut for cut in cuts if cut.since < since), Cut(since, one.since)]
    return cuts


def in_force(history: Sequence[StoredDrift], at: datetime | None = None) -> Chain:
    """Drifts in force at a time (None: now), oldest first: ratios of measured over expected values by stream."""
    chains = [one.drifts for one in history if at is None or one.since <= at]
    return chains[-1] if chains else ()


def runs(session: Session, workload_id: str, *, drifted: bool = False, ruled: bool = True) -> Sequence[Run]:
    """The newest runs with reports, newest first.

    Args:
        drifted: only running runs with drift notices.
        ruled: whether to include runs that were started with a named heuristic, or whose decisions were not applied.
    """
    statement = select(Run).where(Run.workload_id == workload_id, Run.next_iteration > 0)
    if not ruled:
        statement = statement.where(~RULED, ~ADVISED)
    if drifted:
        statement = statement.where(DRIFTED, Run.state == "running")
    return session.scalars(statement.order_by(Run.created_at.desc(), Run.id.desc()).limit(MOST_RUNS)).all()


def trained_on_line(session: Session, workload_id: str) -> bool:
    """Whether an online training of the workload, which publishes agents itself, is queued, running or waiting."""
    jobs = select(Job.request).where(Job.workload_id == workload_id, Job.type == "train", Job.state.in_(OPEN))
    return any(request.get("algorithm") == ONLINE for request in session.scalars(jobs))


def shadow_decisions(session: Session, run: str, agent: int, first: int, most: int) -> Sequence[Mapping[str, Any]]:
    """The first ``most`` shadow decisions of an agent in a run, from iteration ``first`` on, as JSON values."""
    statement = select(Iteration).where(Iteration.run_id == run, Iteration.iteration >= first)
    rows = session.scalars(statement.order_by(Iteration.iteration).execution_options(yield_per=most))
    steps = (row.decision.get("shadow") or {} for row in rows)
    with rows:
        return list(islice((step for step in steps if step.get("agent") == agent), most))
