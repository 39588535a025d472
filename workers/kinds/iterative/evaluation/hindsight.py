"""The best sequence of actions for one episode whose noise is known: what learning as optimisation can reach at most.

With everything known a run is a shortest path over iteration × allocation. A target on a run's sum couples the
iterations; its miss is the largest of λ · (sum − target) over an interval of λ, so the Lagrangian dual is a shortest
path for each λ. The sum falls with λ, and bisection finds the λ at which it meets the target (Handler and Zang 1980).
A label-setting pass (Joksch 1966) then finds a path: it keeps for every allocation and each of many bins of the sum so
far the one whose lower bound by that λ is least. Its gap to the dual bound is the stated error.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.preferences import reference_cost
from app.kinds.iterative.reward import miss
from app.kinds.iterative.state import State
from workers.evaluation.problem import Encoder
from workers.kinds.iterative.evaluation.world import IterativeWorld

Array = NDArray[Any]
BISECTIONS = 24
LARGEST = 20_000_000  # moves from any allocation in any iteration
LABELS = 100_000  # paths that are weighed at every iteration
FACTORS = (0.25, 0.5)  # of λ, by which other paths look promising
BINS = 1000  # of the sum


@dataclass(frozen=True)
class Replay:
    """Plays one sequence of actions, whatever it sees; where one is not legal it stays."""

    name: str
    actions: NDArray[np.intp]

    @property
    def encoder(self) -> Encoder:
        """It sees the time, and nothing else."""
        return Encoder("iteration", lambda situation: situation.state.iteration[:, None])

    def act(self, situation: Situation) -> Choice:
        """The action that stands for the present iteration."""
        place = np.clip(situation.state.iteration - 1, 0, len(self.actions) - 1)
        action = self.actions[place]
        legal = situation.view.mask[np.arange(len(action)), action]
        return Choice(np.where(legal, action, situation.projector.layout.noop))


class Hindsight(NamedTuple):
    """The best sequence found, its return, and how far above it any other could be."""

    policy: Replay
    expected: float
    error: float


def hindsight(world: IterativeWorld) -> Hindsight:
    """The best actions for the one episode of an undisturbed ``world``.

    Raises:
        ValueError: more than one metric's sum over the run has a target, or there is too much to search.
    """
    layout = world.layout
    size = layout.iterations * len(layout.allocations) * len(layout.deltas)
    if size > LARGEST:
        raise ValueError(f"{size:.1e} moves between allocations over the run, more than {LARGEST:.0e}")
    path = _Path(world)
    relaxed = _tightest(path)
    guides = [relaxed, *(path.solve(relaxed.multiplier * factor) for factor in FACTORS if relaxed.multiplier)]
    found = min((path.search(guide) for guide in guides), key=lambda found: found.cost)
    return Hindsight(Replay("optimum", found.actions), -found.cost, max(found.cost - relaxed.bound, 0.0))


def _tightest(path: "_Path") -> "_Relaxed":
    """The relaxation with the largest lower bound among the λ of a bisection."""
    low, high = path.multipliers
    below, above = path.solve(low), path.solve(high)
    tightest = max(below, above, key=lambda relaxed: relaxed.bound)
    for _ in range(BISECTIONS if below.excess > 0 > above.excess else 0):
        middle = path.solve((low + high) / 2)
        tightest = max(tightest, middle, key=lambda relaxed: relaxed.bound)
        low, high = (middle.multiplier, high) if middle.excess > 0 else (low, middle.multiplier)
    return tightest


class _Relaxed(NamedTuple):
    """The shortest paths at one λ.

    Attributes:
        multiplier: λ.
        bound: of any path's cost, from below.
        excess: how far the shortest path's sum is above the target.
        ahead: what deciding iteration k from an allocation costs at least, [K + 1, A].
    """

    multiplier: float
    bound: float
    excess: float
    ahead: Array


class _Found(NamedTuple):
    """A path: its actions and its cost."""

    actions: NDArray[np.intp]
    cost: float


class _Labels(NamedTuple):
    """The best paths so far, L of them: allocation, cost and sum, and which action on which earlier label led here."""

    here: NDArray[np.intp]
    cost: Array
    total: Array
    action: NDArray[np.intp]
    parent: NDArray[np.intp]


class _Path:
    """Arrays of the shortest path. K iterations, A allocations, N actions, P different pauses."""

    def __init__(self, world: IterativeWorld) -> None:
        self.layout, self.projector = world.layout, world.projector
        world.reset()
        truth = world.truth
        self.followed = truth.projectors[int(truth.model[0])]
        start, factors = world.state, [world.log_factors[0]]
        for _ in range(world.steps):
            world.step(np.full(world.batch, self.layout.noop))
            factors.append(world.log_factors[0])
        self.start = State(*(field[:1] for field in start))
        courses = [world.features(np.full(world.batch, k))[:1] for k in range(self.layout.iterations)]
        self._measured(np.array(factors, np.float64), courses)
        run_scoped = [
            i for i, m in enumerate(self.layout.spec.metrics) if m.target is not None and m.scope == "run" and m.weight
        ]
        if len(run_scoped) > 1:
            raise ValueError("more than one target on a run's sum")
        self.summed = run_scoped[0] if run_scoped else None
        self._moves()
        self._stages()

    def _measured(self, factors: Array, features: list[Array]) -> None:
        """What every allocation would have measured in every iteration but for a pause, [K, A, M]."""
        layout, followed = self.layout, self.followed
        every = np.arange(len(layout.allocations))
        points = [followed.point(np.tile(given, (len(every), 1))) for given in features]
        logs = [followed.log_mean(every, point, np.full(len(every), k)) for k, point in enumerate(points)]
        self.measured = np.exp(np.array(logs, np.float64) + factors[:, None])

    def _moves(self) -> None:
        layout, projector = self.layout, self.projector
        levels = projector.grid_levels
        goals = levels[None] + layout.deltas[:, None]  # [N, A, R]
        self.legal = ((goals >= 0) & (goals <= layout.tops)).all(axis=2)
        self.goal = np.where(self.legal, layout.index(np.clip(goals, 0, layout.tops)), 0)
        pauses = ((layout.deltas != 0) @ self.followed.change_seconds).astype(np.float64)
        self.pauses, self.pause_of = np.unique(pauses, return_inverse=True)
        share = np.abs(layout.deltas).sum(axis=1) / (layout.largest_action * layout.iterations)
        self.moving = float(self.start.weights[0, 2]) * share

    def _stages(self) -> None:
        """Cost of every iteration at every allocation after every pause, [P, K, A], and what counts for the sum."""
        layout, projector, state = self.layout, self.projector, self.start
        sla, cost = float(state.weights[0, 0]), float(state.weights[0, 1])
        money = projector.units(projector.grid_levels) @ state.prices[0].astype(np.float64) / 3600  # [A] per second
        seconds = self.measured[None, :, :, layout.seconds] + self.pauses[:, None, None]
        self.stage = cost * money * seconds / float(reference_cost(projector, state)[0])
        for i, metric in enumerate(layout.spec.metrics):
            if metric.target is not None and metric.scope == "iteration":
                measured = seconds if i == layout.seconds else self.measured[None, :, :, i]
                ratio = measured / float(state.targets[0, i])
                self.stage = self.stage + sla * metric.weight * miss(metric.goal, ratio) / layout.iterations
        self.sum = np.zeros_like(seconds)
        if self.summed is not None:
            plain = np.broadcast_to(self.measured[None, :, :, self.summed], seconds.shape)
            self.sum = seconds if self.summed == layout.seconds else plain

    @property
    def multipliers(self) -> tuple[float, float]:
        """The interval of λ, in return per unit of the sum."""
        if self.summed is None:
            return 0.0, 0.0
        metric = self.layout.spec.metrics[self.summed]
        most = float(self.start.weights[0, 0]) * metric.weight / float(self.start.targets[0, self.summed])
        return (0.0 if metric.goal == "at_most" else -most), (0.0 if metric.goal == "at_least" else most)

    @property
    def first(self) -> int:
        """The allocation of the first iteration."""
        return int(self.layout.index(self.start.levels)[0])

    @property
    def target(self) -> float:
        """Of the sum."""
        return 0.0 if self.summed is None else float(self.start.targets[0, self.summed])

    def solve(self, multiplier: float) -> _Relaxed:
        """The shortest path where the sum costs ``multiplier``."""
        staged = self.stage + multiplier * self.sum
        ahead = np.zeros((self.layout.iterations + 1, self.measured.shape[1]))
        value, total = np.zeros((2, ahead.shape[1]))
        for k in range(self.layout.iterations - 1, 0, -1):
            worth = (staged[:, k] + value)[self.pause_of[:, None], self.goal] + self.moving[:, None]
            worth = np.where(self.legal, worth, np.inf)
            best = worth.argmin(axis=0)
            goal, every = self.goal[best, np.arange(len(best))], np.arange(len(best))
            value = ahead[k] = worth[best, every]
            total = self.sum[self.pause_of[best], k, goal] + total[goal]
        bound = float(staged[0, 0, self.first] + value[self.first]) - multiplier * self.target
        excess = float(self.sum[0, 0, self.first] + total[self.first]) - self.target
        return _Relaxed(multiplier, bound, excess, ahead)

    def search(self, relaxed: _Relaxed) -> _Found:
        """The best path of a label-setting pass guided by ``relaxed``."""
        start = np.array([self.first])
        nowhere = np.zeros(1, np.intp)
        labels = _Labels(start, self.stage[0, 0, start], self.sum[0, 0, start], nowhere, nowhere)
        history = []
        for k in range(1, self.layout.iterations):
            labels = self._extended(k, labels, relaxed)
            history.append(labels)
        low, high = self.multipliers
        excess = labels.total - self.target
        cost = labels.cost + np.maximum(low * excess, high * excess)
        best = place = int(cost.argmin())
        actions = []
        for step in reversed(history):
            actions.append(int(step.action[place]))
            place = int(step.parent[place])
        return _Found(np.array(actions[::-1], np.intp), float(cost[best]))

    def _extended(self, k: int, labels: _Labels, relaxed: _Relaxed) -> _Labels:
        """The labels after iteration ``k``: of all that can be reached, the most promising in each bin."""
        action, parent = np.nonzero(self.legal.take(labels.here, axis=1))
        here, pause = self.goal[action, labels.here[parent]], self.pause_of[action]
        cost = labels.cost[parent] + self.stage[pause, k, here] + self.moving[action]
        total = labels.total[parent] + self.sum[pause, k, here]
        low, span = total.min(), max(np.ptp(total), 1e-12)
        place = here * BINS + np.minimum(((total - low) / span * BINS).astype(np.intp), BINS - 1)
        least = cost + relaxed.multiplier * total + relaxed.ahead[k + 1, here]
        order = np.lexsort((least, place))
        kept = order[np.diff(place[order], prepend=-1) > 0]
        most = LABELS // len(self.goal)
        if len(kept) > most:
            kept = kept[np.argpartition(least[kept], most)[:most]]
        return _Labels(here[kept], cost[kept], total[kept], action[kept], parent[kept])
