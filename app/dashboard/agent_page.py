"""An agent's page: how it was judged, what would change if it answered, and what it does where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from app.agents import repository
from app.agents import service as agents
from app.agents.schemas import AgentRead
from app.charts.figure import Figure
from app.dashboard import shown
from app.dashboard.judged import Outcomes, compared, facts, figures, level, outcomes, status
from app.dashboard.shown import CompiledOf
from app.database.engine import Database
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRead
from app.http.pagination import PageRequest
from app.kinds.contract.engine import DEFAULT_ROLE, RolePolicy
from app.kinds.contract.views import Fact
from app.kinds.registry import KINDS, load_artifact
from app.workloads import service as workloads
from app.workloads.schemas import WorkloadListed

JUDGED = 50
"""Evaluations of the workload among which those of an agent are looked for."""


class AgentPage(NamedTuple):
    """Everything on an agent's page; ``holds``: whether its report's figures do now."""

    workload: WorkloadListed
    agent: AgentRead
    status: str
    why: str
    facts: Sequence[Fact]
    outcomes: Outcomes | None
    holds: bool
    ranking: Figure | None
    does: Sequence[Figure]
    now: Sequence[Figure]
    evaluations: Sequence[EvaluationRead]
    problems: Sequence[str]


def page(database: Database, tenant: str, name: str, version: int, compiled_of: CompiledOf) -> AgentPage:
    """An agent's page as it stands.

    Raises:
        NotFound: no such workload, or agent of it.
    """
    with database.reading() as session:
        row = workloads.require(session, tenant, name)
        agent = agents.read(session, row, [agents.require(session, row, version)])[0]
        stored = repository.artifact(session, row.id, version)
        workload = workloads.read_listed(row)
    judged = evaluations.listed(database, tenant, PageRequest(JUDGED), row.name)[0].rows
    read = [evaluations.read(one, row.name) for one in judged]
    views, compiled = shown.views(row.kind), shown.compiled_or_none(compiled_of, row.name)
    now, does, problems = list[Any](), list[Any](), list[str]()
    if views is not None and compiled is not None:
        now, no_now = shown.told("what answers", lambda: views.policy(compiled))
        problems += [no_now] if no_now else []
    if views is not None and now and stored is not None and not agent.champion:
        data = stored.artifact
        does, no_does = shown.told("what it does", lambda: views.policy(_answering(row.kind, compiled, version, data)))
        problems += [no_does] if no_does else []
    return AgentPage(
        workload,
        agent,
        status(agent),
        str(agent.report.get("reason", "")),
        list(facts(agent, level(read, agent))),
        outcomes(agent.report),
        bool(figures(agent)),
        compared(agent),
        does,
        now,
        [one for one in read if any(verdict.agent == version for verdict in one.verdicts)],
        problems,
    )


def _answering(kind: str, compiled: Any, version: int, data: bytes) -> Any:
    """The workload as if the agent answered."""
    made = load_artifact(data)
    KINDS[kind].check(made, compiled.snapshot.layout)
    policies = {DEFAULT_ROLE: RolePolicy(version, made)}
    snapshot = replace(compiled.snapshot, artifact=made, agent_version=version, policies=policies)
    return KINDS[kind].engine.compile(snapshot)
