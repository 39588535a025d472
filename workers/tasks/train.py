"""Train an agent on a workload's domain model, in resumable chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.agents import service as agents
from app.agents.schemas import TrainRequest
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.tasks.base import RunningJob


class TrainInput(NamedTuple):
    """What a training needs; no session is open any more."""

    spec: Spec
    spec_version: int
    table: ModelTable
    model_version: int
    request: TrainRequest


def load(job: RunningJob) -> TrainInput:
    """Read spec and model into arrays."""
    request = TrainRequest.model_validate(job.lease.request)
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        stored = domain_models.table(session, workload.id, request.model)
    if stored is None:
        raise LookupError(f"domain model {request.model} is not there any more")
    table = ModelTable.from_bytes(stored.table)
    spec = Spec.model_validate(workload.spec)
    return TrainInput(spec, workload.spec_version, table, stored.version, request)


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish."""
    from workers.learning.train import Training

    given = load(job)
    training = Training(given.spec, given.table, given.request, job.lease.checkpoint)
    while not training.done:
        training.advance()
        job.progress(training.progress, training.eta_seconds, training.live, training.checkpoint)
    trained = training.result()
    report = trained.report
    job.publish(
        lambda session: {
            "agent": agents.publish(
                session,
                job.lease.workload_id,
                agents.Trained(
                    spec_version=given.spec_version,
                    model_version=given.model_version,
                    algorithm=str(report["algorithm"]),
                    seed=given.request.seed,
                    report=report,
                    artifact=trained.artifact,
                    promote=bool(report["promoted"]) and given.request.promote,
                    reason=_reason(report, given.request),
                ),
            )
        }
    )


def _reason(report: dict[str, Any], request: TrainRequest) -> str:
    """Why it was promoted or not, in words."""
    reason = str(report["reason"])
    held_back = bool(report["promoted"]) and not request.promote
    return f"{reason}; held back, as the request asked" if held_back else reason
