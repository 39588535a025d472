"""Train a scheduler on the traces of a workload of kind ``workflow``, in resumable chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.agents import repository as agent_rows
from app.agents.schemas import TrainRequest
from app.agents.service import NO_MODEL
from app.database.tables import Workload
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace
from app.samples import service as samples
from workers.kinds.workflow.training.train import Training
from workers.tasks.base import RunningJob
from workers.tasks.trained import Terms, publish, run
from workers.tasks.verdict import Rival


class TrainInput(NamedTuple):
    """What a training needs; no session is open any more.

    Attributes:
        traces: by the name of their execution.
        rival: who answers now, which must be beaten.
        champion_artifact: its policy; None: the spec's strategy answers.
    """

    spec: Spec
    spec_version: int
    traces: tuple[tuple[str, Trace], ...]
    asked: TrainRequest
    rival: Rival
    champion_artifact: bytes | None


def load(session: Session, workload_id: str, request: dict[str, Any]) -> TrainInput:
    """Read spec, traces and champion."""
    asked = TrainRequest.stored(request)
    workload = session.get_one(Workload, workload_id)
    answers = workload.champion
    champion = None if answers is None else agent_rows.artifact(session, workload.id, answers)
    return TrainInput(
        spec=Spec.model_validate(workload.spec),
        spec_version=workload.spec_version,
        traces=tuple(samples.executions(session, workload)),
        asked=asked,
        rival=Rival(asked, answers),
        champion_artifact=None if champion is None else champion.artifact,
    )


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish."""
    with job.database.reading() as session:
        given = load(session, job.lease.workload_id, job.lease.request)
    training = Training(
        given.spec,
        given.traces,
        given.asked.seed,
        given.asked.budget,
        job.lease.checkpoint,
        champion=given.champion_artifact,
    )
    trained = run(job, training)
    terms = Terms(given.rival, given.spec_version, NO_MODEL)
    job.publish(lambda session: publish(session, job.lease.workload_id, terms, trained))
