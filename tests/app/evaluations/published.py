"""Evaluations as workers publish them."""

from __future__ import annotations

from typing import Any

from app.database.engine import Database
from app.evaluations import service as evaluations
from app.evaluations.schemas import Verdict
from app.evaluations.service import Evaluated
from app.workloads import service as workloads
from tests.app.domain_models.published import TENANT

REPORT: dict[str, Any] = {"schema": "steward.evaluation/1", "levels": []}
PAGE = b"<!doctype html><title>an evaluation</title>"


def publish_evaluation(database: Database, name: str, agent: int = 1) -> str:
    """An evaluation that found one agent to be of class L2; its id."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        verdicts = [Verdict(agent=agent, level="L2", reason="L3 can't be judged")]
        evaluated = Evaluated(1, 1, {"agents": [agent], "model": 1}, verdicts, REPORT, PAGE)
        return evaluations.publish(session, workload.id, evaluated)
