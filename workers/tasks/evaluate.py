"""Judge agents by the evaluation protocol, in resumable chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from app.agents import repository as agents
from app.database.tables import Job, Workload
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRequest, Verdict
from app.evaluations.service import Evaluated
from workers.evaluation.problem import Problem
from workers.evaluation.protocol import Candidate, EvaluationRun, Settings
from workers.tasks.base import RunningJob
from workers.tasks.benches import BENCHES, Asked, Bench

DRAWING = 0.99  # share of the progress bar at which only the page is left


class EvaluateInput(NamedTuple):
    """What an evaluation needs; no session is open any more.

    Attributes:
        versions: of the agents, by the name of their candidate.
        bench: what they are judged on.
    """

    request: EvaluationRequest
    spec_version: int
    candidates: Sequence[Candidate]
    versions: dict[str, int]
    bench: Bench


class Kept(NamedTuple):
    """A checkpoint: it holds for the spec that it was made under."""

    spec_version: int
    run: bytes


def load(job: RunningJob) -> EvaluateInput:
    """Read agents, spec and what they are judged on into arrays.

    Raises:
        LookupError: the model or an agent is not there any more.
    """
    request = EvaluationRequest.model_validate(job.lease.request)
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        candidates, models, moments = {}, [], []
        for version in map(int, request.agents):
            agent, artifact = agents.find(session, workload.id, version), agents.artifact(session, workload.id, version)
            if agent is None or artifact is None:
                raise LookupError(f"agent {version} is not there any more")
            models.append(agent.model_version)
            moments.append(agent.created_at)
            candidates[version] = _candidate(version, artifact.artifact, agent.report)
        asked = Asked(request, session.get_one(Job, job.lease.job_id).created_at, models, moments)
        bench = BENCHES[workload.kind](session, workload, asked)
        spec_version = workload.spec_version
    return EvaluateInput(
        request=request,
        spec_version=spec_version,
        candidates=list(candidates.values()),
        versions={candidate.name: version for version, candidate in candidates.items()},
        bench=bench,
    )


def _candidate(version: int, artifact: bytes, report: dict[str, Any]) -> Candidate:
    curve = tuple((int(steps), float(value)) for steps, value in report.get("curve") or ())
    return Candidate(f"agent {version}", (artifact,), curve=curve)


def evaluate(job: RunningJob) -> None:
    """Judge from the last checkpoint, draw the page, and publish."""
    given = load(job)
    problem, held_out = _problem(job, given)
    run = EvaluationRun(problem, given.candidates, _settings(given.request), _resumed(job, given))
    while not run.done:
        run.advance()
        job.progress(min(run.progress, DRAWING), run.eta_seconds, run.live, lambda: _kept(given, run))
    more = {"model": given.bench.model_version, "held_out": held_out, "off_policy": _off_policy(given)}
    report = finite({**run.result().as_dict(), **more})
    evaluated = _evaluated(job, given, report)
    job.publish(lambda session: {"evaluation": evaluations.publish(session, job.lease.workload_id, evaluated)})


def _off_policy(given: EvaluateInput) -> dict[str, Any]:
    """Of each agent, by version: its score on the runs that really happened, or the reason why there is none."""
    found = given.bench.off_policy(given.candidates)
    return {str(given.versions[name]): scored for name, scored in found.items()}


def _problem(job: RunningJob, given: EvaluateInput) -> tuple[Problem, dict[str, Any]]:
    if given.bench.fits:
        live = {"phase": "fitting the held-out executions", "level": "L3"}
        job.progress(job.lease.progress, None, live, lambda: job.lease.checkpoint or b"")
    return given.bench.problem()


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
        model_version=given.bench.model_version,
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
