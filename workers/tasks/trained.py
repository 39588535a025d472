"""The tasks `fit` and `trial`, and the lead of a sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from app.agents import combinations
from app.agents import service as agents
from app.agents.evidence import TRAINED_FOR, trained_for
from app.agents.repository import AGENTS
from app.agents.schemas import TrainRequest
from app.database import tables
from app.database.tables import Job
from app.domain_models import service as domain_models
from app.jobs import sweeps
from app.kinds.registry import read_spec
from workers.inputs import Workload
from workers.kinds.contract import Competing, learned_kind
from workers.learning.execution import base as blob
from workers.learning.training.competition import JUDGING_SECONDS
from workers.learning.training.conclude import Contender, conclude, yardsticks
from workers.learning.training.driver import LEARNING, PlannedPolicy, TrainedAgent, TrainingProblem
from workers.learning.training.request import Bracket, Decision, Entry, Request, Start, TrialRecord, entries
from workers.learning.training.trial import Trial
from workers.tasks import inputs
from workers.tasks.base import Cancelled, RunningJob
from workers.tasks.evaluate import PromotionTerms, verdict


class TrainInput(NamedTuple):
    """Inputs of a training, read before the session is closed.

    Attributes:
        workload: the workload with its samples.
        spec_version, model_version: versions of its spec and domain model.
        train_request: the request as the API received it.
        request: the same request for the learning engine.
        rivals: versions of the champions by role; None: a heuristic.
        champion_artifact: artifact of the champions' policies, which have to be beaten; None: heuristics only.
    """

    workload: Workload
    spec_version: int
    model_version: int
    train_request: TrainRequest
    request: Request
    rivals: Mapping[str, int | None]
    champion_artifact: bytes | None


def load(session: Session, row: tables.Workload, request: dict[str, Any]) -> TrainInput:
    """Return the inputs of a training: spec, model or samples, champions, and the agent to start from.

    Raises:
        LookupError: the domain model or the agent to start from has been deleted.
        Invalid: the request needs an extra that is not installed here.
    """
    train_request = TrainRequest.model_validate(request)
    combinations.require(train_request)
    model = inputs.model(session, row, train_request.model)
    return TrainInput(
        workload=inputs.workload(session, row, model, with_samples=True),
        spec_version=row.spec_version,
        model_version=model.version,
        train_request=train_request,
        request=_request(session, row.id, train_request),
        rivals=agents.rivals(row),
        champion_artifact=agents.answering(session, row),
    )


def _request(session: Session, workload_id: str, train_request: TrainRequest) -> Request:
    start = None
    if train_request.start_from is not None:
        agent = AGENTS.find(session, workload_id, train_request.start_from)
        if agent is None:
            raise LookupError(f"agent {train_request.start_from} was deleted")
        start = Start(agent.version, agent.algorithm, agent.artifact)
    return Request(
        train_request.algorithm,
        train_request.budget,
        train_request.seed,
        train_request.seeds,
        train_request.executor,
        train_request.device,
        train_request.imitate,
        start,
        train_request.equivalence_margin,
        force=train_request.force,
    )


def publish(session: Session, workload_id: str, inputs: TrainInput, trained: TrainedAgent) -> dict[str, Any]:
    """Store the agent, and promote it if the verdict permits; return the job's result, ``{"agent": version}``.

    Raises:
        NoResultFound: the workload was deleted.
    """
    workload = session.get_one(tables.Workload, workload_id, with_for_update=True)
    promote, reason = verdict(
        PromotionTerms(inputs.train_request, inputs.rivals), trained.report, agents.rivals(workload)
    )
    version = agents.publish(
        session,
        workload_id,
        agents.TrainingResult(
            spec_version=inputs.spec_version,
            model_version=inputs.model_version,
            algorithm=str(trained.report["algorithm"]),
            seed=int(trained.report["seed"]),
            report={
                **trained.report,
                "good_enough": trained.report["promoted"],
                TRAINED_FOR: trained_for(inputs.workload.spec),
            },
            artifact=trained.artifact,
            promote=promote,
            reason=reason,
        ),
    )
    return {"agent": version}


# Fit a domain model to all samples of a workload.


def fit(job: RunningJob) -> None:
    """Fit a domain model to all samples of the job's workload, and publish it.

    Raises:
        EstimationError: the samples permit no domain model.
        LeaseLost, Cancelled: another process has the job, or a caller has cancelled it.
    """
    with job.database.reading() as session:
        workload = session.get_one(tables.Workload, job.lease.workload_id)
        kind, spec_version = workload.kind, workload.spec_version
        workload_inputs = inputs.workload(session, workload, with_samples=True)
    fitted = learned_kind(kind).fit(workload_inputs, int(job.lease.request.get("seed", 0)))
    job.publish(
        lambda session: {
            "model": domain_models.publish(session, job.lease.workload_id, spec_version, fitted.report, fitted.model)
        }
    )


# A sweep: one task leads, and one task runs each trial; no task waits for another.
#
# `lead` runs while no trial does: it opens the trials as one group, compares them and continues the survivors, or
# publishes the best. `trial` advances one learner to its next comparison. The rules are in `Bracket`, and the trials'
# state is in the database, so that any worker can run or repeat any step.


class SweepStart(NamedTuple):
    """Spec, its version, and plan at a sweep's start, which apply to all steps of the sweep."""

    spec: Any
    spec_version: int
    planned: PlannedPolicy

    def pack(self) -> bytes:
        """Serialise all fields to the checkpoint of the training's job."""
        header = {"spec": self.spec.model_dump_json(), "spec_version": self.spec_version}
        return blob.pack({"planned": np.frombuffer(self.planned.pack(), np.uint8)}, header)

    @classmethod
    def unpack(cls, data: bytes) -> SweepStart:
        """Read the fields from bytes that `pack` returned; raises CheckpointError if they are no checkpoint."""
        arrays, header = blob.unpack(data)
        planned = PlannedPolicy.unpack(arrays["planned"].tobytes())
        return cls(read_spec(json.loads(header["spec"])), header["spec_version"], planned)


def lead(job: RunningJob, kind: Competing, inputs: TrainInput) -> None:
    """Run the next step of a sweep: open its trials, continue the best ones, or judge and publish the best.

    Raises:
        Untrainable: there is nothing to publish.
        Cancelled: the job was cancelled.
    """
    with job.database.reading() as session:
        known = sweeps.trial_statuses(session, job.lease.job_id)
    if not known or job.lease.checkpoint is None:
        _open(job, kind, inputs)
        return
    opened = SweepStart.unpack(job.lease.checkpoint)
    inputs = _as_opened(inputs, opened)
    bracket = Bracket(len(known))
    decision = bracket.decide([_record(trial) for trial in known])
    if decision.survivors:
        _resume(job, known, decision, bracket)
    else:
        _end(job, kind.training(inputs.workload, inputs.request), inputs, opened.planned, known, decision)


def _as_opened(inputs: TrainInput, opened: SweepStart) -> TrainInput:
    """Return the inputs with the spec that was in force at the sweep's start."""
    workload = replace(inputs.workload, spec=opened.spec)
    return inputs._replace(workload=workload, spec_version=opened.spec_version)


def _open(job: RunningJob, kind: Competing, inputs: TrainInput) -> None:
    """Plan, measure the baselines, and open all trials, unless there is nothing to win.

    Raises:
        Cancelled: the job is cancelled.
        Untrainable: there is nothing to win, and nothing to publish.
    """
    request = inputs.request
    job.progress(0.0, None, {"phase": "planning", "algorithm": request.algorithm}, bytes)
    problem = kind.training(inputs.workload, request)
    planned = problem.plan(request.tuning_budget, request.equivalence_margin)
    if planned.nothing_to_win and not request.force:
        _end(job, problem, inputs, planned, (), Decision((), {}))
        return
    known = yardsticks(kind.training(inputs.workload, request), request, planned)
    if known:
        fields: dict[str, Any] = {"phase": "measuring", "algorithm": request.algorithm, "yardsticks": known}
        job.progress(0.0, None, fields, bytes, once=True)
    result = entries(request, problem.competing)
    openings = [sweeps.Opening(entry.algorithm, entry.seed) for entry in result]
    opened = SweepStart(inputs.workload.spec, inputs.spec_version, planned)
    until = Bracket(len(result)).shares[0]
    if not sweeps.open_trials(job.database, job.lease, openings, until, opened.pack()):
        raise Cancelled(job.lease.job_id)


def _resume(job: RunningJob, known: Sequence[sweeps.TrialStatus], decision: Decision, bracket: Bracket) -> None:
    survivors = [known[i].job_id for i in decision.survivors]
    stopped = {known[i].job_id: reason for i, reason in decision.stopped.items()}
    until = bracket.shares[known[decision.survivors[0]].rungs]
    if not sweeps.resume_trials(job.database, job.lease, survivors, stopped, until):
        raise Cancelled(job.lease.job_id)


def _end(
    job: RunningJob,
    problem: TrainingProblem,
    inputs: TrainInput,
    planned: PlannedPolicy,
    known: Sequence[sweeps.TrialStatus],
    decision: Decision,
) -> None:
    """Judge the best trial or the plan, and publish it; raises Untrainable if there is nothing to publish."""
    live = {"phase": "judging", "algorithm": inputs.request.algorithm}
    job.progress(LEARNING, JUDGING_SECONDS, live, lambda: job.lease.checkpoint or b"")
    contenders = [
        Contender(_record(trial, decision.stopped.get(i)), trial.share, trial.artifact, trial.report)
        for i, trial in enumerate(known)
    ]
    trained = conclude(problem, inputs.request, contenders, planned, inputs.champion_artifact)
    resting = {known[i].job_id: reason for i, reason in decision.stopped.items()}

    def write(session: Session) -> dict[str, Any]:
        sweeps.hold(session, job.lease)
        result = publish(session, job.lease.workload_id, inputs, trained)
        sweeps.end(session, resting)
        return result

    job.publish(write)


def _record(trial: sweeps.TrialStatus, ended: str | None = None) -> TrialRecord:
    reason = trial.ended if trial.ended is not None else trial.failed
    return TrialRecord(Entry(trial.algorithm, trial.seed), trial.rungs, trial.score, reason if ended is None else ended)


def trial(job: RunningJob) -> None:
    """Advance one trial of a sweep to the next comparison of its trials.

    Raises:
        Untrainable: a requested warm start or imitation is impossible.
        LookupError: the sweep has ended.
        LeaseLost, Cancelled, WorkerStopping: the lease was lost, a caller cancelled the job, or the worker stops.
    """
    trial_input = _load_trial(job)
    entry, status = Entry(trial_input.status.algorithm, trial_input.status.seed), trial_input.status
    learner = Trial(trial_input.problem, trial_input.train_input.request, entry, Bracket(trial_input.many))
    try:
        if job.lease.checkpoint:
            learner.restore(job.lease.checkpoint)
        learner.prepare(trial_input.planned)
        while learner.share < status.until:
            learner.advance()
            _report(job, learner, status, trial_input.many)
        outcome, checkpoint = _outcome(learner, status), learner.checkpoint()
    finally:
        learner.close()
    if not sweeps.rest(job.database, job.lease, outcome, checkpoint):
        raise Cancelled(job.lease.job_id)


class _TrialInput(NamedTuple):
    """Inputs of a trial, read before the session is closed; ``many`` is the sweep's number of trials."""

    train_input: TrainInput
    problem: TrainingProblem
    planned: PlannedPolicy
    status: sweeps.TrialStatus
    many: int


def _load_trial(job: RunningJob) -> _TrialInput:
    with job.database.reading() as session:
        status = sweeps.trial_status(session, job.lease.job_id)
        parent = session.get_one(Job, job.lease.request["parent"])
        if status is None or parent.checkpoint is None:
            raise LookupError("the training that this is a trial of has ended")
        row = session.get_one(tables.Workload, parent.workload_id)
        inputs, opened, name = load(session, row, parent.request), SweepStart.unpack(parent.checkpoint), row.kind
    inputs, kind = _as_opened(inputs, opened), learned_kind(name)
    if not isinstance(kind, Competing):
        raise LookupError(f"trainings of kind {name} are no sweeps")
    problem = kind.training(inputs.workload, inputs.request)
    return _TrialInput(inputs, problem, opened.planned, status, len(entries(inputs.request, problem.competing)))


def _report(job: RunningJob, learner: Trial, status: sweeps.TrialStatus, many: int) -> None:
    who = {"phase": "learning", "trial": status.number, "trials": many, "rung": status.rungs}
    progress = sweeps.TrialProgress(
        learner.share, learner.bracket.work, learner.budget_seconds, {**who, **learner.live}, LEARNING
    )

    def write(data: bytes | None) -> bool:
        return sweeps.report_progress(job.database, job.lease, progress, data)

    job.report(write, learner.checkpoint)


def _outcome(learner: Trial, status: sweeps.TrialStatus) -> sweeps.Outcome:
    """Return the better one, by validation return, of the present policy and the trial's previous best."""
    tried = learner.compared()
    before = status.score
    if before is not None and status.artifact is not None and before >= tried.validation:
        return sweeps.Outcome(learner.share, before, learner.report, status.artifact)
    return sweeps.Outcome(learner.share, tried.validation, learner.report, tried.artifact)
