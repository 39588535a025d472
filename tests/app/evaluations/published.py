"""Evaluations as workers publish them."""

from __future__ import annotations

from typing import Any

from app.database.engine import Database
from app.evaluations import service as evaluations
from app.evaluations.schemas import Verdict
from app.evaluations.service import EvaluationResult
from app.workloads import service as workloads
from tests.app.domain_models.published import TENANT

REPORT: dict[str, Any] = {"schema": "steward.evaluation/1", "levels": []}
PAGE = b"<!doctype html><title>an evaluation</title>"


def publish_evaluation(database: Database, name: str, agent: int = 1, *, outdated: bool = False) -> str:
    """An evaluation that found one agent to be of class L2, or outdated; its id."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        level, reason = (None, "it is outdated") if outdated else ("L2", "L3 can't be judged")
        verdicts = [Verdict.model_validate({"agent": agent, "level": level, "reason": reason, "outdated": outdated})]
        evaluated = EvaluationResult(1, 1, {"agents": [agent], "model": 1}, verdicts, REPORT, PAGE)
        return evaluations.publish(session, workload.id, evaluated)
