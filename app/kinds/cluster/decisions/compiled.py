"""What a workload's decisions rest on: its nodes and queues, what is expected of jobs, and who chooses the rule."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.convergence import Tolerance, limited
from app.kinds.cluster.allocation.situation import Situation as Moment
from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.decide import Advice
from app.kinds.cluster.live.learning import Expecting, converged, notes
from app.kinds.cluster.live.members import deadlines
from app.kinds.cluster.live.outlook import BelievedOutlook
from app.kinds.cluster.live.state import ClusterState
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.portfolio import WITH_MODEL, WITHOUT_MODEL
from app.kinds.contract.engine import Snapshot
from app.kinds.contract.policy import Policy, Situation, View

DAY_SECONDS = 86_400.0


class Answerer(NamedTuple):
    """Who answers.

    Attributes:
        source: as decisions say it.
        policy: that chooses a rule; None: the heuristic, which is one.
        failure: what failed, where something did.
    """

    source: str
    policy: Policy | None = None
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
        self._beliefs = self._believed(snapshot.model)
        self.heuristic = WITHOUT_MODEL if self._beliefs is None else WITH_MODEL
        self.answerer = self._answerer()

    def _believed(self, model: ClusterModel | None) -> Beliefs | None:
        if model is None and not self._members:
            return None
        return Beliefs(ClusterModel.unfitted(self.layout) if model is None else model, self._members)

    def _answerer(self) -> Answerer:
        snapshot = self.snapshot
        if snapshot.problem:
            return Answerer("fallback", None, f"{snapshot.problem}; {self.heuristic} answers")
        if snapshot.artifact is None or self._beliefs is None:
            return Answerer("heuristic")
        return Answerer("agent", snapshot.artifact.policy)

    @property
    def policy_name(self) -> str:
        """What answers is called."""
        return self.heuristic if self.answerer.policy is None else self.answerer.policy.name

    def outlook(self, state: ClusterState) -> BelievedOutlook | None:
        """What is expected of a state's jobs; None without a domain model of the workload's or of a member's."""
        if self._beliefs is None:
            return None
        return BelievedOutlook(self._beliefs, state.jobs, state.records, int(state.capacity.sum()))

    def rule(self, policy: Policy | None, state: ClusterState, outlook: BelievedOutlook | None, now: datetime) -> str:
        """The name of the rule that a policy, or without one the heuristic, decides a state by."""
        if policy is None or outlook is None or self._beliefs is None:
            return self.heuristic
        moment = Moment(state.now, state.capacity, state.jobs, outlook, self.layout.spec.restart_seconds)
        coming = self._beliefs.coming(now.timestamp() % DAY_SECONDS)
        seen = self.layout.observe(moment, coming).astype(np.float32)[None]
        view = View(seen, np.ones((1, self.layout.actions), np.bool_))
        return [*self.layout.rules][int(policy.act(Situation(self.layout, state, view)).action[0])]

    def judged(self, state: ClusterState) -> ClusterState:
        """The state after jobs that have little left to gain were limited, if the spec says so."""
        convergence = self.layout.spec.convergence
        if convergence is None or self._beliefs is None or self.snapshot.model is None:
            return state
        model, told = self._beliefs.model, state.records
        classes = [model.curve_class(*key) for key in zip(told.application.tolist(), told.rises.tolist(), strict=True)]
        expecting = Expecting(model.curves, np.array(classes, np.int64), told.iterations)
        tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
        return state._replace(learning=converged(state.learning, expecting, state.jobs, state.now, tolerance))

    def advice(self, rule: str, outlook: BelievedOutlook | None, state: ClusterState, before: ClusterState) -> Advice:
        """A rule by its name, within the limits of a state, and what it goes by.

        Args:
            before: the state before its jobs were ``judged``.
        """
        named = self.layout.rules[rule]
        wanted = deadlines(self._members, state, self.layout.spec.weights.deadlines) if self._members else None
        neighbours = None if outlook is None else outlook.neighbours
        if self.layout.spec.convergence is None:
            return Advice(named, outlook, deadlines=wanted, neighbours=neighbours)
        said = notes(before.learning, state.learning)
        return Advice(limited(named, state.learning.converging), outlook, said, neighbours, wanted)
