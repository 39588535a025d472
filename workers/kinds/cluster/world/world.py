"""B clusters of a workload, each at its next decision: which rule answers until the one after. See ``World``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.allocation.situation import Situation as Moment
from app.kinds.cluster.arrivals import HOUR_SECONDS, HOURS
from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.decide import Advice, decide
from app.kinds.cluster.live.outlook import BelievedOutlook
from app.kinds.cluster.live.state import begin, pack, unpack
from app.kinds.cluster.model import ClusterModel
from app.kinds.contract.outcome import Outcome
from app.kinds.contract.policy import View
from workers.evaluation.world import SimulatedWorld
from workers.evaluation.wrappers.base import Conditions as Step
from workers.inputs import Conditions
from workers.kinds.cluster.world.drawing import Coming, draw
from workers.kinds.cluster.world.launcher import Cluster, Spent, Trouble, Truth, pass_interval, truth_of

TERMS = ("completion", "occupied", "accuracy", "fairness", "changes")
OUTCOMES = (
    Outcome("completion_hours", "h"),
    Outcome("jobs_finished"),
    Outcome("gpu_hours", "h"),
    Outcome("restarts"),
)
SPREAD = 0.1
"""Standard deviation of the log of how much slower the steps of an episode are than the domain model believes."""


class Clusters(NamedTuple):
    """B episodes; ``one`` are their clusters, as ``SimulatedWorld`` keeps states, [B]."""

    one: NDArray[np.object_]


class ClusterWorld(SimulatedWorld):
    """See ``SimulatedWorld``.

    Args:
        layout: of the workload.
        models: domain models: its own, which rules and policies believe in, and those of held-out executions.
        conditions: how many episodes, and their seed.
    """

    terms_of = TERMS
    outcomes_of = OUTCOMES
    parameters: Sequence[str] = ("rate.jobs", "effect.seconds")

    def __init__(self, layout: Layout, models: Sequence[ClusterModel], conditions: Conditions) -> None:
        weights = [getattr(layout.spec.weights, name) for name in TERMS]
        super().__init__(
            layout,
            len(layout.entries),
            layout.actions,
            weights,
            steps=layout.spec.episode_intervals,
            batch=conditions.batch,
            seed=conditions.seed,
            held_out=len(models) - 1,
        )
        self.beliefs, self._rules = [Beliefs(model) for model in models], [*layout.rules.values()]
        self._truths: list[Truth] = []
        self._counted = np.zeros((self.batch, len(OUTCOMES)))
        self._hours = layout.spec.interval_seconds * self.steps / 3600
        self._price = layout.price / max(float(layout.price.max()), 1e-12) if layout.price.any() else layout.price + 1.0

    @property
    def counted(self) -> Floats:
        """See ``World``."""
        return self._counted

    @property
    def truths(self) -> Sequence[Truth]:
        """What is true of each of the present episodes, [B]."""
        return tuple(self._truths)

    def begin(self) -> Clusters:
        """See ``SimulatedWorld``."""
        self._counted = np.zeros_like(self._counted)
        effects = np.exp(SPREAD * self.normal(1)[:, 0] * self.by_episode("effect.seconds"))
        load, rows = self.by_episode("rate.jobs"), range(1 if self.same else self.batch)
        self._truths = [self._drawn(at, float(load[at]), float(effects[at])) for at in rows]
        self._truths *= self.batch // len(rows)
        return _together([self._first(truth) for truth in self._truths])

    def _drawn(self, at: int, load: float, effect: float) -> Truth:
        spec, followed = self.layout.spec, self._followed(at)
        seconds = spec.interval_seconds * self.steps
        first, most = int(self.random.integers(HOURS)), int(self.layout.capacity.sum())
        coming = draw(followed.model.arrivals, first, seconds, load, most, self.random)
        return truth_of(self.layout, followed, coming, effect, first * HOUR_SECONDS)

    def _followed(self, at: int) -> Beliefs:
        return self.beliefs[0 if self.model is None else 1 + int(self.model[at])]

    def _first(self, truth: Truth) -> Cluster:
        """Before the first decision an interval has passed, of which jobs are there."""
        count = len(truth.coming.time)
        empty = Cluster(begin(self.layout), 0, np.zeros(count), np.full(count, np.nan))
        still = Trouble(1.0, 0.0, self.layout.capacity)
        return pass_interval(self.layout, truth, empty, self.layout.spec.interval_seconds, still)[0]

    def moment(self, cluster: Cluster) -> Moment:
        """What rules see of a cluster."""
        state = cluster.state
        outlook = BelievedOutlook(self.beliefs[0], state.jobs, state.records, int(state.capacity.sum()))
        return Moment(state.now, state.capacity, state.jobs, outlook, self.layout.spec.restart_seconds)

    def seen(self, state: Clusters) -> View:
        """See ``SimulatedWorld``: as the service shows it."""
        believed, pairs = self.beliefs[0], zip(state.one, self._truths, strict=True)
        rows = [
            self.layout.observe(self.moment(one), believed.coming(truth.begins + one.state.now)) for one, truth in pairs
        ]
        return View(np.array(rows, np.float32), np.ones((self.batch, self.layout.actions), np.bool_))

    def advance(self, state: Clusters, actions: NDArray[np.integer], conditions: Step) -> tuple[Clusters, Floats]:
        """See ``SimulatedWorld``."""
        terms, following = np.zeros((self.batch, len(TERMS))), []
        for at, (cluster, action) in enumerate(zip(state.one, actions.tolist(), strict=True)):
            advice = Advice(self._rules[action], self.moment(cluster).outlook)
            decided, changes = decide(self.layout, cluster.state, advice)
            restarts = sum(one.before > 0 for one in changes)
            seconds, trouble = self.layout.spec.interval_seconds, self._trouble(conditions, at)
            after, spent = pass_interval(
                self.layout, self._truths[at], cluster._replace(state=decided), seconds, trouble
            )
            terms[at] = self._terms(self._truths[at], after, spent, restarts)
            self._counted[at] = self._counts(cluster, after, spent, restarts)
            following.append(after)
        return _together(following), terms

    def _trouble(self, conditions: Step, at: int) -> Trouble:
        slower = float(np.exp(conditions.slowdown[at] + conditions.noise[at, 0]))
        gpus = np.floor(self.layout.capacity.cumsum() * conditions.capacity[at] + 1e-9).astype(np.int64)
        return Trouble(slower, float(conditions.repeated[at]), np.diff(gpus, prepend=0))

    def _terms(self, truth: Truth, after: Cluster, spent: Spent, restarts: int) -> Floats:
        """See ``TERMS``: of one interval; at the last one what is left of jobs counts, too."""
        count, worth = max(len(truth.ideal), 1), self.layout.queue_weights[truth.coming.queue]
        slow = spent.present / np.maximum(truth.ideal, 1.0)
        if self._taken + 1 == self.steps:
            there = np.arange(len(slow)) < after.came
            slow += there * np.isnan(after.finished) * (1 - after.done / truth.steps)
        occupied = float(spent.occupied @ self._price) / 3600 / (self.layout.capacity.sum() * self._hours)
        unfair = (1 - _jain(slow[slow > 0])) / self.steps
        return np.array([float(worth @ slow) / count, occupied, 0.0, unfair, restarts / count])

    def _counts(self, before: Cluster, after: Cluster, spent: Spent, restarts: int) -> Floats:
        """See ``OUTCOMES``: of one interval."""
        count = max(len(after.done), 1)
        ended = int((~np.isnan(after.finished)).sum() - (~np.isnan(before.finished)).sum())
        return np.array([spent.present.sum() / 3600 / count, ended, spent.occupied.sum() / 3600, restarts])

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on."""
        rows = [_packed(one, truth) for one, truth in zip(self._state.one, self._truths, strict=True)]
        settings = {"same": self.same, "random": self.random.bit_generator.state, "model": self.model}
        return {"rows": rows, "taken": self._taken, "factors": dict(self.factors), **settings}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        self.same, self.model, self.factors = state["same"], state["model"], dict(state["factors"])
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]
        found = [self._unpacked(row, at) for at, row in enumerate(state["rows"])]
        self._truths, self._taken = [truth for _, truth in found], state["taken"]
        self._state = _together([cluster for cluster, _ in found])

    def _unpacked(self, row: list[Any], at: int) -> tuple[Cluster, Truth]:
        kept, came, done, finished, columns, steps, ideal, effect, begins = row
        whole = {"queue", "application", "asked"}
        kinds = [np.int64 if name in whole else np.float64 for name in Coming._fields]
        coming = Coming._make(_column(column, kind) for column, kind in zip(columns, kinds, strict=True))
        truth = Truth(
            self._followed(at), coming, _column(steps, np.float64), _column(ideal, np.float64), effect, begins
        )
        return Cluster(unpack(kept), came, _column(done, np.float64), _column(finished, np.float64)), truth


def _packed(cluster: Cluster, truth: Truth) -> list[Any]:
    coming = [_plain(column) for column in truth.coming]
    told = [pack(cluster.state), cluster.came, _plain(cluster.done), _plain(cluster.finished)]
    return [*told, coming, _plain(truth.steps), _plain(truth.ideal), truth.effect, truth.begins]


def _plain(column: NDArray[Any]) -> list[Any]:
    return [None if value != value else value for value in column.tolist()]


def _column(values: list[Any], kind: type[Any]) -> NDArray[Any]:
    return np.array([np.nan if value is None else value for value in values], kind)


def _together(clusters: Sequence[Cluster]) -> Clusters:
    found = np.empty(len(clusters), object)
    for at, one in enumerate(clusters):
        found[at] = one
    return Clusters(found)


def _jain(values: Floats) -> float:
    """Jain's index; 1 of nothing."""
    return float(values.sum() ** 2 / (len(values) * (values**2).sum())) if len(values) else 1.0
