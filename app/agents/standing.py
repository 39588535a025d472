"""What an agent's verdicts are worth now, and what serves decisions in its place.

A verdict is of the moment at which it was made. It holds while the workload's targets, prices and weights are within
what the agent was trained for, and while the judge that made it is the present one. Else the agent is *outdated*, and
must be trained anew, or has to be *evaluated again*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from sqlalchemy.orm import Session

from app.agents import repository
from app.charts.text import fixed, moment
from app.database.tables import Agent, Workload
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.stored import BrokenRow
from app.kinds.contract.terms import Terms, left
from app.kinds.registry import KINDS, MissingKind, read_spec
from app.policies.artifact import parts
from app.policies.base import IncompatibleArtifact

JUDGE = 2
"""Version of the judge of trainings and evaluations: it grows when verdicts of the one before do not hold any more."""
FIRST_JUDGE = 1
"""The one of reports that name none."""
TRAINED_FOR, REEVALUATION = "trained_for", "reevaluation"
"""Parts of an agent's report: the terms of its training, and which job evaluates it again, for which judge."""
MOST_NAMED = 3

State = Literal["current", "re_evaluate", "outdated"]


class Standing(NamedTuple):
    """What an agent's verdicts are worth now, and why, in words; no reason where they hold."""

    state: State
    reason: str = ""


def trained_for(spec: Any) -> dict[str, list[float]]:
    """The terms of a training's spec, as its agent's report keeps them."""
    return {name: list(term) for name, term in KINDS[spec.kind].terms(spec).items()}


def judge_of(report: Mapping[str, Any]) -> int:
    """Version of the judge that made a report's verdict."""
    return int(report.get("judge", FIRST_JUDGE))


class Present:
    """A workload as it stands, which verdicts of its agents are held against; of one transaction."""

    def __init__(self, session: Session, workload: Workload) -> None:
        self.session, self.workload = session, workload

    @cached_property
    def _terms(self) -> Terms:
        """None where the workload can't be read here: then nothing is known to have changed."""
        try:
            spec = read_spec(self.workload.spec)
            return KINDS[spec.kind].terms(spec)
        except (MissingKind, BrokenRow):
            return {}

    @cached_property
    def _judged(self) -> frozenset[int]:
        """Versions that the present judge has evaluated."""
        return repository.evaluated(self.session, self.workload.id, JUDGE)

    def outdated(self, agent: Agent) -> str:
        """Why an agent must be trained anew; empty where it need not."""
        known = agent.report.get(TRAINED_FOR) or self._made_for(agent)
        changes = left(known, self._terms) if known and self._terms else []
        more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
        return "; ".join(changes[:MOST_NAMED]) + more

    def _made_for(self, agent: Agent) -> Mapping[str, Sequence[float]]:
        """What its artifact says, of an agent whose report does not; empty where neither does."""
        try:
            found = parts(agent.artifact).header.get("experience")
            return {} if not found else KINDS[self.workload.kind].terms(read_spec(self.workload.spec), found)
        except (IncompatibleArtifact, MissingKind, BrokenRow, TypeError, ValueError):
            return {}  # nobody can tell

    def standing(self, agent: Agent) -> Standing:
        """What an agent's verdicts are worth now."""
        outdated = self.outdated(agent)
        if outdated:
            return Standing("outdated", f"outdated: retrain ({outdated})")
        if judge_of(agent.report) >= JUDGE or agent.version in self._judged:
            return Standing("current")
        queued = agent.report.get(REEVALUATION) or {}
        job = f"; job {queued['job']} evaluates it" if queued.get("judge") == JUDGE else ""
        return Standing("re_evaluate", f"re-evaluate: an earlier version of the judge made its verdict{job}")

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
        """What serves decisions in place of an agent, and why that is as good; empty for a champion."""
        if any(agent.version == one.version for one in self.workload.champions.values()):
            return ""
        if self._champion:
            return self._champion
        report = agent.report
        rules, rival, gain = report.get("heuristics") or {}, report.get("incumbent"), report.get("gain")
        best = rules.get(report.get("best_heuristic"))
        if rival not in rules or not isinstance(gain, Mapping) or best is None:
            return "a heuristic"
        if judge_of(report) < JUDGE or self.standing(agent).state == "outdated":
            return f"the heuristic {rival}; no verdict that holds now says that the agent is better"
        margin = float(report.get("equivalence_margin", 0.0)) * abs(float(best["mean"]))
        mean, low, high = (fixed(float(gain[part]), 5, signed=True) for part in ("mean", "low", "high"))
        better = float(gain["low"]) > margin
        return (
            f"the heuristic {rival}, {'though the agent is better' if better else 'which is as good'}: on the same "
            f"episodes the agent's return differs by {mean} (95 % interval {low} to {high}), "
            f"{'' if better else 'not '}more than the margin of {fixed(margin, 5)}"
        )
