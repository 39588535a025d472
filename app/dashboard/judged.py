"""An agent's page and verdict: its training's report, and evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from app.agents import repository
from app.agents import service as agents
from app.agents.evidence import JUDGE, OUTDATED, RETRAIN, judge_of
from app.agents.repository import AGENTS
from app.agents.schemas import AgentRead
from app.charts.figures import Figure, Ranked, parts_of_bar, ranking
from app.charts.text import amount, compared, moment, number, percent, verdict
from app.dashboard import lists
from app.dashboard.lists import CompiledOf
from app.dashboard.rendering import cell
from app.database.engine import Database
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRead
from app.http.pagination import PageRequest
from app.kinds.contract.engine import DEFAULT_ROLE, RolePolicy
from app.kinds.contract.views import Fact
from app.kinds.registry import KINDS, load_artifact
from app.workloads import service as workloads
from app.workloads.service import WorkloadListed


class Outcomes(NamedTuple):
    """Mean outcomes in users' units: names of the compared policies, and a row of texts for each outcome."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]


def level(read: Sequence[EvaluationRead], agent: AgentRead) -> str:
    """An agent's robustness class (such as `L2`) by the newest valid evaluation in ``read`` (newest first), `none` if
    it reached no class, empty without a valid evaluation or for an outdated agent. Evaluations by earlier rules for
    verdicts, and those that call the agent outdated, are not valid."""
    every = (verdict for one in read for verdict in one.verdicts if verdict.agent == agent.version)
    levels = (str(verdict.level or "none") for verdict in every if verdict.current and not verdict.outdated)
    return "" if agent.standing == "outdated" else next(levels, "")


def status(agent: AgentRead) -> str:
    """The agent's present or former championship, in words."""
    if agent.champion:
        return f"champion since {moment(agent.champion_since)}" if agent.champion_since else "champion"
    return f"was champion until {moment(agent.champion_until)}" if agent.champion_until else "never promoted"


def invalid_reason(agent: AgentRead) -> str:
    """Why an agent's verdict does not hold, in one or two words; empty if it holds."""
    words = {"current": "", "re_evaluate": "re-evaluate", "outdated": OUTDATED}
    return RETRAIN if agent.standing_reason.startswith(RETRAIN) else words[agent.standing]


def figures(agent: AgentRead) -> Mapping[str, Any]:
    """An agent's report if its figures still hold, else {}."""
    return agent.report if agent.standing == "current" and judge_of(agent.report) >= JUDGE else {}


def facts(agent: AgentRead, judged: str) -> list[Fact]:
    """Facts about an agent: algorithm, return, gain, class, model; figures only if they still hold."""
    report = figures(agent)
    results = [Fact("algorithm", f"{agent.algorithm.replace('_', ' ')}", f"seed {agent.seed}")]
    own, gained, gap = report.get("return"), report.get("gain"), report.get("gap_to_optimum")
    if isinstance(own, Mapping):
        results.append(Fact("return", cell(own["mean"]), _interval(own)))
    if isinstance(gained, Mapping):
        results.append(
            Fact(f"gain over {_words(report.get('incumbent'))}", number(gained["mean"], signed=True), _interval(gained))
        )
    if gap is not None:
        results.append(Fact("gap to the optimum", percent(gap)))
    unjudged = invalid_reason(agent) or "not evaluated yet"
    results.append(Fact("robustness level", judged or "–", "" if judged else unjudged))
    return [*results, Fact("model", str(agent.model_version or "–"), "used in training")]


def _interval(result: Mapping[str, Any]) -> str:
    return f"{cell(result['low'])} to {cell(result['high'])}" if "low" in result else ""


def _words(name: object) -> str:
    return str(name or "current policy").replace("_", " ")


def verdict_line(agent: AgentRead) -> str:
    """An agent's verdict in one sentence, against the policy in use when it was trained; empty if it holds no more."""
    report = figures(agent)
    gained, incumbent = report.get("gain"), report.get("incumbent")
    if not isinstance(gained, Mapping) or "low" not in gained or incumbent is None:
        return ""
    rules = report.get("heuristics") or {}
    best = rules.get(report.get("best_heuristic"), gained)
    policy = f"the built-in policy ({_words(incumbent)})" if incumbent in rules else _words(incumbent)
    result = compared(gained, float(report.get("equivalence_margin", 0.0)) * abs(best["mean"]))
    refused = result == "better" and not agent.champion and agent.champion_until is None
    return f"{verdict(result, policy)}{' Not promoted.' if refused else ''}"


def outcomes(report: Mapping[str, Any]) -> Outcomes | None:
    """Mean outcomes of a report; None if it has none."""
    rows = report.get("outcomes")
    if not rows:
        return None
    names = list(rows[0]["policies"])
    results = [[row["name"], *(amount(row["policies"][name]["mean"], row["unit"]) for name in names)] for row in rows]
    return Outcomes([_words(name) for name in names], results)


def ranking_figure(agent: AgentRead) -> Figure | None:
    """Ranking of an agent's return, every heuristic's and the optimum's; None if the figures don't hold."""
    report = figures(agent)
    own, rules = report.get("return"), report.get("heuristics")
    if not isinstance(own, Mapping) or not isinstance(rules, Mapping):
        return None
    results = [_ranked_entry(f"agent {agent.version}", own, chosen=True)]
    results += [_ranked_entry(_words(name), value) for name, value in rules.items()]
    optimum = report.get("optimum")
    if isinstance(optimum, Mapping):
        results.append(_ranked_entry("optimum", optimum))
    results.sort(key=lambda one: -one.value)
    caption = "Mean return in the simulator, closer to 0 is better; lines: 95 % intervals. Coloured: the agent."
    return ranking(f"Agent {agent.version} vs. baselines", "return", results, caption)


TUNED, LAW = "tuned_rule", "each run's law"  # of reports that don't name the tuned rule, nor what is knowable


def headroom_figure(agent: AgentRead) -> Figure | None:
    """Bar of the returns of the served rule, better rules and hindsight, with the agent's; None if not measured."""
    report = figures(agent)
    room, own, rules = (report.get(name) for name in ("headroom", "return", "heuristics"))
    if not isinstance(room, Mapping) or not isinstance(own, Mapping) or not isinstance(rules, Mapping):
        return None
    tuned = room["tuned"]["mean"]
    best = "the tuned rule" if room.get("best", TUNED) == TUNED else _words(room["best"])
    bounds = {_words(room["rule"]): room["served"]["mean"], best: tuned}
    bounds[f"{best} that knows {room.get('knows', LAW)}"] = room["knowable"]["mean"]
    if room["beyond"] is not None:
        bounds["hindsight"] = max(tuned + room["beyond"]["mean"], *bounds.values())
    ahead = own["mean"] - rules.get(TUNED, own)["mean"]  # of other episodes than the headroom's
    played = room["agent"]["mean"] if "agent" in room else tuned + ahead
    mark = Ranked(f"agent {agent.version}", played, chosen=True)
    caption = f"{room['text'][0].upper()}{room['text'][1:]}. The line across the bar is the agent."
    return parts_of_bar("Headroom", "return", bounds, mark, caption)


def _ranked_entry(name: str, value: Mapping[str, float], *, chosen: bool = False) -> Ranked:
    return Ranked(name, value["mean"], chosen, value.get("low"), value.get("high"))


# An agent's page: its verdict, and its behaviour beside the present policy's.


JUDGED = 50
"""Number of newest evaluations of the workload that are searched for those of an agent."""


class AgentPage(NamedTuple):
    """Content of an agent's page.

    ``verdict``: its verdict in one sentence; ``why``: that of its training at length; ``holds``: whether its report's
    figures still hold; ``does``, ``now``: charts of its decisions and of those that the present policy makes.
    """

    workload: WorkloadListed
    agent: AgentRead
    status: str
    verdict: str
    why: str
    facts: Sequence[Fact]
    outcomes: Outcomes | None
    holds: bool
    ranking: Figure | None
    headroom: Figure | None
    does: Sequence[Figure]
    now: Sequence[Figure]
    evaluations: Sequence[EvaluationRead]
    problems: Sequence[str]


def page(database: Database, tenant: str, name: str, version: int, compiled_of: CompiledOf) -> AgentPage:
    """Content of an agent's page; raises NotFound if there is no such workload or agent.

    ``compiled_of``: returns a workload compiled as stored now.
    """
    with database.reading() as session:
        row = workloads.require(session, tenant, name)
        agent = agents.to_response(session, row, [AGENTS.require(session, row, version)])[0]
        stored = repository.artifact(session, row.id, version)
        workload = workloads.read_listed(row)
    judged = evaluations.list_evaluations(database, tenant, PageRequest(JUDGED), row.name)[0].rows
    read = [evaluations.to_response(one, row.name) for one in judged]
    views, compiled = lists.views(row.kind), lists.compiled_or_none(compiled_of, row.name)
    now, does, problems = list[Any](), list[Any](), list[str]()
    if views is not None and compiled is not None:
        now, no_now = lists.view_or_problem("the current policy", lambda: views.policy(compiled))
        problems += [no_now] if no_now else []
    if views is not None and now and stored is not None and not agent.champion:
        data = stored.artifact
        does, no_does = lists.view_or_problem(
            "recommended changes", lambda: views.policy(_answering(row.kind, compiled, version, data))
        )
        problems += [no_does] if no_does else []
    return AgentPage(
        workload,
        agent,
        status(agent),
        verdict_line(agent),
        str(agent.report.get("reason", "")),
        list(facts(agent, level(read, agent))),
        outcomes(agent.report),
        bool(figures(agent)),
        ranking_figure(agent),
        headroom_figure(agent),
        does,
        now,
        [one for one in read if any(verdict.agent == version for verdict in one.verdicts)],
        problems,
    )


def _answering(kind: str, compiled: Any, version: int, data: bytes) -> Any:
    """The workload compiled with agent ``version`` as champion; IncompatibleArtifact if ``data`` doesn't fit it."""
    artifact = load_artifact(data)
    KINDS[kind].check(artifact, compiled.snapshot.layout)
    policies = {DEFAULT_ROLE: RolePolicy(version, artifact)}
    snapshot = replace(compiled.snapshot, artifact=artifact, agent_version=version, policies=policies)
    return KINDS[kind].engine.compile(snapshot)
