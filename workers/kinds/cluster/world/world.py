"""B clusters of a workload, stepped by the compiled simulator. See ``World``.

At each interval learners settle what one job of each cluster weighs, the one that was settled longest ago; GPUs go by
that, as ``soonest`` gives them. Who is published, and rules, answer for all jobs at once, as the service lets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lookahead import Converging
from app.kinds.cluster.placement import Rule
from app.kinds.cluster.policies import FACTORS
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import View
from app.policies.base import Published
from workers.evaluation.problem import SimulatedWorld
from workers.evaluation.wrappers import Conditions as Step
from workers.inputs import Conditions
from workers.kinds.cluster.simulator.kernels import (
    NOBODY,
    THERE,
    Clusters,
    beside_others,
    chosen,
    decide,
    elapse,
    observed,
    settled,
)
from workers.kinds.cluster.world.episodes import (
    TERMS,
    Drawn,
    Episodes,
    Source,
    Spent,
    left,
    limited,
    spend,
    terms,
    unlimited,
)
from workers.learning.simulator import Step as Stepped

OUTCOMES = (
    Outcome("completion_hours", "h"),
    Outcome("jobs_finished"),
    Outcome("gpu_hours", "GPU-hours"),
    Outcome("restarts"),
)
SPREAD = 0.1
"""Standard deviation of the log of how much slower the steps of an episode are than the domain model believes."""
NESTED = {
    "clusters": Clusters,
    "beside": Clusters,
    "drawn": Drawn,
    "converging": Converging,
    "converging_beside": Converging,
}
PAY = 100.0
"""Returns of clusters differ by hundredths."""


class ClusterWorld(SimulatedWorld):
    """B clusters in lock-step: a decision sets the weight of one job of each, then an interval passes.

    Args:
        layout: of the workload.
        source: of its clusters.
        conditions: how many episodes, and their seed.
        held_out: how many models of held-out executions ``source`` has.
    """

    terms_of = TERMS
    outcomes_of = OUTCOMES
    parameters: Sequence[str] = ("rate.jobs", "effect.seconds")

    def __init__(self, layout: Layout, source: Source, conditions: Conditions, held_out: int = 0) -> None:
        weights = [getattr(layout.spec.weights, name) for name in TERMS]
        super().__init__(
            layout,
            len(layout.entries),
            layout.actions,
            weights,
            steps=layout.spec.episode_intervals,
            batch=conditions.batch,
            seed=conditions.seed,
            held_out=held_out,
        )
        self.source, self.rules = source, source.rules
        self._learning = conditions.purpose == "learning"
        self._answering: Callable[[float], Rule] | None = None
        self._counted, self._gain = np.zeros((self.batch, len(OUTCOMES))), np.zeros(self.batch)
        self._speed = np.repeat([one.speed for one in layout.spec.nodes], [one.count for one in layout.spec.nodes])
        self._price = layout.price / max(float(layout.price.max()), 1e-12) if layout.price.any() else layout.price + 1.0

    @property
    @override
    def counted(self) -> Floats:
        return self._counted

    def answer(self, who: str | Published) -> None:
        """From now on let a rule, by its name, or an agent answer for all jobs at once."""
        layout = self.layout
        if isinstance(who, str):
            self._answering = lambda _: layout.rules[who]
        else:
            self._answering = lambda coming: layout.weighing(who, coming)

    def begin(self) -> Episodes:
        """Draw clusters; an interval passes before the first decision, which needs jobs."""
        self._counted = np.zeros_like(self._counted)
        effect = np.exp(SPREAD * self.normal(1)[:, 0] * self.by_episode("effect.seconds"))
        rows = np.zeros(self.batch, np.int64) if self.same else np.arange(self.batch)
        model = np.zeros(self.batch, np.int64) if self.model is None else 1 + self.model.astype(np.int64)
        load, some = self.by_episode("rate.jobs").astype(np.float64), rows[:1] if self.same else rows
        clusters, drawn = self.source.draw(load[some], model[some], self.random)
        clusters = Clusters._make(column[rows] for column in clusters)
        elapse(self.rules, clusters)
        beside = Clusters._make(column.copy() for column in clusters)
        converging = unlimited(clusters.time.shape)
        never = np.full(clusters.time.shape, -1.0)
        return Episodes(
            clusters,
            beside,
            Drawn._make(column[rows] for column in drawn),
            effect,
            pace=np.full_like(never, np.nan),
            paced_on=np.zeros_like(clusters.gpus),
            demoted=np.full_like(never, NEVER),
            weighed=never,
            asked=chosen(clusters, never),
            converging=converging,
            converging_beside=converging,
        )

    def seen(self, state: Episodes) -> View:
        """What is observed of the job of each cluster that is asked for; all weights are legal."""
        found = observed(self.rules, state.clusters, state.asked, self._coming(state))
        return View(found.astype(np.float32), np.ones((self.batch, self.layout.actions), np.bool_))

    def _coming(self, state: Episodes) -> Floats:
        return self.source.coming(state.drawn.begins + state.clusters.now)

    def advance(self, state: Episodes, actions: NDArray[np.integer], conditions: Step) -> tuple[Episodes, Floats]:
        """Set weights, give GPUs, and let an interval pass; ``state`` changes in place."""
        clusters = state.clusters
        rows = np.flatnonzero(state.asked != NOBODY)
        clusters.factor[rows, state.asked[rows]] = FACTORS[actions[rows]]
        state.weighed[rows, state.asked[rows]] = clusters.now[rows]
        moved = decide(self.rules, clusters) if self._answering is None else self._answered(state, self._answering)
        before, trained = clusters.done.copy(), self.rules.interval - clusters.restarting
        slower = beside_others(self.rules, clusters)
        spent, found = self._passed(clusters, state, conditions, moved)
        state = self._measured(state, slower * (clusters.done - before), trained)
        state = state._replace(converging=self._converged(clusters, state.drawn, state.converging))
        self._counted = self._counts(state, spent, moved)
        if self._learning:
            _, other = self._passed(state.beside, state, conditions, decide(self.rules, state.beside))
            self._gain = other @ self.weights
            own = self._converged(state.beside, state.drawn, state.converging_beside)
            state = state._replace(converging_beside=own)
        return state._replace(asked=chosen(clusters, state.weighed)), found

    def step(self, actions: NDArray[np.integer]) -> Stepped:
        """For learners the reward is by how much the return is better than without changed weights."""
        found = super().step(actions)
        return found._replace(reward=(PAY * (self.paid + self._gain)).astype(np.float32)) if self._learning else found

    def _answered(self, state: Episodes, answering: Callable[[float], Rule]) -> Integers:
        moved, coming = np.zeros(self.batch, np.int64), self._coming(state)
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            wanted = answering(float(coming[b]))(self.source.moment(state, b)).gpus
            moved[b] = settled(self.rules, state.clusters, b, wanted)
        return moved

    def _passed(self, clusters: Clusters, state: Episodes, conditions: Step, moved: Integers) -> tuple[Spent, Floats]:
        """An interval under conditions, and its terms, [B, T]."""
        slower = state.effect * np.exp(conditions.slowdown + conditions.noise[:, 0])
        clusters.speed[:] = self._speed * ((1 - conditions.repeated) / slower)[:, None]
        gpus = np.floor(self.layout.capacity.cumsum() * conditions.capacity[:, None] + 1e-9).astype(np.int64)
        spent = spend(self.source, clusters, state.drawn, self._price, self.steps)
        clusters.capacity[:] = np.diff(gpus, prepend=0, axis=1)
        last = self._taken + 1 == self.steps
        return spent, terms(self.layout, state.drawn, clusters, spent, moved, last=last)

    def _converged(self, clusters: Clusters, drawn: Drawn, before: Converging) -> Converging:
        convergence = self.layout.spec.convergence
        ahead = None if convergence is None else self.source.ahead(drawn, 1.0 - left(clusters, drawn))
        if convergence is None or ahead is None:
            return before
        return limited(self.layout, convergence, clusters, ahead, before)

    def _measured(self, state: Episodes, made: Floats, seconds: Floats) -> Episodes:
        """How fast jobs go alone, by steps ``made`` in ``seconds`` [B, L], and who has had its share of service."""
        clusters = state.clusters
        went = (made > 0) & (seconds > 0) & (clusters.gpus > 0)
        served = (state.demoted == NEVER) & (clusters.running * clusters.asked >= self.layout.demotion)
        return state._replace(
            pace=np.where(went, made / np.maximum(seconds, 1e-9), state.pace),
            paced_on=np.where(went, clusters.gpus, state.paced_on),
            demoted=np.where(served, clusters.now[:, None], state.demoted),
        )

    def _counts(self, state: Episodes, spent: Spent, moved: Integers) -> Floats:
        """Hours of a job, jobs that ended, GPU hours and restarts of one interval, [B, O]."""
        hours = spent.present.sum(axis=1) / 3600 / np.maximum((state.drawn.steps > 0).sum(axis=1), 1)
        used = (spent.gpus * spent.present).sum(axis=1) / 3600
        return np.stack([hours, spent.ended, used, moved], axis=1)

    @override
    def get_state(self) -> dict[str, Any]:
        rows = {name: value for name, value in self._state._asdict().items() if name not in NESTED}
        parts = {name: getattr(self._state, name)._asdict() for name in NESTED}
        settings = {
            "applications": len(self.rules.epochs),
            "same": self.same,
            "random": self.random.bit_generator.state,
            "model": self.model,
        }
        found = {"rows": rows, "parts": parts, "taken": self._taken, "factors": self.factors, **settings}
        return deepcopy(found)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from ``get_state``; begin another episode where members have come or gone since."""
        if state.get("applications") != len(self.rules.epochs):
            self.reset()
            return
        given = deepcopy(dict(state))
        parts = {name: kind(**given["parts"][name]) for name, kind in NESTED.items()}
        self._state = Episodes(**parts, **given["rows"])
        self.same, self.model, self.factors, self._taken = (given[key] for key in ("same", "model", "factors", "taken"))
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = given["random"]
