"""Evidence about an agent: shadow decisions, off-policy scores, and whether its verdict still holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.agents import repository
from app.agents.repository import AGENTS
from app.agents.schemas import GainInterval, Requirement, ShadowRead
from app.charts.text import confidence, decimals, moment, percent
from app.charts.text import interval as interval_text
from app.database.engine import check_deadline
from app.database.tables import Agent, Evaluation, Iteration, Job, Run, Workload
from app.jobs.repository import OPEN
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.inputs import BrokenRow
from app.kinds.contract.kind import Terms, changed_terms
from app.kinds.registry import KINDS, MissingKind, read_spec

# Whether an agent's verdict holds now, and what serves decisions in its place.
#
# A verdict is of the moment at which it was made. It holds while the workload's targets, prices and weights are within
# what the agent was trained for, and while the judge that made it is the present one. Else the agent is *outdated*, and
# must be trained anew, or has to be *evaluated again*.


LARGEST_SEARCH = 100
"""Number of newest evaluations of a workload that are searched for verdicts."""
JUDGE = 3
"""Version of the rules by which trainings and evaluations judge agents; raised when earlier verdicts no longer hold."""
FIRST_JUDGE = 1
"""Version assumed for reports that name no judge."""
TRAINED_FOR, REEVALUATION = "trained_for", "reevaluation"
"""Keys of an agent's report: the terms of its training; the job that evaluates it again, and for which judge."""
OUTDATED, RETRAIN = "outdated", "outdated: retrain"
"""First words of an outdated agent's reason; the second where a new training helps."""
MOST_NAMED = 3

State = Literal["current", "re_evaluate", "outdated"]


class VerdictValidity(NamedTuple):
    """Whether an agent's verdict holds: ``state``, `current`, `re_evaluate` or `outdated`; ``reason`` says why not."""

    state: State
    reason: str = ""


def trained_for(spec: Any) -> dict[str, list[float]]:
    """The terms of a spec (targets, prices, weights) by name, for an agent's report.

    Each is [value, low, high] in the spec's units; the agent's evaluation holds for values from low to high."""
    return {name: [term.value, term.low, term.high] for name, term in KINDS[spec.kind].terms(spec).items()}


def judge_of(report: Mapping[str, Any]) -> int:
    """Version of the judge (the rules for verdicts) that made a report's verdict; 1 if the report names none."""
    return int(report.get("judge", FIRST_JUDGE))


class Present:
    """The present state of a workload, with which verdicts of its agents are compared; valid for one transaction.

    Args:
        session: the transaction's session.
        workload: the workload of the agents.
        agents: all agents that will be passed to the methods.
    """

    def __init__(self, session: Session, workload: Workload, agents: Sequence[Agent]) -> None:
        self.session, self.workload, self.agents = session, workload, agents

    @cached_property
    def _spec(self) -> Any:
        """The workload's spec; None if it can't be read here, in which case no term counts as changed."""
        try:
            return read_spec(self.workload.spec)
        except (MissingKind, BrokenRow):
            return None

    @cached_property
    def _terms(self) -> Terms:
        return {} if self._spec is None else KINDS[self._spec.kind].terms(self._spec)

    @cached_property
    def _judged(self) -> frozenset[int]:
        """Versions of agents that this version of the judge (rules for verdicts), or a newer one, judged current."""
        workload_id = self.workload.id
        newest = select(Evaluation.verdicts).where(Evaluation.workload_id == workload_id)
        rows = self.session.scalars(newest.order_by(Evaluation.created_at.desc()).limit(LARGEST_SEARCH))
        result = (one for verdicts in rows for one in verdicts if one.get("judge", 1) >= JUDGE)
        return frozenset(one["agent"] for one in result if not one.get("outdated", False))

    @cached_property
    def _untrainable(self) -> str:
        """Why no agent can serve this workload, and what to do; empty if agents can."""
        return next((term.untrainable for term in self._terms.values() if term.untrainable), "")

    def outdated(self, agent: Agent) -> str:
        """Why an agent is outdated, with the changed terms and what to do; empty if it is up to date."""
        if self._untrainable:
            return f"{OUTDATED}: {self._untrainable}"
        known = agent.report.get(TRAINED_FOR)
        changes = changed_terms(known, self._terms) if known and self._terms else []
        more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
        return f"{RETRAIN} ({'; '.join(changes[:MOST_NAMED])}{more})" if changes else ""

    @cached_property
    def _going_on(self) -> frozenset[str]:
        """Ids of the workload's evaluation jobs that are queued, running or waiting."""
        going_on = Job.workload_id == self.workload.id, Job.type == "evaluate", Job.state.in_(OPEN)
        return frozenset(self.session.scalars(select(Job.id).where(*going_on)))

    def validity(self, agent: Agent) -> VerdictValidity:
        """Whether an agent's verdict holds now, with the reason if it doesn't."""
        outdated = self.outdated(agent)
        if outdated:
            return VerdictValidity("outdated", outdated)
        if judge_of(agent.report) >= JUDGE or agent.version in self._judged:
            return VerdictValidity("current")
        job = (agent.report.get(REEVALUATION) or {}).get("job")
        running = f"; job {job} evaluates it" if job is not None and job in self._going_on else ""
        return VerdictValidity("re_evaluate", f"re-evaluate: an earlier version of the judge made its verdict{running}")

    @cached_property
    def _champion(self) -> str:
        """The agent that serves decisions, with time and reason of its promotion, in words; empty if there is none."""
        roles = self.workload.champions
        role = DEFAULT_ROLE if DEFAULT_ROLE in roles else max(roles, key=lambda name: roles[name].version, default="")
        if not role:
            return ""
        version = roles[role].version
        entry = repository.last_promotion_of(self.session, self.workload.id, role, version)
        return f"agent {version}" + ("" if entry is None else f", since {moment(entry.created_at)}: {entry.reason}")

    def instead(self, agent: Agent) -> str:
        """In words: what serves decisions in an agent's place, and how its training return compares with the agent's.

        Empty for a champion."""
        if any(agent.version == one.version for one in self.workload.champions.values()):
            return ""
        if self._untrainable:
            return f"no agent; {self._untrainable}"
        if self._champion:
            return self._champion
        report = agent.report
        rules, rival, gain = report.get("heuristics") or {}, report.get("incumbent"), report.get("gain")
        best = rules.get(report.get("best_heuristic"))
        if rival not in rules or not isinstance(gain, Mapping) or best is None:
            return "the built-in policy"
        rival = str(rival).replace("_", " ")
        answered = f"the built-in policy ({rival} when the agent was trained)"
        if judge_of(report) < JUDGE or self.validity(agent).state == "outdated":
            return f"{answered}; no current verdict shows that the agent is better"
        margin = float(report.get("equivalence_margin", 0.0)) * abs(float(best["mean"]))
        mean, low, high = (decimals(float(gain[part]), 5, signed=True) for part in ("mean", "low", "high"))
        compared = "the agent is not shown to be better"
        if float(gain["low"]) > margin:
            compared = "the agent is better"
        elif float(gain["high"]) < -margin:
            compared = f"{rival} is better"
        elif float(gain["high"]) <= margin:
            compared = f"{rival} is at least as good"
        return (
            f"{answered}; {compared}: difference of the agent's return on the same episodes {mean} "
            f"({confidence(float(report.get('confidence', 0.95)))} interval {low} to {high}; "
            f"differences up to {decimals(margin, 5)} count as equal)"
        )


# Evidence from outside the simulator: shadow runs, and logged runs scored off-policy.
#
# A promotion can require either, and is refused while the evidence is missing or shows a loss.


FEWEST_RUNS = 5
MARGIN = 0.01  # of practical equivalence, where an agent's verdict states none
LARGEST = 1_000  # shadow runs, the newest
AT_ONCE = 500  # iterations
NORMAL = 1.959964  # standard errors of a 95 % interval of very many values
FEW = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157)
"""Student's t quantiles of the same interval, for 1 to 9 degrees of freedom."""


def shadow(session: Session, workload: Workload, version: int) -> ShadowRead:
    """Decisions of an agent over the newest 1,000 runs in which it was the shadow, an agent that decides without
    effect.

    The agreement is the share (0 to 1) of its decisions without failure that equal those served. The gain is the mean
    expected gain in return per run. Raises DeadlinePassed if the request's time limit is exceeded."""
    newest = (
        select(Run.id)
        .where(Run.workload_id == workload.id, Run.shadow_version == version)
        .order_by(Run.created_at.desc())
        .limit(LARGEST)
    )
    statement = select(Iteration).where(Iteration.run_id.in_(newest)).order_by(Iteration.run_id, Iteration.iteration)
    with session.scalars(statement.execution_options(yield_per=AT_ONCE)) as rows:
        runs = [_count_decisions(run) for _, run in groupby(rows, key=lambda row: row.run_id)]
    decisions, failures = sum(run.decisions for run in runs), sum(run.failures for run in runs)
    answered = decisions - failures
    return ShadowRead(
        workload=workload.name,
        agent=version,
        runs=len(runs),
        decisions=decisions,
        failures=failures,
        agreement=sum(run.agreed for run in runs) / answered if answered else None,
        gain=interval([run.gain for run in runs]) if any(run.gain_known for run in runs) else None,
    )


class _ShadowCounts(NamedTuple):
    """Counts of a shadow's decisions in one run; ``gain``: sum of the expected gains in return, if ``gain_known``."""

    decisions: int
    failures: int
    agreed: int
    gain_known: bool
    gain: float


def _count_decisions(run: Iterator[Iteration]) -> _ShadowCounts:
    """Count the shadow's decisions of one run, one by one; raises DeadlinePassed if the request has taken too long."""
    check_deadline()
    decisions, failures, agreed, known, gain = 0, 0, 0, False, 0.0
    for step in (row.decision.get("shadow") for row in run):
        if step is not None:
            decisions, known = decisions + 1, known or step["gain"] is not None
            gain += step["gain"] or 0.0
            failures += step["problem"] is not None
            agreed += step["problem"] is None and bool(step["agrees"])
    return _ShadowCounts(decisions, failures, agreed, known, gain)


def interval(values: Sequence[float]) -> GainInterval:
    """Mean and 95 % confidence interval (Student's t); None bounds for one value, StatisticsError without values."""
    mean = fmean(values)
    if len(values) < 2:
        return GainInterval(mean=mean, low=None, high=None)
    half = standard_errors(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return GainInterval(mean=mean, low=mean - half, high=mean + half)


def standard_errors(freedom: int) -> float:
    """Two-sided 95 % quantile of Student's t for ``freedom`` >= 1 degrees; above 9 by Fisher and Cornish (1960)."""
    if freedom <= len(FEW):
        return FEW[freedom - 1]
    z = NORMAL
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def missing(session: Session, workload: Workload, version: int, required: Sequence[Requirement]) -> list[str]:
    """Requirements of a promotion (`shadow`, `off_policy`) that the evidence doesn't meet, one sentence each. Raises
    DeadlinePassed if the request's time limit is exceeded."""
    result = {"shadow": _missing_shadow, "off_policy": _missing_off_policy}
    agent = AGENTS.find(session, workload.id, version)
    margin = 0.0 if agent is None else _margin(agent.report)
    problems = [result[name](session, workload, version, margin) for name in dict.fromkeys(required)]
    return [text for text in problems if text]


def _margin(report: Mapping[str, Any]) -> float:
    """Difference of return that counts as equal, in units of return, from the agent's report; 0 if never judged."""
    best = (report.get("heuristics") or {}).get(report.get("best_heuristic"))
    return 0.0 if best is None else float(report.get("equivalence_margin", MARGIN)) * abs(float(best["mean"]))


def _missing_shadow(session: Session, workload: Workload, version: int, margin: float) -> str:
    log = shadow(session, workload, version)
    if log.runs < FEWEST_RUNS:
        return f'shadow: needs {FEWEST_RUNS} runs as a shadow, has {log.runs}; start runs with "shadow": {version}'
    if log.failures:
        return f"shadow: it failed in {log.failures} of {log.decisions} decisions"
    if log.gain is None:
        return (
            f"shadow: the gain of its steps is unknown for kind {workload.kind}, only that "
            f"{percent(log.agreement or 0.0, 0)} agreed with the decisions; leave it out of `require`"
        )
    return _gain_in_words("shadow", log.gain, margin)


def _missing_off_policy(session: Session, workload: Workload, version: int, margin: float) -> str:
    """What the newest off-policy score of this version on logged runs lacks, in words; empty if it shows no loss."""
    reports = session.scalars(
        select(Evaluation.report)
        .where(Evaluation.workload_id == workload.id)
        .order_by(Evaluation.created_at.desc())
        .limit(LARGEST_SEARCH)
    )
    for report in reports:
        scored = (report.get("off_policy") or {}).get(str(version))
        if scored is not None:
            break
    else:
        return f"off_policy: agent {version} has no off-policy evaluation; request one with POST /evaluations"
    if "replay" not in scored:
        return f"off_policy: {scored.get('reason', 'it could not be scored')}"
    if scored["runs"] < FEWEST_RUNS:
        return f"off_policy: needs {FEWEST_RUNS} logged runs, has {scored['runs']}"
    return _gain_in_words("off_policy", GainInterval(**scored["replay"]["advantage"]), margin)


def _gain_in_words(name: str, gain: GainInterval | None, margin: float) -> str:
    if gain is None or gain.low is None or gain.low < -margin:
        gained = "unknown"
        if gain is not None and gain.low is not None and gain.high is not None:
            gained = f"{interval_text(gain.mean, gain.low, gain.high, signed=True)} (95 % interval)"
        return f"{name}: it may be worse than the logged decisions: expected gain in return per run {gained}"
    return ""
