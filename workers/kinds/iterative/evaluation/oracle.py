"""A policy that knows the future of its episodes: an upper bound for policies that do not.

What is left of a run is then a shortest path, but for targets on a run's sum. Those are priced: the price at which the
sum meets its target is bisected for each run (a Lagrangian relaxation, see ``hindsight``). The oracle knows what each
of a few plans will come to from anywhere, and at every decision it follows the best: a rollout (Bertsekas 2013), which
is never worse than any one of them.
"""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import miss
from workers.kinds.iterative.evaluation.world import IterativeWorld

Array = NDArray[Any]
LARGEST = 60_000  # actions × allocations × iterations that are weighed for every run
BISECTIONS = 6


class Oracle:
    """Takes the action after which the rest of the run will turn out best; ``watch`` comes before it acts.

    It knows each run's model, effect and noise, and what capacity and failures will do.
    """

    name = "oracle"

    def __init__(self) -> None:
        self._world: IterativeWorld | None = None
        self._future: _Future | None = None

    def watch(self, world: IterativeWorld) -> None:
        """Read the future of the episodes that begin next in ``world``."""
        self._world, self._future = world, None

    def act(self, situation: Situation) -> Choice:
        """The legal action that will turn out best."""
        if self._world is None:
            raise RuntimeError("watch() comes before act()")
        if self._future is None:
            self._future = _Future(self._world)
        values = self._future.values(situation)
        return Choice(values.argmax(axis=1), values)


class _Stage(NamedTuple):
    """One iteration at every allocation. A allocations, B runs, S sums over the run that have a target.

    Attributes:
        here: allocation that is had where it is asked for, [A, B].
        paid: what is paid for at once, [A, B].
        sums: what it adds to the sums, [S, A, B].
    """

    here: NDArray[np.intp]
    paid: Array
    sums: Array


class _Plan(NamedTuple):
    """What following a plan comes to from every iteration on, by the allocation that is asked for in it.

    Attributes:
        paid: [K + 1, A, B].
        sums: [K + 1, S, A, B].
    """

    paid: Array
    sums: Array


class _Future:
    """The plans: to stay, and the shortest paths at the prices on either side of where the sums meet their targets."""

    def __init__(self, world: IterativeWorld) -> None:
        self.layout, self.projector, self.state = world.layout, world.projector, world.state
        self.first = int(self.state.iteration[0])
        state, projector = self.state, world.projector
        money = projector.units(projector.grid_levels) @ state.prices.T * projector.hours_per_second
        self.rate = money * state.weights[:, 1] / world.reference  # [A, B] return per second
        self.summed = [i for i in projector.targeted if self.layout.spec.metrics[i].scope == "run"]
        self._moves()
        ahead = _foreseen(world, self.layout.iterations - self.first)
        self.stages = [self._stage(world, self.first + k, *forecast) for k, forecast in enumerate(ahead)]
        self.plans = [self._planned(None), *self._priced()]

    def _moves(self) -> None:
        layout, projector = self.layout, self.projector
        goals = projector.grid_levels[None] + layout.deltas[:, None]  # [N, A, R]
        legal = ((goals >= 0) & (goals <= layout.tops)).all(axis=2)
        self.goal = layout.index(np.clip(goals, 0, layout.tops))
        self.pause = projector.moves.pause[:, :, None]  # [N, 1, 1]
        self.moving = self.pause * self.rate[self.goal]  # [N, A, B] what the move itself costs
        self.moving += self.state.weights[:, 2] * projector.moves.change[:, :, None]
        self.moving += np.where(legal, 0, np.inf).astype(np.float32)[:, :, None]
        self.pauses = np.array([i == layout.seconds for i in self.summed], np.float32)[:, None]  # [S, 1]

    def _stage(self, world: IterativeWorld, k: int, factors: Array, repeated: Array, most: Array) -> _Stage:
        layout, state, truth = self.layout, self.state, world.truth
        features = world.features(np.full(world.batch, k))
        here = layout.index(np.minimum(self.projector.grid_levels[:, None, :], most[None]))
        logs = np.empty((*here.shape, len(layout.metrics)), np.float32)
        for index, followed in enumerate(truth.projectors):
            rows = np.flatnonzero(truth.model == index)
            logs[:, rows] = _logs(followed, here[:, rows], features[rows], k)
        measured = np.exp(logs + factors)
        measured[:, :, layout.seconds] *= 1 + repeated
        paid = np.take_along_axis(self.rate, here, axis=0) * measured[:, :, layout.seconds]
        for i in self.projector.targeted:
            metric = layout.spec.metrics[i]
            if metric.scope == "iteration":
                missed = miss(metric.goal, measured[:, :, i] / state.targets[:, i])
                paid = paid + state.weights[:, 0] * metric.weight * missed / layout.iterations
        return _Stage(here, paid, np.moveaxis(measured[:, :, self.summed], 2, 0))

    def _planned(self, prices: Array | None) -> _Plan:
        """The shortest paths where the sums cost ``prices`` [S, B]; without them: to stay."""
        paid = np.zeros((len(self.stages) + 1, *self.rate.shape), np.float32)
        sums = np.zeros((len(self.stages) + 1, len(self.summed), *self.rate.shape), np.float32)
        for k in range(len(self.stages) - 1, -1, -1):
            stage, after, added = self.stages[k], paid[k + 1], sums[k + 1]
            if prices is not None:
                after, added = self._decided(after, added, prices)
            paid[k] = stage.paid + np.take_along_axis(after, stage.here, axis=0)
            sums[k] = stage.sums + np.take_along_axis(added, stage.here[None], axis=1)
        return _Plan(paid, sums)

    def _decided(self, paid: Array, sums: Array, prices: Array) -> tuple[Array, Array]:
        """What the best action from each allocation comes to: ``paid`` [A, B] and ``sums`` [S, A, B]."""
        priced = (paid + (prices[:, None] * sums).sum(axis=0))[self.goal]  # [N, A, B]
        priced += self.moving
        priced += self.pause * (prices * self.pauses).sum(axis=0)
        best = priced.argmin(axis=0)  # [A, B]
        goal = self.goal[best, np.arange(len(best))[:, None]]
        moving = np.take_along_axis(self.moving, best[None], axis=0)[0]
        added = np.take_along_axis(sums, np.broadcast_to(goal, sums.shape), axis=1)
        added += self.pauses[:, :, None] * self.pause[best, 0, 0]
        return np.take_along_axis(paid, goal, axis=0) + moving, added

    def _priced(self) -> list[_Plan]:
        """The plans at the two prices of each run between which its sums meet their targets."""
        metrics = [self.layout.spec.metrics[i] for i in self.summed]
        if not metrics:
            return [self._planned(np.zeros((0, self.rate.shape[1]), np.float32))]
        weight = np.array([[metric.weight] for metric in metrics], np.float32)
        worth: Array = weight * self.state.weights[:, 0] / self.state.targets.T[self.summed]
        low: Array = worth * np.array([[0.0 if metric.goal == "at_most" else -1.0] for metric in metrics])
        high: Array = worth * np.array([[0.0 if metric.goal == "at_least" else 1.0] for metric in metrics])
        plans = [self._planned(low), self._planned(high)]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            plans.append(self._planned(middle))
            above = self._excess(plans[-1], middle) > 0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return [*plans[:2], self._planned(low), self._planned(high)]

    def _excess(self, plan: _Plan, prices: Array) -> Array:
        """How far each sum is above its target if ``plan`` is followed from the first decision on, [S, B]."""
        runs, here = np.arange(self.rate.shape[1]), self.layout.index(self.state.levels)
        added = self._decided(plan.paid[0], plan.sums[0], prices)[1][:, here, runs]
        excess: Array = self.state.elapsed.T[self.summed] + added - self.state.targets.T[self.summed]
        return excess

    def values(self, situation: Situation) -> Array:
        """Return of every action if the best plan is followed afterwards, [B, N]; −∞ where it is not legal."""
        state, layout, moves = situation.state, self.layout, self.projector.moves
        runs, k = np.arange(len(state.iteration)), int(state.iteration[0]) - self.first
        legal = situation.view.mask.T
        goal = layout.index(state.levels) + moves.steps * legal  # [N, B]
        moving = moves.pause * self.rate[goal, runs] + state.weights[:, 2] * moves.change
        costs = []
        for plan in self.plans:
            cost = plan.paid[k][goal, runs] + moving
            for place, i in enumerate(self.summed):
                metric = layout.spec.metrics[i]
                total = state.elapsed[:, i] + plan.sums[k, place][goal, runs] + moves.pause * self.pauses[place]
                cost = cost + state.weights[:, 0] * metric.weight * miss(metric.goal, total / state.targets[:, i])
            costs.append(cost)
        values: Array = np.where(legal, -np.min(costs, axis=0), -np.inf).T
        return values


def _logs(projector: Projector, here: NDArray[np.intp], features: Array, k: int) -> Array:
    """Expected logs of the metrics at rows ``here`` [A, B] of the grid in iteration ``k``, [A, B, M]."""
    logs = projector.log_mean(
        here.reshape(-1), projector.point(np.tile(features, (len(here), 1))), np.full(here.size, k)
    )
    return logs.reshape(*here.shape, len(projector.layout.metrics))


def _foreseen(world: IterativeWorld, count: int) -> list[tuple[Array, Array, Array]]:
    """Of the next ``count`` iterations: log factors [B, M], share repeated [B], and the largest levels, [B, R]."""
    shared = {id(projector): projector for projector in (world.projector, *world.models)}
    twin, stay, out = deepcopy(world, shared), np.full(world.batch, world.layout.noop), []
    for _ in range(count):
        twin.step(stay)
        out.append((twin.log_factors, twin.last.repeated.astype(np.float32), twin.most(twin.last)))
    return out
