"""Train an agent on a workload's domain model, in resumable chunks; several learners are a matter of `sweep`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.agents import repository as agent_rows
from app.agents.schemas import TrainRequest
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.training.train import Request, Start, Training
from workers.tasks.base import RunningJob
from workers.tasks.trained import Terms, publish, run
from workers.tasks.verdict import Rival


class TrainInput(NamedTuple):
    """What a training needs; no session is open any more.

    Attributes:
        asked: as it came over HTTP.
        request: the same, for the learning engine.
        champion: version of the agent that answers now; None: the heuristics do.
        champion_artifact: its policy, which must be beaten.
    """

    spec: Spec
    spec_version: int
    table: ModelTable
    model_version: int
    asked: TrainRequest
    request: Request
    champion: int | None
    champion_artifact: bytes | None


def load(session: Session, workload_id: str, request: dict[str, Any]) -> TrainInput:
    """Read spec, model, champion and the agent that is gone on from into arrays.

    Raises:
        LookupError: the model, or that agent, is not there any more.
    """
    asked = TrainRequest.stored(request)
    workload = session.get_one(Workload, workload_id)
    stored = domain_models.table(session, workload.id, asked.model)
    if stored is None:
        raise LookupError(f"domain model {asked.model} is not there any more")
    answers = workload.champion
    champion = None if answers is None else agent_rows.artifact(session, workload.id, answers)
    return TrainInput(
        spec=Spec.model_validate(workload.spec),
        spec_version=workload.spec_version,
        table=ModelTable.from_bytes(stored.table),
        model_version=stored.version,
        asked=asked,
        request=_request(session, workload_id, asked),
        champion=answers,
        champion_artifact=None if champion is None else champion.artifact,
    )


def _request(session: Session, workload_id: str, asked: TrainRequest) -> Request:
    start = None
    if asked.start_from is not None:
        agent = agent_rows.find(session, workload_id, asked.start_from)
        if agent is None:
            raise LookupError(f"agent {asked.start_from} is not there any more")
        start = Start(agent.version, agent.algorithm, agent.artifact)
    return Request(
        asked.algorithm, asked.budget, asked.seed, asked.seeds, asked.executor, asked.device, asked.imitate, start
    )


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish, as the workload's kind does it."""
    with job.database.reading() as session:
        kind = session.get_one(Workload, job.lease.workload_id).kind
    TRAININGS[kind](job)


def _schedule(job: RunningJob) -> None:
    from workers.kinds.workflow.training import schedulers

    schedulers.train(job)


def _allocate(job: RunningJob) -> None:
    """In simulators of the domain model; with several learners, take the next step of their sweep."""
    from workers.tasks import sweep

    with job.database.reading() as session:
        given = load(session, job.lease.workload_id, job.lease.request)
    if sweep.has_many(given.request):
        sweep.lead(job, given)
    else:
        alone(job, given)


def alone(job: RunningJob, given: TrainInput) -> None:
    """Train one learner, or none, in this process."""
    training = Training(given.spec, given.table, given.request, job.lease.checkpoint, champion=given.champion_artifact)
    trained = run(job, training)
    job.publish(lambda session: publish(session, job.lease.workload_id, terms(given), trained))


def terms(given: TrainInput) -> Terms:
    """What the agent is published under."""
    return Terms(Rival(given.asked, given.champion), given.spec_version, given.model_version)


TRAININGS: dict[str, Callable[[RunningJob], None]] = {"iterative": _allocate, "workflow": _schedule}
"""What trains an agent, by kind."""
