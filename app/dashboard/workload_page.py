"""A workload's page: measurements, model, agents, policy, runs and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from app.agents import service as agents
from app.agents.schemas import AgentRead
from app.charts.figures import Figure
from app.charts.text import duration, percent
from app.charts.timeline import Came, Coming, forecast
from app.dashboard import lists, repository
from app.dashboard.judged import figures, invalid_reason, level, ranking_figure, status, verdict_line
from app.dashboard.lists import CompiledOf
from app.dashboard.tables import JobQuery, JobTable, RunQuery, RunTable, job_table, run_table
from app.database.engine import Database
from app.database.tables import Workload
from app.domain_models import service as models_of
from app.domain_models.repository import MODELS
from app.errors import Invalid
from app.evaluations import service as evaluations
from app.http.pagination import PageRequest
from app.kinds.contract.kind import Description
from app.kinds.contract.views import Learnt
from app.kinds.forecasting.answer import Forecast
from app.kinds.registry import KINDS
from app.runs.outcomes import Staleness
from app.samples.body import codec_of
from app.workloads import priors
from app.workloads import service as workloads
from app.workloads.service import WorkloadListed

EXECUTIONS, AGENTS, RUNS, JOBS = 60, 10, 10, 8
MOST_SERIES = 6


class AgentLine(NamedTuple):
    """An agent in a list.

    Attributes:
        status: its present or former championship.
        invalid_reason: why its verdict does not hold; empty if it holds.
        mean: mean return in its report; None if its figures don't hold.
        level: its robustness level by the newest valid evaluation.
        verdict: its verdict in one sentence; empty if it holds no more.
        reason: its verdict at the end of its training.
    """

    version: int
    algorithm: str
    champion: bool
    status: str
    invalid_reason: str
    mean: float | None
    level: str
    verdict: str
    reason: str
    created_at: datetime


class WorkloadPage(NamedTuple):
    """Content of a workload's page; if its spec can't be read, ``described`` is None and ``problems`` says why.
    ``similar``: names of the workloads that its first decisions are predicted from, and whether each still is one.
    ``startable``: whether a run can be started without parameters."""

    workload: WorkloadListed
    described: Description | None
    counts: repository.Counts
    length: str
    met: repository.Targets
    response: Sequence[Figure]
    forecasts: Sequence[Figure]
    policy: Sequence[Figure]
    similar: Sequence[tuple[str, bool]]
    ranking: Figure | None
    agents: Sequence[AgentLine]
    answering: str
    changes: Sequence[Any]
    runs: RunTable
    jobs: JobTable
    evaluations: Sequence[Any]
    problems: Sequence[str]
    targets: Mapping[str, float | None]
    startable: bool


def page(database: Database, tenant: str, name: str, compiled_of: CompiledOf, rule: Staleness) -> WorkloadPage:
    """Content of a workload's page; raises NotFound if there is no such workload.

    ``compiled_of``: returns a workload compiled as stored now; ``rule``: when a live run is stale.
    """
    with database.reading() as session:
        row = workloads.require(session, tenant, name)
        counts = repository.counts(session, [row.id])[row.id]
        read = workloads.read_listed(row)
        met = repository.targets(session, [row.id])[row.id]
    described = None if read.problem is not None else KINDS[row.kind].describe(read.spec)
    versions = agents.list_agents(database, tenant, row.name, PageRequest(AGENTS)).rows
    judged, _ = evaluations.list_evaluations(database, tenant, PageRequest(JOBS), row.name)
    responses = [evaluations.to_response(one, row.name) for one in judged.rows]
    compiled = None if read.problem is not None else lists.compiled_or_none(compiled_of, row.name)
    charts, answers, problems = _charts(database, row, compiled) if read.problem is None else ([], [], [read.problem])
    return WorkloadPage(
        read,
        described,
        counts,
        "" if described is None else length(described),
        met,
        charts,
        _forecasts(database, tenant, row.name, counts.model) if read.problem is None else [],
        answers,
        _similar(database, tenant, compiled),
        ranking_figure(versions[0]) if versions else None,
        [agent_line(one, level(responses, one)) for one in versions],
        next((one.instead for one in versions if one.instead), ""),
        [agents.read_promotion(one) for one in agents.promotions(database, tenant, row.name, PageRequest(JOBS)).rows],
        run_table(database, tenant, RunQuery(row.name), PageRequest(RUNS), rule),
        job_table(database, tenant, JobQuery(row.name), PageRequest(JOBS)),
        responses,
        [*([read.problem] if read.problem else []), *problems],
        lists.targets_of(read.spec),
        read.problem is None and _starts_bare(row.kind),
    )


def length(described: Description) -> str:
    """Number of iterations of runs, in words, or the kind's own description."""
    bare = described.length.replace(",", "").isdigit()
    return f"{described.length} iterations" if bare else described.length


def _starts_bare(kind: str) -> bool:
    """Whether a run of a kind can be started without parameters."""
    fields = KINDS[kind].start.model_fields if kind in KINDS else {"": None}
    return all(name == "workload" or (field is not None and not field.is_required()) for name, field in fields.items())


def _forecasts(database: Database, tenant: str, name: str, version: int | None) -> list[Figure]:
    """Charts of the newest model's forecasts, one per series; empty if it has none."""
    if version is None:
        return []
    try:
        forecast = models_of.forecast(database, tenant, name, version)
    except Invalid:
        return []
    series = list(dict.fromkeys(row.series for row in forecast.rows))
    return [_forecast(forecast, one) for one in series[:MOST_SERIES]]


def _forecast(result: Forecast, name: str) -> Figure:
    rows = [row for row in result.rows if row.series == name]
    came = [Came(one.time.timestamp(), one.count) for one in result.recent if one.series == name]
    coming = [Coming(row.time.timestamp(), row.mean, row.low, row.high) for row in rows]
    every = duration(rows[0].interval_seconds)
    caption = (
        f"Each {every}: observed, then expected with a band of {percent(result.level, 0)} probability. "
        f"Method: {', '.join(sorted({row.family for row in rows}))}."
    )
    return forecast(f"Forecast: {name}", f"each {every}", came, coming, caption.replace("_", " "))


def _similar(database: Database, tenant: str, compiled: Any) -> list[tuple[str, bool]]:
    names = compiled.snapshot.prior["workloads"] if compiled is not None and compiled.snapshot.prior else ()
    with database.reading() as session:
        lenders = priors.lenders(session, tenant, names) if names else ()
    return [(name, name in lenders) for name in names]


def _charts(database: Database, row: Workload, compiled: Any) -> tuple[list[Any], list[Any], list[str]]:
    views = lists.views(row.kind)
    if views is None or compiled is None:
        return [], [], []
    learnt = _learnt(database, row, compiled)
    charts, no_charts = lists.view_or_problem("what was measured", lambda: views.workload(compiled, learnt))
    answers, no_answers = lists.view_or_problem("the policy map", lambda: views.policy(compiled))
    return charts, answers, [problem for problem in (no_charts, no_answers) if problem]


def _learnt(database: Database, row: Workload, compiled: Any) -> Learnt:
    """Report of the domain model in use (None: none), and the newest executions, decoded; MissingKind or BrokenRow."""
    with database.reading() as session:
        version = compiled.snapshot.model_version
        model = None if version is None else MODELS.find(session, row.id, version)
        codec = codec_of(row)
        results = [codec.unpack(data) for data in repository.data(session, row.id, EXECUTIONS)]
        return Learnt(None if model is None else model.report, results)


def agent_line(agent: AgentRead, judged: str) -> AgentLine:
    """An agent as a line of a list.

    ``judged``: its robustness class by the newest valid evaluation, such as `L2`; `none` if it reached no class, empty
    without a valid evaluation (as returned by ``level``).
    """
    mean = figures(agent).get("return", {}).get("mean")
    result = agent.version, agent.algorithm, agent.champion, status(agent), invalid_reason(agent)
    return AgentLine(*result, mean, judged, verdict_line(agent), str(agent.report.get("reason", "")), agent.created_at)
