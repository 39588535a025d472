"""Judge agents by the evaluation protocol, in resumable chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from app.agents import repository as agents
from app.database.tables import Job, Workload
from app.domain_models import repository as domain_models
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRequest, Verdict
from app.evaluations.service import Evaluated
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.log import Log
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from app.policies.artifact import load as load_artifact
from app.runs.logs import logged
from app.samples.service import layout_of
from workers.evaluation.off_policy import TooFewRuns, score
from workers.evaluation.problem import problem_of
from workers.evaluation.protocol import Candidate, EvaluationRun, Settings
from workers.tasks.base import RunningJob
from workers.tasks.held_out import HeldOutModel, Split, model_of, split

HOLDING_OUT = ("L3", "L4")
DRAWING = 0.99  # share of the progress bar at which only the page is left


class EvaluateInput(NamedTuple):
    """What an evaluation needs; no session is open any more.

    Attributes:
        versions: of the agents, by the name of their candidate.
        held_out: executions for L3; None where the evaluation ends before it.
        logs: the workload's last ended runs.
    """

    request: EvaluationRequest
    spec: Spec
    spec_version: int
    table: ModelTable
    model_version: int
    candidates: Sequence[Candidate]
    versions: dict[str, int]
    held_out: Split | None
    logs: Sequence[Log]


class Kept(NamedTuple):
    """A checkpoint: it holds for the spec that it was made under."""

    spec_version: int
    run: bytes


def load(job: RunningJob) -> EvaluateInput:
    """Read spec, model, agents and held-out executions into arrays.

    Raises:
        LookupError: the model or an agent is not there any more.
    """
    request = EvaluationRequest.model_validate(job.lease.request)
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        stored = domain_models.table(session, workload.id, request.model)
        if stored is None:
            raise LookupError(f"domain model {request.model} is not there any more")
        candidates, trained_on = {}, []
        for version in map(int, request.agents):
            agent, artifact = agents.find(session, workload.id, version), agents.artifact(session, workload.id, version)
            if agent is None or artifact is None:
                raise LookupError(f"agent {version} is not there any more")
            trained_on.append(agent.model_version)
            candidates[version] = _candidate(version, artifact.artifact, agent.report)
        held_out = None
        if request.level in HOLDING_OUT:
            asked_at = session.get_one(Job, job.lease.job_id).created_at
            held_out = split(session, workload, request.held_out, trained_on, asked_at, request.seed)
        logs = logged(session, workload.id, layout_of(workload))
    return EvaluateInput(
        request=request,
        spec=Spec.model_validate(workload.spec),
        spec_version=workload.spec_version,
        table=ModelTable.from_bytes(stored.table),
        model_version=stored.version,
        candidates=list(candidates.values()),
        versions={candidate.name: version for version, candidate in candidates.items()},
        held_out=held_out,
        logs=logs,
    )


def _candidate(version: int, artifact: bytes, report: dict[str, Any]) -> Candidate:
    curve = tuple((int(steps), float(value)) for steps, value in report.get("curve") or ())
    return Candidate(f"agent {version}", (artifact,), curve=curve)


def evaluate(job: RunningJob) -> None:
    """Judge from the last checkpoint, draw the page, and publish."""
    given = load(job)
    held_out = _held_out(job, given)
    tables = () if held_out.table is None else (held_out.table,)
    problem = problem_of(given.spec, given.table, held_out=tables, without=held_out.told["reason"])
    run = EvaluationRun(problem, given.candidates, _settings(given.request), _resumed(job, given))
    while not run.done:
        run.advance()
        job.progress(min(run.progress, DRAWING), run.eta_seconds, run.live, lambda: _kept(given, run))
    more = {"model": given.model_version, "held_out": held_out.told, "off_policy": off_policy(given)}
    report = finite({**run.result().as_dict(), **more})
    evaluated = _evaluated(job, given, report)
    job.publish(lambda session: {"evaluation": evaluations.publish(session, job.lease.workload_id, evaluated)})


def off_policy(given: EvaluateInput) -> dict[str, Any]:
    """Of each agent, by version: its score on the runs that really happened, or the reason why there is none."""
    layout = Layout(given.spec)
    found: dict[str, Any] = {}
    for candidate in given.candidates:
        artifact = load_artifact(cast("bytes", candidate.contenders[0]))
        try:
            scored = score(layout, given.table, artifact, given.logs, seed=given.request.seed)
        except TooFewRuns as error:
            scored = {"reason": str(error)}
        found[str(given.versions[candidate.name])] = scored
    return found


def _held_out(job: RunningJob, given: EvaluateInput) -> HeldOutModel:
    if given.held_out is None:
        return HeldOutModel(None, {"executions": 0, "unseen": 0, "names": [], "reason": "not asked for", "note": None})
    live = {"phase": "fitting the held-out executions", "level": "L3"}
    job.progress(job.lease.progress, None, live, lambda: job.lease.checkpoint or b"")
    return model_of(given.spec, given.held_out, given.request.seed)


def _settings(request: EvaluationRequest) -> Settings:
    return Settings(seeds=request.seeds, episodes=request.episodes, seed=request.seed, level=request.level)


def _resumed(job: RunningJob, given: EvaluateInput) -> bytes | None:
    """What to go on from; nothing where the spec was changed meanwhile."""
    if not job.lease.checkpoint:
        return None
    kept = msgspec.msgpack.decode(job.lease.checkpoint, type=Kept)
    return kept.run if kept.spec_version == given.spec_version else None


def _kept(given: EvaluateInput, run: EvaluationRun) -> bytes:
    return msgspec.msgpack.encode(Kept(given.spec_version, run.checkpoint()))


def _evaluated(job: RunningJob, given: EvaluateInput, report: dict[str, Any]) -> Evaluated:
    from workers.evaluation.report.page import page

    return Evaluated(
        spec_version=given.spec_version,
        model_version=given.model_version,
        request=job.lease.request,
        verdicts=verdicts(report, given.versions),
        report=report,
        page=page(report).encode(),
    )


def verdicts(report: dict[str, Any], versions: dict[str, int]) -> list[Verdict]:
    """Class and reason of each agent."""
    return [
        Verdict(
            agent=versions[candidate["name"]],
            level=None if candidate["class"] == "none" else candidate["class"],
            reason=candidate["verdict"],
        )
        for candidate in report["candidates"]
    ]


def finite(value: Any) -> Any:
    """A report as JSON can carry it: what is not a finite number is null."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
