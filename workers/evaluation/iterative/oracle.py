"""Model-predictive control that is told everything that is to come: what knowing the future would be worth."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.base import Choice, Situation
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import miss
from app.kinds.iterative.state import State
from workers.evaluation.iterative.world import IterativeWorld

Array = NDArray[Any]
LARGEST = 50_000_000  # allocations × runs × iterations that are looked up


class Oracle:
    """Takes the action after whose allocation, held to the end, the rest of the run will turn out best.

    It knows each run's model, effect and noise, and what capacity and failures will do. ``watch`` comes before it acts.
    """

    name = "oracle"

    def __init__(self) -> None:
        self._world: IterativeWorld | None = None
        self._future: _Future | None = None

    def watch(self, world: IterativeWorld) -> None:
        """Look behind the scenes of ``world``, whose episodes are about to begin."""
        self._world, self._future = world, None

    def act(self, situation: Situation) -> Choice:
        """The legal action that will turn out best."""
        if self._world is None:
            raise RuntimeError("watch() comes before act()")
        if self._future is None:
            self._future = _Future(self._world)
        values = self._future.values(situation)
        return Choice(values.argmax(axis=1), values)


class _Future:
    """What holding each allocation will cost from every iteration on. A allocations, B runs, K iterations.

    Attributes:
        first: the iteration that the tables begin with.
        paid: sums of what is paid for as it comes, to the end, [A, B, K + 1].
        sums: the same of each metric that has a target for the run, by metric.
        rate: return per second at an allocation, [A, B].
    """

    def __init__(self, world: IterativeWorld) -> None:
        self.layout, self.projector, state = world.layout, world.projector, world.state
        self.first = int(state.iteration[0])
        self.reference = world.reference
        money = self.projector.units(self.projector.grid_levels) @ state.prices.T * self.projector.hours_per_second
        self.rate = money * state.weights[:, 1] / self.reference
        ahead = _foreseen(world, self.layout.iterations - self.first)
        stages = [self._stage(world, state, self.first + k, *told) for k, told in enumerate(ahead)]
        self.paid = _to_the_end([paid for paid, _ in stages])
        self.sums = {i: _to_the_end([sums[i] for _, sums in stages]) for i in self._run_scoped()}

    def _run_scoped(self) -> list[int]:
        return [i for i in self.projector.targeted if self.layout.spec.metrics[i].scope == "run"]

    def _stage(
        self, world: IterativeWorld, state: State, k: int, factors: Array, repeated: Array, most: Array
    ) -> tuple[Array, dict[int, Array]]:
        """What iteration ``k`` costs at every allocation, [A, B], and what it adds to the sums."""
        layout, truth = self.layout, world.truth
        granted = np.minimum(self.projector.grid_levels[:, None, :], most[None])  # [A, B, R]
        here = layout.index(granted)
        logs = np.empty((*here.shape, len(layout.metrics)), np.float32)
        for index, followed in enumerate(truth.projectors):
            rows = np.flatnonzero(truth.model == index)
            logs[:, rows] = _logs(followed, here[:, rows], state.features[rows], k)
        measured = np.exp(logs + factors)
        measured[:, :, layout.seconds] *= 1 + repeated
        paid = np.take_along_axis(self.rate, here, axis=0) * measured[:, :, layout.seconds]
        for i in self.projector.targeted:
            metric = layout.spec.metrics[i]
            if metric.scope == "iteration":
                missed = miss(metric.goal, measured[:, :, i] / state.targets[:, i])
                paid = paid + state.weights[:, 0] * metric.weight * missed / layout.iterations
        return paid, {i: measured[:, :, i] for i in self._run_scoped()}

    def values(self, situation: Situation) -> Array:
        """Return of every action if its allocation is held from now on, [B, N]; −∞ where it is not legal."""
        state, layout, moves = situation.state, self.layout, self.projector.moves
        runs, k = np.arange(len(state.iteration)), state.iteration - self.first
        legal = situation.view.mask.T
        goal = layout.index(state.levels) + moves.steps * legal  # [N, B]
        cost = self.paid[goal, runs, k] + moves.pause * self.rate[goal, runs] + state.weights[:, 2] * moves.change
        for i, sums in self.sums.items():
            metric = layout.spec.metrics[i]
            total = state.elapsed[:, i] + sums[goal, runs, k] + (moves.pause if i == layout.seconds else 0)
            cost = cost + state.weights[:, 0] * metric.weight * miss(metric.goal, total / state.targets[:, i])
        values: Array = np.where(legal, -cost, -np.inf).T
        return values


def _logs(projector: Projector, here: NDArray[np.intp], features: Array, k: int) -> Array:
    """Expected logs of the metrics at rows ``here`` [A, B] of the grid in iteration ``k``, [A, B, M]."""
    cell = np.broadcast_to(projector.cell(features), here.shape).reshape(-1)
    logs = projector.log_mean(here.reshape(-1), cell, np.full(here.size, k))
    return logs.reshape(*here.shape, -1)


def _foreseen(world: IterativeWorld, count: int) -> list[tuple[Array, Array, Array]]:
    """Of the next ``count`` iterations: log factors [B, M], share repeated [B], and the largest levels, [B, R]."""
    shared = {id(projector): projector for projector in (world.projector, *world.models)}
    twin, stay, out = deepcopy(world, shared), np.full(world.batch, world.layout.noop), []
    for _ in range(count):
        twin.step(stay)
        out.append((twin.log_factors, twin.last.repeated.astype(np.float32), twin.most(twin.last)))
    return out


def _to_the_end(values: list[Array]) -> Array:
    """Sums from each iteration to the end, [A, B, K + 1]."""
    sums = np.zeros((*values[0].shape, len(values) + 1), np.float32)
    sums[:, :, :-1] = np.stack(values, axis=2)[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
    return sums
