"""Drift: settings of a workload's response, reading adaptations, and taking their due steps."""

from __future__ import annotations

import logging

from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError

from app.agents.algorithms import ONLINE
from app.audit import service as audit
from app.database.engine import Database
from app.database.leases import Clock, database_time
from app.database.tables import Adaptation, Workload
from app.drift import repository, steps
from app.drift.steps import AdaptationRead, DriftRead, DriftResponse
from app.errors import FieldError, Invalid
from app.kinds.contract.inputs import stored
from app.kinds.registry import KINDS
from app.retention import holds
from app.workloads import service as workloads

LISTED = 20

logger = logging.getLogger(__name__)


def get_drift(database: Database, tenant: str, name: str) -> DriftRead:
    """A workload's drift settings and its last 20 adaptations.

    Raises:
        NotFound: there is no such workload.
        BrokenRow: a stored row is invalid.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        result = repository.newest(session, workload.id, LISTED)
        with stored(f"drift of {workload.name!r}"):
            return DriftRead(
                workload=workload.name,
                response=DriftResponse.model_validate(workload.drift or {}),
                adaptations=[
                    AdaptationRead.model_validate(
                        {
                            "id": one.id,
                            "state": one.state,
                            "run": one.run_id,
                            "notice": one.notice,
                            "job": one.job_id,
                            "model": one.model_version,
                            "agent": one.agent_version,
                            "predecessor": one.predecessor,
                            "steps": one.steps,
                            "created_at": one.created_at,
                            "finished_at": one.finished_at,
                        }
                    )
                    for one in result
                ],
            )


def respond(database: Database, tenant: str, name: str, response: DriftResponse) -> DriftRead:
    """Set how a workload responds to drift; an adaptation in progress keeps its settings.

    Raises:
        Invalid: the workload's kind has no domain model, or the algorithm is online.
        NotFound: there is no such workload.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        if response.respond == "retrain":
            if response.algorithm == ONLINE:
                message = f"must be another than {ONLINE!r}, which adapts by itself"
                raise Invalid(f"algorithm {message}", errors=[FieldError("/algorithm", message, ONLINE)])
            if not KINDS[workload.kind].simulated:
                lacks = f"workloads of kind {workload.kind} have no domain model to drift from"
                raise Invalid(
                    f"respond must be 'off': {lacks}", errors=[FieldError("/respond", "must be 'off'", "retrain")]
                )
        workload.drift = None if response.respond == "off" else response.model_dump(mode="json")
        audit.add(session, tenant, "drift.respond", f"workload {workload.name}", response.model_dump(mode="json"))
    return get_drift(database, tenant, name)


def step(database: Database, clock: Clock = database_time) -> int:
    """Begin or advance the adaptation to drift of each workload where a step is due; return the number of steps taken.

    Several processes may call it at once. A step that fails is logged, and tried again by the next call.
    Raises SQLAlchemyError if the database fails.
    """
    with database.reading() as session:
        # Ids of workloads that respond to drift, or have an adaptation in progress
        open_ones = select(Adaptation.workload_id).where(Adaptation.going_on.is_(True))
        concerned = session.scalars(
            select(Workload.id).where(or_(Workload.drift.is_not(None), Workload.id.in_(open_ones)))
        ).all()
    return sum(_take_step(database, workload_id, clock) for workload_id in concerned)


def _take_step(database: Database, workload_id: str, clock: Clock) -> bool:
    """Take one workload's step if one is due; True if it was. Errors are logged; SQLAlchemyError is raised."""
    try:
        return _step(database, workload_id, clock)
    except SQLAlchemyError:
        raise
    except Exception:
        logger.exception("workload %s: the next step of its response to drift failed", workload_id)
        return False


def _step(database: Database, workload_id: str, clock: Clock) -> bool:
    with database.session() as session:
        workload = session.get(Workload, workload_id, with_for_update=True)
        if workload is None:
            return False
        now, going_on = clock(session), holds.going_on(session, workload_id)
        if going_on is None:
            return steps.begin(session, workload, now) is not None
        before = len(going_on.steps)
        steps.STEPS[going_on.state](steps.Context(session, workload, going_on, now))
        return len(going_on.steps) > before
