"""The task `evaluate`, and the decision on promotion after a training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy.orm import Session

from app.agents.evidence import FIRST_JUDGE, JUDGE, Present
from app.agents.repository import AGENTS
from app.agents.schemas import TrainRequest
from app.database import tables
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRequest, Verdict
from app.evaluations.service import EvaluationResult
from app.kinds.registry import KINDS
from workers.evaluation.protocol import Candidate, EvaluationRun, Settings
from workers.inputs import HoldOut, LoggedRun, Workload
from workers.kinds.contract import Evaluation, LearnedKind, learned_kind
from workers.tasks import inputs
from workers.tasks.base import RunningJob

HOLDING_OUT = ("L3", "L4")
DRAWING = 0.99  # progress at which only the page is left to render


class EvaluateInput(NamedTuple):
    """Inputs of an evaluation, read before the session is closed.

    Attributes:
        request: the request as the API received it.
        kind, workload: kind and workload to evaluate on.
        spec_version, model_version: versions of the workload's spec and domain model.
        candidates: the agents to evaluate.
        versions: agents' versions by candidate's name.
        held_out: which samples to hold out; None: the evaluation ends below L3.
        runs: finished runs for off-policy estimates; empty for kinds without them.
    """

    request: EvaluationRequest
    kind: LearnedKind
    workload: Workload
    spec_version: int
    model_version: int
    candidates: Sequence[Candidate]
    versions: dict[str, int]
    held_out: HoldOut | None
    runs: Sequence[LoggedRun]


class EvaluationCheckpoint(NamedTuple):
    """Checkpoint of an evaluation (``run``), valid for these versions of the spec and of the judge's rules only."""

    spec_version: int
    run: bytes
    judge: int = FIRST_JUDGE


def load(job: RunningJob) -> EvaluateInput:
    """Return the inputs of an evaluation: the agents, the spec and the evaluation data of its job.

    Raises:
        LookupError: the domain model or an agent has been deleted.
    """
    request = EvaluationRequest.model_validate(job.lease.request)
    with job.database.reading() as session:
        row = session.get_one(tables.Workload, job.lease.workload_id)
        kind, model = learned_kind(row.kind), inputs.model(session, row, request.model)
        agents = {int(version): _agent(session, row, int(version)) for version in request.agents}
        held_out = None
        if request.level in HOLDING_OUT and not all(one.candidate.outdated for one in agents.values()):
            models, trained = [one.model_version for one in agents.values()], [one.at for one in agents.values()]
            held_out = inputs.held_out(session, row, request.held_out, models, trained)
        samples = held_out is not None or inputs.from_samples(row)
        requested_at = session.get_one(tables.Job, job.lease.job_id).created_at
        return EvaluateInput(
            request=request,
            kind=kind,
            workload=inputs.workload(session, row, model, with_samples=samples, until=requested_at),
            spec_version=row.spec_version,
            model_version=model.version,
            candidates=[one.candidate for one in agents.values()],
            versions={one.candidate.name: version for version, one in agents.items()},
            held_out=held_out,
            runs=inputs.runs(session, row) if kind.reads_runs else (),
        )


class _Agent(NamedTuple):
    candidate: Candidate
    model_version: int
    at: datetime


def _agent(session: Session, row: tables.Workload, version: int) -> _Agent:
    agent = AGENTS.find(session, row.id, version)
    if agent is None:
        raise LookupError(f"agent {version} was deleted")
    curve = tuple((int(steps), float(value)) for steps, value in agent.report.get("curve") or ())
    candidate = Candidate(f"agent {version}", (agent.artifact,), curve, Present(session, row, [agent]).outdated(agent))
    return _Agent(candidate, agent.model_version, agent.created_at)


def evaluate(job: RunningJob) -> None:
    """Run the evaluation from the last checkpoint, render the page, and publish both.

    Raises:
        LookupError: the domain model or an agent has been deleted.
        LeaseLost, Cancelled, WorkerStopping: the lease was lost, a caller cancelled the job, or the worker stops.
    """
    inputs = load(job)
    problem, held_out = _evaluation(job, inputs)
    wanted = inputs.request
    settings = Settings(
        seeds=wanted.seeds,
        episodes=wanted.episodes,
        seed=wanted.seed,
        level=wanted.level,
        equivalence_margin=wanted.equivalence_margin,
    )
    run = EvaluationRun(problem, inputs.candidates, settings, _resume_checkpoint(job, inputs))
    while not run.done:
        run.advance()
        job.progress(
            min(run.progress, DRAWING),
            run.eta_seconds,
            run.live,
            lambda: msgspec.msgpack.encode(EvaluationCheckpoint(inputs.spec_version, run.checkpoint(), JUDGE)),
        )
    scored = {  # by agent version: off-policy estimates on finished runs, or the reason for having none
        str(inputs.versions[one.name]): inputs.kind.off_policy(
            inputs.workload, cast("bytes", one.contenders[0]), inputs.runs
        )
        for one in inputs.candidates
        if not one.outdated
    }
    more = {"model": inputs.model_version, "held_out": held_out, "off_policy": scored}
    report = finite({**run.result().as_dict(), **more})
    evaluated = _run_evaluation(job, inputs, report)
    job.publish(lambda session: {"evaluation": evaluations.publish(session, job.lease.workload_id, evaluated)})


def _evaluation(job: RunningJob, inputs: EvaluateInput) -> Evaluation:
    if inputs.held_out is not None and KINDS[inputs.kind.name].simulated:
        live = {"phase": "fitting the held-out executions", "level": "L3"}
        job.progress(job.lease.progress, None, live, lambda: job.lease.checkpoint or b"")
    return inputs.kind.evaluation(inputs.workload, inputs.held_out, inputs.request.seed)


def _resume_checkpoint(job: RunningJob, inputs: EvaluateInput) -> bytes | None:
    """Return the checkpoint of the run to resume; None without one, or if spec or judge have changed since."""
    if not job.lease.checkpoint:
        return None
    checkpoint = msgspec.msgpack.decode(job.lease.checkpoint, type=EvaluationCheckpoint)
    return checkpoint.run if (checkpoint.spec_version, checkpoint.judge) == (inputs.spec_version, JUDGE) else None


def _run_evaluation(job: RunningJob, inputs: EvaluateInput, report: dict[str, Any]) -> EvaluationResult:
    from workers.evaluation.report.page import page

    return EvaluationResult(
        spec_version=inputs.spec_version,
        model_version=inputs.model_version,
        request=job.lease.request,
        verdicts=verdicts(report, inputs.versions),
        report=report,
        page=page(report).encode(),
    )


def verdicts(report: dict[str, Any], versions: dict[str, int]) -> list[Verdict]:
    """Return each agent's class (None: no class) and reason, from an evaluation's report and versions by name."""
    return [
        Verdict(
            agent=versions[candidate["name"]],
            level=None if candidate["class"] == "none" else candidate["class"],
            reason=candidate["verdict"],
            outdated=candidate["outdated"] is not None,
        )
        for candidate in report["candidates"]
    ]


def finite(value: Any) -> Any:
    """Return a copy of JSON values in which numbers that are not finite are None, as JSON requires."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


# Decision whether a trained agent becomes champion.


class PromotionTerms(NamedTuple):
    """Training request, and the champions when the training began: version by role (None: a heuristic)."""

    request: TrainRequest
    rivals: Mapping[str, int | None]


def verdict(terms: PromotionTerms, report: dict[str, Any], rivals: Mapping[str, int | None]) -> tuple[bool, str]:
    """Return whether a trained agent becomes champion, and why; ``rivals`` are the present champions by role."""
    reason = str(report["reason"])
    if not report["promoted"]:
        return False, reason
    if not terms.request.promote:
        return False, f"good enough, but not promoted, as requested: {reason}"
    if terms.request.require:
        return False, f"good enough, and waits for {' and '.join(terms.request.require)}: {reason}"
    changed = [version for role, version in rivals.items() if version != terms.rivals.get(role)]
    if changed:
        present = list(dict.fromkeys("a heuristic" if one is None else f"agent {one}" for one in changed))
        rivals_not = "was not its rival" if len(present) == 1 else "were not its rivals"
        return (
            False,
            f"the champion was changed during the training, and {' and '.join(present)} {rivals_not}: {reason}",
        )
    return True, reason
