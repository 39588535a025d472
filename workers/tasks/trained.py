"""The two ends of every training: what it is given, and the agent that it publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.agents import extras
from app.agents import repository as agent_rows
from app.agents import service as agents
from app.agents.schemas import TrainRequest
from app.agents.standing import TRAINED_FOR, trained_for
from app.database import tables
from workers.inputs import Workload
from workers.learning.training.driver import TrainedAgent
from workers.learning.training.request import Request, Start
from workers.tasks import inputs
from workers.tasks.verdict import PromotionTerms, verdict


class TrainInput(NamedTuple):
    """What a training needs; no session is open any more.

    Attributes:
        train_request: as it came over HTTP.
        request: the same, for the learning engine.
        rivals: versions of the agents that answer now, by role; None: the heuristics do.
        champion_artifact: their policy, or policies, which must be beaten.
    """

    workload: Workload
    spec_version: int
    model_version: int
    train_request: TrainRequest
    request: Request
    rivals: Mapping[str, int | None]
    champion_artifact: bytes | None


def load(session: Session, row: tables.Workload, request: dict[str, Any]) -> TrainInput:
    """Read spec, model or samples, champion and the agent that is gone on from.

    Raises:
        LookupError: the model, or that agent, is not there any more.
        Invalid: it asks for an extra that is not installed here.
    """
    train_request = TrainRequest.stored(request)
    extras.require(train_request)
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
        agent = agent_rows.find(session, workload_id, train_request.start_from)
        if agent is None:
            raise LookupError(f"agent {train_request.start_from} is not there any more")
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
    )


def publish(session: Session, workload_id: str, given: TrainInput, trained: TrainedAgent) -> dict[str, Any]:
    """Store the agent, and promote it if it may be; the job's result."""
    workload = session.get_one(tables.Workload, workload_id, with_for_update=True)
    promote, reason = verdict(
        PromotionTerms(given.train_request, given.rivals), trained.report, agents.rivals(workload)
    )
    version = agents.publish(
        session,
        workload_id,
        agents.Trained(
            spec_version=given.spec_version,
            model_version=given.model_version,
            algorithm=str(trained.report["algorithm"]),
            seed=int(trained.report["seed"]),
            report={
                **trained.report,
                "good_enough": trained.report["promoted"],
                TRAINED_FOR: trained_for(given.workload.spec),
            },
            artifact=trained.artifact,
            promote=promote,
            reason=reason,
        ),
    )
    return {"agent": version}
