"""Repetition of evaluations of champions that an earlier version of the judge promoted, while workers are idle.

One evaluation is queued at a time, if no job is queued and no evaluation running. An agent's report records its job. A
failed one is repeated up to three times, and again under a new spec. The result does not change the champion.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from sqlalchemy import and_, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.agents.evidence import JUDGE, REEVALUATION, Present
from app.agents.repository import AGENTS
from app.database.engine import Database
from app.database.tables import Agent, Champion, Job, Workload
from app.errors import StewardError
from app.evaluations import service
from app.evaluations.schemas import EvaluationRequest
from app.jobs.repository import OPEN
from app.jobs.service import LOWEST_PRIORITY
from app.kinds.registry import KINDS

MOST_LOOKED_AT = 20
"""Number of champions examined per step."""
PAUSE_SECONDS = 300.0
"""Seconds of pause after all champions need nothing."""
MOST_TRIES = 3
"""Largest number of evaluations of one agent under one spec, if they fail."""

logger = logging.getLogger(__name__)

Need = Literal["none", "going_on", "evaluation"]


class ChampionAgent(NamedTuple):
    """A champion: its agent's id and version, its workload's id, and the version of the workload's spec."""

    id: str
    version: int
    workload_id: str
    spec_version: int


def list_champions(session: Session) -> list[ChampionAgent]:
    """Champions of all tenants and roles, without duplicates, oldest agent first."""
    same = and_(Agent.workload_id == Champion.workload_id, Agent.version == Champion.version)
    statement = select(Agent.id, Agent.version, Workload.id, Workload.spec_version).join(Champion, same)
    statement = statement.join(Workload, Workload.id == Agent.workload_id).order_by(Agent.created_at, Agent.id)
    return list(dict.fromkeys(ChampionAgent(*row) for row in session.execute(statement)))


def is_busy(session: Session) -> bool:
    """Whether any tenant's job is queued, or any evaluation running."""
    going_on = and_(Job.type == "evaluate", Job.state == "running")
    return session.scalar(select(Job.id).where(or_(Job.state == "queued", going_on)).limit(1)) is not None


class Renewal:
    """Queues evaluations of champions one by one; several processes may run it.

    Args:
        clock: seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._again_at = clock, -float("inf")
        self._settled = set[ChampionAgent]()
        """Agents that need no evaluation under the present spec, so that their reports are read once."""

    def step(self, database: Database) -> str | None:
        """Queue the next evaluation if one is needed and workers are idle; returns its job's id, else None. Raises
        SQLAlchemyError if the database fails."""
        if self._clock() < self._again_at:
            return None
        with database.reading() as session:
            if is_busy(session):
                return None
            champions = list_champions(session)
            self._settled.intersection_update(champions)
            left = [one for one in champions if one not in self._settled]
            result = next((one for one in left[:MOST_LOOKED_AT] if self._may_need(session, one)), None)
        if result is not None:
            return self._queue_once(database, result)
        if len(left) <= MOST_LOOKED_AT:
            self._again_at = self._clock() + PAUSE_SECONDS
        return None

    def _may_need(self, session: Session, one: ChampionAgent) -> bool:
        """Whether an agent needs an evaluation now; agents that need none are remembered."""
        need: Need = "none"
        with self._isolate_errors(one):
            need = _need(session, session.get(Workload, one.workload_id), one.version)
        if need == "none":
            self._settled.add(one)
        return need == "evaluation"

    def _queue_once(self, database: Database, one: ChampionAgent) -> str | None:
        """Queue an agent's evaluation unless another process did; returns its job's id, else None."""
        job = None
        with self._isolate_errors(one), database.session() as session:
            workload = session.get(Workload, one.workload_id, with_for_update=True)
            agent = AGENTS.find(session, one.workload_id, one.version)
            first = not is_busy(session) and _need(session, workload, one.version) == "evaluation"
            if first and workload is not None and agent is not None:
                job = _queue(session, workload, agent)
        return job

    @contextmanager
    def _isolate_errors(self, one: ChampionAgent) -> Iterator[None]:
        """Context manager: log an agent's error and skip the agent from then on; errors of the database are raised."""
        try:
            yield
        except SQLAlchemyError:
            raise
        except Exception as error:
            self._settled.add(one)
            message = "agent %s of workload %s can't be evaluated again: %s"
            expected = isinstance(error, StewardError)
            logger.warning(message, one.version, one.workload_id, error, exc_info=None if expected else error)


def _need(session: Session, workload: Workload | None, version: int) -> Need:
    """`evaluation` if an agent needs one now, `going_on` if one is open, else `none`, also for an outdated agent."""
    agent = None if workload is None else AGENTS.find(session, workload.id, version)
    if workload is None or agent is None or workload.kind not in KINDS:
        return "none"
    if Present(session, workload, [agent]).validity(agent).state != "re_evaluate":
        return "none"
    before = agent.report.get(REEVALUATION)
    if before is None:
        return "evaluation"
    state = session.scalar(select(Job.state).where(Job.id == before["job"]))  # None: the job was deleted
    if state in OPEN:
        return "going_on"
    failed = state in ("failed", None) and _tries(workload, before) < MOST_TRIES
    return "evaluation" if failed or _tries(workload, before) == 0 else "none"


def _tries(workload: Workload, before: dict[str, Any]) -> int:
    """Number of evaluations of an agent under the present spec and judge; ``before``: its report's note of the last."""
    same = (before.get("judge"), before.get("spec_version")) == (JUDGE, workload.spec_version)
    return int(before.get("tries", 0)) if same else 0


def _queue(session: Session, workload: Workload, agent: Agent) -> str:
    """Queue the evaluation of an agent, whose workload's row is locked; returns its job's id."""
    request = EvaluationRequest(workload=workload.name, agents=[agent.version], priority=LOWEST_PRIORITY)
    job = service.queue(session, workload, request)
    tries = 1 + _tries(workload, agent.report.get(REEVALUATION) or {})
    evaluation = {"judge": JUDGE, "job": job.id, "spec_version": workload.spec_version, "tries": tries}
    agent.report = {**agent.report, REEVALUATION: evaluation}
    logger.info("workload %s: agent %s is evaluated again by job %s", workload.name, agent.version, job.id)
    return job.id
