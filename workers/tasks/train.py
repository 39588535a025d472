"""Train an agent on a workload's domain model, in resumable chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.agents import repository as agent_rows
from app.agents import service as agents
from app.agents.schemas import TrainRequest
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.learning.train import TrainedAgent, Training
from workers.tasks.base import RunningJob


class TrainInput(NamedTuple):
    """What a training needs; no session is open any more.

    Attributes:
        champion: version of the agent that answers now; None: the heuristics do.
        champion_artifact: its policy, which must be beaten.
    """

    spec: Spec
    spec_version: int
    table: ModelTable
    model_version: int
    request: TrainRequest
    champion: int | None
    champion_artifact: bytes | None


def load(job: RunningJob) -> TrainInput:
    """Read spec, model and champion into arrays.

    Raises:
        LookupError: the model is not there any more.
    """
    request = TrainRequest.model_validate(job.lease.request)
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        stored = domain_models.table(session, workload.id, request.model)
        answers = workload.champion
        champion = None if answers is None else agent_rows.artifact(session, workload.id, answers)
    if stored is None:
        raise LookupError(f"domain model {request.model} is not there any more")
    return TrainInput(
        spec=Spec.model_validate(workload.spec),
        spec_version=workload.spec_version,
        table=ModelTable.from_bytes(stored.table),
        model_version=stored.version,
        request=request,
        champion=answers,
        champion_artifact=None if champion is None else champion.artifact,
    )


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish."""
    given = load(job)
    training = Training(given.spec, given.table, given.request, job.lease.checkpoint, champion=given.champion_artifact)
    while not training.done:
        training.advance()
        job.progress(training.progress, training.eta_seconds, training.live, training.checkpoint)
    trained = training.result()
    job.publish(lambda session: publish(session, job.lease.workload_id, given, trained))


def publish(session: Session, workload_id: str, given: TrainInput, trained: TrainedAgent) -> dict[str, Any]:
    """Store the agent, and promote it if it may be; the job's result."""
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    promote, reason = verdict(given, trained.report, workload.champion)
    version = agents.publish(
        session,
        workload_id,
        agents.Trained(
            spec_version=given.spec_version,
            model_version=given.model_version,
            algorithm=str(trained.report["algorithm"]),
            seed=given.request.seed,
            report=trained.report,
            artifact=trained.artifact,
            promote=promote,
            reason=reason,
        ),
    )
    return {"agent": version}


def verdict(given: TrainInput, report: dict[str, Any], champion: int | None) -> tuple[bool, str]:
    """Whether the agent becomes the champion, and why; `champion` is who answers at this moment."""
    reason = str(report["reason"])
    if not report["promoted"]:
        return False, reason
    if not given.request.promote:
        return False, f"good enough, but not promoted, as was asked for: {reason}"
    if given.request.require:
        return False, f"good enough, and waits for {' and '.join(given.request.require)}: {reason}"
    if champion != given.champion:
        present = "a heuristic" if champion is None else f"agent {champion}"
        return False, f"the champion was changed during the training, and {present} was not its rival: {reason}"
    return True, reason
