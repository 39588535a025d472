"""What a workload's decisions rest on: its nodes and queues, what is expected of jobs, and who answers."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.convergence import Tolerance, limited
from app.kinds.cluster.allocation.situation import Rule
from app.kinds.cluster.arrivals import HOUR_SECONDS
from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.decide import Advice
from app.kinds.cluster.live.learning import Expecting, converged, lowered, notes
from app.kinds.cluster.live.members import deadlines
from app.kinds.cluster.live.outlook import BelievedOutlook
from app.kinds.cluster.live.state import ClusterState
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.portfolio import AHEAD, WEIGHED, WITH_MODEL
from app.kinds.contract.engine import Snapshot
from app.policies.base import Published

DAY_SECONDS = 86_400.0


class Answerer(NamedTuple):
    """Who answers.

    Attributes:
        source: as decisions say it.
        policy: that weighs jobs; None: the heuristic answers.
        failure: what failed, where something did.
    """

    source: str
    policy: Published | None = None
    failure: str = ""


class Compiled:
    """A snapshot ready to decide with.

    Attributes:
        heuristic: name of the rule that answers where no agent does.
        answerer: answers.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: Layout = snapshot.layout
        self._members = {name: one for name, one in snapshot.members.items() if one.known}
        model = snapshot.model or ClusterModel.unfitted(self.layout)
        self._beliefs = Beliefs(model, self._members)
        self.heuristic = snapshot.rule or WITH_MODEL
        self.answerer = self._answerer()

    def _answerer(self) -> Answerer:
        snapshot = self.snapshot
        if snapshot.problem:
            return Answerer("fallback", None, f"{snapshot.problem}; {self.heuristic} answers")
        if snapshot.artifact is None or not self.modelled:
            return Answerer("heuristic")
        return Answerer("agent", snapshot.artifact.policy)

    @property
    def modelled(self) -> bool:
        """Whether there is a domain model of the workload's or of a member's, by which agents were trained."""
        return self.snapshot.model is not None or bool(self._members)

    def policy_name(self, answerer: Answerer) -> str:
        """What answers is called."""
        return self.heuristic if answerer.policy is None else answerer.policy.name

    def outlook(self, state: ClusterState) -> BelievedOutlook:
        """What is expected of a state's jobs."""
        return BelievedOutlook(
            self._beliefs,
            state.jobs,
            state.records,
            int(state.capacity.sum()),
            shown=state.experience,
        )

    def rule(self, policy: Published | None, now: datetime) -> tuple[str, Rule]:
        """By which a policy, or without one the heuristic, decides at a time; and its name.

        Where nobody is expected to come the heuristic looks ahead: until those that are there have ended.
        """
        if policy is None or not self.modelled:
            name = AHEAD if self._closed(now) and not self.snapshot.rule else self.heuristic
            return name, self.layout.rules[name]
        return WEIGHED, self.layout.weighing(policy, self.coming(self._beliefs, now.timestamp()))

    def _closed(self, now: datetime) -> bool:
        """Whether nobody is expected to come to those that are there, and none of them has a deadline."""
        if self.snapshot.model is None or self._members:
            return False
        return self.coming(self._beliefs, now.timestamp()) <= 0

    def coming(self, beliefs: Beliefs, now: float) -> float:
        """GPUs that are expected to be asked for within an hour: by the forecast, where what came was counted lately.

        Else by the hour of the day. ``now``: seconds since 1970.
        """
        told = [self.snapshot.coming.get(queue) for queue in self.layout.queues]
        counts = [one.mean for one in told if one is not None and abs(now - one.known_until) <= HOUR_SECONDS]
        if len(counts) < len(told):
            return beliefs.coming(now % DAY_SECONDS)
        return float(beliefs.mean_asked @ np.array(counts))

    def judged(self, state: ClusterState) -> ClusterState:
        """The state after jobs that have little left to gain were limited, if the spec says so."""
        convergence = self.layout.spec.convergence
        if convergence is None or self.snapshot.model is None:
            return state
        model, told = self._beliefs.model, state.records
        classes = [model.curve_class(*key) for key in zip(told.application.tolist(), told.rises.tolist(), strict=True)]
        expecting = Expecting(model.curves, np.array(classes, np.int64), told.iterations, self.layout.sizes)
        tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
        return state._replace(learning=converged(state.learning, expecting, state.jobs, state.now, tolerance))

    def advice(self, rule: Rule, outlook: BelievedOutlook, state: ClusterState, before: ClusterState) -> Advice:
        """A rule within the limits of a state, and what it goes by.

        Args:
            before: the state before its jobs were ``judged``.
        """
        wanted = deadlines(self._members, state, self.layout.spec.weights.deadlines) if self._members else None
        power = self.layout.spec.data_power
        factor = outlook.worth(power) if power else None
        advice = Advice(rule, outlook, deadlines=wanted, factor=factor)
        if self.layout.spec.convergence is None:
            return advice
        told, most = notes(before.learning, state.learning), lowered(before.learning, state.learning)
        return advice._replace(rule=limited(rule, state.learning.converging), notes=told, ceilings=most)
