"""A training of many learners: one task leads, one task is each trial's, and nobody waits for another.

`lead` runs whenever no trial is at work: it opens the trials as one group, or compares them and sends the survivors
on, or publishes the best. `trial` takes one learner up to its next comparison. The rules stand in
`workers.learning.bracket`, what is known of the trials in the database: any worker may take any step, and again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from app.database.tables import Job
from app.jobs import sweeps
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.training.planned import Planned, make_plan
from workers.kinds.iterative.training.request import PLANNER, Request, entries
from workers.kinds.iterative.training.train import COMPARING, JUDGING_SECONDS
from workers.kinds.iterative.training.trial import Trial
from workers.kinds.iterative.training.verdict import Contender, conclude, validation
from workers.learning.bracket import Bracket, Decision, Entry, Standing
from workers.learning.execution import checkpoint as blob
from workers.tasks.base import Cancelled, RunningJob
from workers.tasks.train import TrainInput, load, terms
from workers.tasks.trained import publish


class Opened(NamedTuple):
    """What a sweep was opened with, and keeps whatever is changed meanwhile: the spec, and the plan if one was made."""

    spec: Spec
    spec_version: int
    planned: Planned | None

    def pack(self) -> bytes:
        """As the checkpoint of the training's job."""
        plan = b"" if self.planned is None else self.planned.pack()
        told = {"spec": self.spec.model_dump_json(), "spec_version": self.spec_version}
        return blob.pack({"planned": np.frombuffer(plan, np.uint8)}, told)

    @classmethod
    def unpack(cls, data: bytes) -> Opened:
        """Undo `pack`."""
        arrays, told = blob.unpack(data)
        plan = arrays["planned"].tobytes()
        spec = Spec.model_validate(json.loads(told["spec"]))
        return cls(spec, told["spec_version"], Planned.unpack(plan) if plan else None)


def has_many(request: Request) -> bool:
    """Whether several learners compete."""
    return len(entries(request)) > 1


def lead(job: RunningJob, given: TrainInput) -> None:
    """Take the sweep's next step."""
    with job.database.reading() as session:
        known = sweeps.standings(session, job.lease.job_id)
    if not known or job.lease.checkpoint is None:
        _open(job, given)
        return
    opened = Opened.unpack(job.lease.checkpoint)
    given = given._replace(spec=opened.spec, spec_version=opened.spec_version)
    bracket = Bracket(len(known))
    rival = opened.planned.rival if opened.planned is not None and given.request.plans else None
    decision = bracket.decide([_standing(trial) for trial in known], rival)
    if decision.survivors:
        _go_on(job, known, decision, bracket)
    else:
        _end(job, given, opened, known, decision)


def _open(job: RunningJob, given: TrainInput) -> None:
    """Plan where a plan is wanted, and begin all trials as a group."""
    planned, request = None, given.request
    if request.plans or request.imitate == PLANNER:
        told = {"phase": "planning", "algorithm": request.algorithm}
        job.progress(0.0, None, told, bytes)
        court = validation(given.spec, given.table, request)
        planned = make_plan(Layout(given.spec), given.table, court)
    found = entries(request)
    openings = [sweeps.Opening(entry.algorithm, entry.seed) for entry in found]
    opened = Opened(given.spec, given.spec_version, planned)
    until = Bracket(len(found)).shares[0]
    job.check()
    if not sweeps.open_trials(job.database, job.lease, openings, until, opened.pack()):
        raise Cancelled(job.lease.job_id)


def _go_on(job: RunningJob, known: Sequence[sweeps.Standing], decision: Decision, bracket: Bracket) -> None:
    survivors = [known[i].job_id for i in decision.survivors]
    stopped = {known[i].job_id: reason for i, reason in decision.stopped.items()}
    until = bracket.shares[known[decision.survivors[0]].rungs]
    job.check()
    if not sweeps.go_on(job.database, job.lease, survivors, stopped, until):
        raise Cancelled(job.lease.job_id)


def _end(
    job: RunningJob, given: TrainInput, opened: Opened, known: Sequence[sweeps.Standing], decision: Decision
) -> None:
    """Judge the best, and publish it."""
    told = {"phase": "judging", "algorithm": given.request.algorithm}
    job.progress(COMPARING, JUDGING_SECONDS, told, lambda: job.lease.checkpoint or b"")
    planned = opened.planned or make_plan(
        Layout(given.spec), given.table, validation(given.spec, given.table, given.request)
    )
    contenders = [_contender(trial, decision.stopped.get(i)) for i, trial in enumerate(known)]
    trained = conclude(given.spec, given.table, given.request, contenders, planned, given.champion_artifact)
    resting = {known[i].job_id: reason for i, reason in decision.stopped.items()}

    def write(session: Session) -> dict[str, Any]:
        sweeps.hold(session, job.lease)
        result = publish(session, job.lease.workload_id, terms(given), trained)
        sweeps.end(session, resting)
        return result

    job.publish(write)


def _standing(trial: sweeps.Standing, ended: str | None = None) -> Standing:
    reason = trial.ended if trial.ended is not None else trial.failed
    return Standing(Entry(trial.algorithm, trial.seed), trial.rungs, trial.score, reason if ended is None else ended)


def _contender(trial: sweeps.Standing, ended: str | None) -> Contender:
    return Contender(_standing(trial, ended), trial.share, trial.artifact, trial.report)


def trial(job: RunningJob) -> None:
    """Take one learner of a sweep up to its next comparison."""
    given, opened, standing, many = _load_trial(job)
    court = validation(given.spec, given.table, given.request)
    entry = Entry(standing.algorithm, standing.seed)
    learner = Trial(given.spec, given.table, given.request, entry, Bracket(many))
    try:
        if job.lease.checkpoint:
            learner.restore(job.lease.checkpoint)
        learner.prepare(opened.planned)
        while learner.share < standing.until:
            learner.advance()
            _tell(job, learner, standing, many)
        outcome, kept = _outcome(learner, standing, court), learner.checkpoint()
    finally:
        learner.close()
    job.check()
    if not sweeps.rest(job.database, job.lease, outcome, kept):
        raise Cancelled(job.lease.job_id)


def _load_trial(job: RunningJob) -> tuple[TrainInput, Opened, sweeps.Standing, int]:
    with job.database.reading() as session:
        standing = sweeps.standing(session, job.lease.job_id)
        parent = session.get_one(Job, job.lease.request["parent"])
        if standing is None or parent.checkpoint is None:
            raise LookupError("the training that this is a trial of has ended")
        given, opened = load(session, parent.workload_id, parent.request), Opened.unpack(parent.checkpoint)
    return (
        given._replace(spec=opened.spec, spec_version=opened.spec_version),
        opened,
        standing,
        len(entries(given.request)),
    )


def _tell(job: RunningJob, learner: Trial, standing: sweeps.Standing, many: int) -> None:
    who = {"phase": "learning", "trial": standing.number, "trials": many, "rung": standing.rungs}
    told = sweeps.Told(learner.share, learner.bracket.work, learner.budget_seconds, {**who, **learner.live}, COMPARING)

    def tell(kept: bytes | None) -> bool:
        return sweeps.tell(job.database, job.lease, told, kept)

    job.report(tell, learner.checkpoint)


def _outcome(learner: Trial, standing: sweeps.Standing, court: Any) -> sweeps.Outcome:
    """The better one of what it has now and what it had before."""
    tried = learner.compared(court)
    before = standing.score
    if before is not None and standing.artifact is not None and before >= tried.validation:
        strength = standing.report.get("strength", 1.0)
        return sweeps.Outcome(learner.share, before, learner.report | {"strength": strength}, standing.artifact)
    report = learner.report | {"strength": tried.strength}
    return sweeps.Outcome(learner.share, tried.validation, report, tried.artifact)
