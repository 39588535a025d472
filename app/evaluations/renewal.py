"""Champions that an earlier version of the judge promoted are evaluated again, while workers have nothing else to do.

One evaluation is queued at a time, where no job waits and no evaluation goes on, and once for each agent: its report
keeps which job that is. Whatever it finds, the champion goes on: who answers is decided by trainings and by people.
"""

from __future__ import annotations

import logging

from sqlalchemy.orm import Session

from app.agents import repository as agents
from app.agents.standing import JUDGE, REEVALUATION, Present, judge_of
from app.database.engine import Database
from app.database.tables import Workload
from app.errors import StewardError
from app.evaluations import repository, service
from app.evaluations.repository import ChampionAgent
from app.evaluations.schemas import EvaluationRequest
from app.jobs.schemas import LOWEST_PRIORITY
from app.kinds.registry import KINDS

logger = logging.getLogger(__name__)


class Renewal:
    """Queues evaluations of champions, one after another; any number of processes may have one."""

    def __init__(self) -> None:
        self._settled = set[ChampionAgent]()
        """Agents that need no evaluation under the present spec, so that their reports are read once."""

    def step(self, database: Database) -> str | None:
        """Queue the next evaluation, if there is one to be made and nobody waits; its job's id."""
        with database.reading() as session:
            if repository.occupied(session):
                return None
            found = [one for one in repository.champions(session) if one not in self._settled]
        return next((job for one in found if (job := self._queued(database, one)) is not None), None)

    def _queued(self, database: Database, one: ChampionAgent) -> str | None:
        try:
            with database.session() as session:
                workload = session.get(Workload, one.workload_id, with_for_update=True)
                if workload is None or repository.occupied(session):  # another process was first
                    return None
                job = _queued(session, workload, one.version)
        except StewardError as error:
            logger.warning("agent %s of workload %s can't be evaluated again: %s", one.version, one.workload_id, error)
            job = None
        if job is None:
            self._settled.add(one)
        return job


def _queued(session: Session, workload: Workload, version: int) -> str | None:
    """Queue the evaluation of a workload's agent, whose row is held; None where it needs none."""
    agent = agents.find(session, workload.id, version)
    if agent is None or workload.kind not in KINDS or judge_of(agent.report) >= JUDGE:
        return None
    before = agent.report.get(REEVALUATION) or {}
    if before.get("judge") == JUDGE or Present(session, workload).standing(agent).state != "re_evaluate":
        return None  # it has been, or there is nothing to assess until it is trained anew
    request = EvaluationRequest(workload=workload.name, agents=[version], priority=LOWEST_PRIORITY)
    job = service.queue(session, workload, request)
    agent.report = {**agent.report, REEVALUATION: {"judge": JUDGE, "job": job.id}}
    logger.info("workload %s: agent %s is evaluated again by job %s", workload.name, version, job.id)
    return job.id
