"""What an agent's verdicts are worth now, and what serves decisions in its place.

A verdict is of the moment at which it was made. It holds while the workload's targets, prices and weights are within
what the agent was trained for, and while the judge that made it is the present one. Else the agent is *outdated*, and
must be trained anew, or has to be *evaluated again*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, NamedTuple

from sqlalchemy.orm import Session

from app.agents import repository
from app.charts.text import confidence, fixed, moment
from app.database.tables import Agent, Workload
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.stored import BrokenRow
from app.kinds.contract.terms import Terms, left
from app.kinds.registry import KINDS, MissingKind, read_spec
from app.policies.artifact import header
from app.policies.base import IncompatibleArtifact

JUDGE = 2
"""Version of the judge of trainings and evaluations: it grows when verdicts of the one before do not hold any more."""
FIRST_JUDGE = 1
"""The one of reports that name none."""
TRAINED_FOR, REEVALUATION = "trained_for", "reevaluation"
"""Parts of an agent's report: the terms of its training, and which job evaluates it again, for which judge."""
OUTDATED, RETRAIN = "outdated", "outdated: retrain"
"""How the reasons of outdated agents begin; the latter's, where training anew helps."""
MOST_NAMED = 3

State = Literal["current", "re_evaluate", "outdated"]


class Standing(NamedTuple):
    """What an agent's verdicts are worth now, and why, in words; no reason where they hold."""

    state: State
    reason: str = ""


def trained_for(spec: Any) -> dict[str, list[float]]:
    """The terms of a training's spec, as its agent's report keeps them."""
    return {name: [term.value, term.low, term.high] for name, term in _terms(spec).items()}


def _terms(spec: Any) -> Terms:
    """The terms of a spec; empty for a plug-in kind that does not define any."""
    terms: Callable[[Any], Terms] | None = getattr(KINDS[spec.kind], "terms", None)
    return {} if terms is None else terms(spec)


def judge_of(report: Mapping[str, Any]) -> int:
    """Version of the judge that made a report's verdict."""
    return int(report.get("judge", FIRST_JUDGE))


class Present:
    """A workload as it stands, which verdicts of its agents are held against; of one transaction.

    Args:
        session: in which they are read.
        workload: whose agents they are.
        agents: all that will be asked about.
    """

    def __init__(self, session: Session, workload: Workload, agents: Sequence[Agent]) -> None:
        self.session, self.workload, self.agents = session, workload, agents

    @cached_property
    def _spec(self) -> Any:
        """None where the workload can't be read here: then nothing is known to have changed."""
        try:
            return read_spec(self.workload.spec)
        except (MissingKind, BrokenRow):
            return None

    @cached_property
    def _terms(self) -> Terms:
        return {} if self._spec is None else _terms(self._spec)

    @cached_property
    def _judged(self) -> frozenset[int]:
        """Versions that the present judge has evaluated."""
        return repository.evaluated(self.session, self.workload.id, JUDGE)

    @cached_property
    def _untrainable(self) -> str:
        """What answers where no agent can, and what to do about it; empty where agents can."""
        return next((term.untrainable for term in self._terms.values() if term.untrainable), "")

    def outdated(self, agent: Agent) -> str:
        """That an agent is outdated, what to do and why; empty where it is not."""
        if self._untrainable:
            return f"{OUTDATED}: {self._untrainable}"
        known = agent.report.get(TRAINED_FOR) or self._made_for.get(agent.version)
        changes = left(known, self._terms) if known and self._terms else []
        more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
        return f"{RETRAIN} ({'; '.join(changes[:MOST_NAMED])}{more})" if changes else ""

    @cached_property
    def _made_for(self) -> dict[int, Terms]:
        """What artifacts say, of the agents whose reports do not; of kinds whose artifacts do."""
        read_terms = getattr(KINDS.get(self.workload.kind), "terms_made_for", None)
        silent = [agent.version for agent in self.agents if not agent.report.get(TRAINED_FOR)]
        if read_terms is None or self._spec is None or not silent:
            return {}
        found: dict[int, Terms] = {}
        for version, data in repository.beginnings(self.session, self.workload.id, silent).items():
            with suppress(IncompatibleArtifact, TypeError, ValueError):  # nobody can tell
                experience = header(data).get("experience")
                found[version] = read_terms(self._spec, experience) if experience else {}
        return found

    @cached_property
    def _going_on(self) -> frozenset[str]:
        """Jobs that evaluate agents of the workload."""
        return repository.evaluating(self.session, self.workload.id)

    def standing(self, agent: Agent) -> Standing:
        """What an agent's verdicts are worth now."""
        outdated = self.outdated(agent)
        if outdated:
            return Standing("outdated", outdated)
        if judge_of(agent.report) >= JUDGE or agent.version in self._judged:
            return Standing("current")
        job = (agent.report.get(REEVALUATION) or {}).get("job")
        running = f"; job {job} evaluates it" if job is not None and job in self._going_on else ""
        return Standing("re_evaluate", f"re-evaluate: an earlier version of the judge made its verdict{running}")

    @cached_property
    def _champion(self) -> str:
        """Which agent serves decisions, since when and why; empty where none does in any role."""
        roles = self.workload.champions
        role = DEFAULT_ROLE if DEFAULT_ROLE in roles else max(roles, key=lambda name: roles[name].version, default="")
        if not role:
            return ""
        version = roles[role].version
        found = repository.last_promotion_of(self.session, self.workload.id, role, version)
        return f"agent {version}" + ("" if found is None else f", since {moment(found.created_at)}: {found.reason}")

    def instead(self, agent: Agent) -> str:
        """What serves decisions in place of an agent, and how that compares with it; empty for a champion."""
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
            return "a heuristic"
        answered = f"a heuristic, which was {rival} when the agent was trained"
        if judge_of(report) < JUDGE or self.standing(agent).state == "outdated":
            return f"{answered}; no verdict that holds now says that the agent is better"
        margin = float(report.get("equivalence_margin", 0.0)) * abs(float(best["mean"]))
        mean, low, high = (fixed(float(gain[part]), 5, signed=True) for part in ("mean", "low", "high"))
        compared = "the agent is not shown to be better"
        if float(gain["low"]) > margin:
            compared = "the agent is better"
        elif float(gain["high"]) <= margin:
            compared = f"{rival} is as good"
        return (
            f"{answered}; {compared}: on the same episodes the agent's return differs by {mean} "
            f"({confidence(float(report.get('confidence', 0.95)))} interval {low} to {high}; margin {fixed(margin, 5)})"
        )
