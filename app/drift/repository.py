"""SQL about adaptations, and about what live runs keep for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.agents.algorithms import ONLINE
from app.database.tables import DRIFTED, RULED, Adaptation, Iteration, Job, Run, Workload
from app.kinds.contract.engine import Chain
from app.samples.intake import Cut

MOST_RUNS = 100
"""Runs of a workload that are looked at, the newest."""
OPEN_JOB = ("queued", "running", "waiting")


def going_on(session: Session, workload_id: str) -> Adaptation | None:
    """The one that goes on."""
    return session.scalar(
        select(Adaptation).where(Adaptation.workload_id == workload_id, Adaptation.going_on.is_(True))
    )


def shadow(session: Session, workload_id: str) -> int | None:
    """Version of the agent that a workload tries as a shadow; None if it tries none."""
    statement = select(Adaptation.agent_version).where(Adaptation.going_on.is_(True), Adaptation.state == "shadow")
    return session.scalar(statement.where(Adaptation.workload_id == workload_id))


def newest(session: Session, workload_id: str, number: int) -> Sequence[Adaptation]:
    """The last ones, newest first."""
    statement = select(Adaptation).where(Adaptation.workload_id == workload_id)
    return session.scalars(statement.order_by(Adaptation.created_at.desc(), Adaptation.id).limit(number)).all()


class Drifted(NamedTuple):
    """What an answer to a drift stores of it.

    Attributes:
        since: when the answer began.
        drifts: all up to then.
        model: version of the domain model that the notices were against.
        cuts: by run, the iteration from which on it counts as drifted.
    """

    since: datetime
    drifts: Chain
    model: int | None
    cuts: Mapping[str, int]


def history(session: Session, workload_id: str) -> Sequence[Drifted]:
    """What each answer to a drift stores of it, oldest first; old answers have no drifts but their own, and no cuts."""
    columns = Adaptation.created_at, Adaptation.steps, Adaptation.notice
    statement = select(*columns).where(Adaptation.workload_id == workload_id)
    rows = session.execute(statement.order_by(Adaptation.created_at, Adaptation.id))
    stored = [(row, row.steps[0]["figures"]) for row in rows if row.steps]
    return [
        Drifted(
            row.created_at, figures.get("drifts") or [figures["factors"]], row.notice["model"], figures.get("since", {})
        )
        for row, figures in stored
    ]


def cuts(session: Session, run: Run) -> Sequence[Cut]:
    """Where a run is cut, in order; a drift that began before the last cut counts from there on."""
    found = list[Cut]()
    for one in history(session, run.workload_id):
        if run.id in one.cuts:
            since = max(one.cuts[run.id], found[-1].since if found else 0)
            found = [*(cut for cut in found if cut.since < since), Cut(since, one.since)]
    return found


def in_force(history: Sequence[Drifted], at: datetime | None = None) -> Chain:
    """What had drifted at a time; None: all that has."""
    chains = [one.drifts for one in history if at is None or one.since <= at]
    return chains[-1] if chains else ()


def concerned(session: Session) -> Sequence[str]:
    """Workloads that answer drifts, and those of which an answer goes on."""
    open_ones = select(Adaptation.workload_id).where(Adaptation.going_on.is_(True))
    return session.scalars(
        select(Workload.id).where(or_(Workload.drift.is_not(None), Workload.id.in_(open_ones)))
    ).all()


def runs(session: Session, workload_id: str, *, drifted: bool = False, ruled: bool = True) -> Sequence[Run]:
    """The newest runs that have reported.

    Args:
        drifted: only those that have noticed something, and go on.
        ruled: also those that name the rule that decides for them.
    """
    statement = select(Run).where(Run.workload_id == workload_id, Run.next_iteration > 0)
    if not ruled:
        statement = statement.where(~RULED)
    if drifted:
        statement = statement.where(DRIFTED, Run.state == "running")
    return session.scalars(statement.order_by(Run.created_at.desc(), Run.id.desc()).limit(MOST_RUNS)).all()


def trained_on_line(session: Session, workload_id: str) -> bool:
    """Whether a job goes on that publishes agents by its own rule."""
    jobs = select(Job.request).where(Job.workload_id == workload_id, Job.type == "train", Job.state.in_(OPEN_JOB))
    return any(request.get("algorithm") == ONLINE for request in session.scalars(jobs))


def shadowed(session: Session, run: str, agent: int, first: int, most: int) -> Sequence[Mapping[str, Any]]:
    """What an agent did as a shadow in a run's decisions from an iteration on: the first of those in which it did."""
    statement = select(Iteration).where(Iteration.run_id == run, Iteration.iteration >= first)
    rows = session.scalars(statement.order_by(Iteration.iteration).execution_options(yield_per=most))
    steps = (row.decision.get("shadow") or {} for row in rows)
    with rows:
        return list(islice((step for step in steps if step.get("agent") == agent), most))
