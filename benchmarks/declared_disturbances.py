"""What a declared shift of pace changes in the rule's decisions at once: its return over that of the rule whose spec
declares none, on the same episodes. ``python -m benchmarks declared_disturbances`` (some minutes on one core).

``pace-shifts``: the shared problem, 1,024 episodes of each of five seeds, over which the interval is; ``-mild``: where
a tenth of the runs becomes slower by 1 to 4 %. ``drawn``: workloads drawn at random, of seeds on which nothing was
chosen, each with its own shift; half of their episodes follow what is true, half the fitted belief; intervals are over
workloads. ``control``: the same where no run is shifted, whatever the spec declares. ``unchanged``: the same with
factors below 1, or a lower limit of the duration, for which the rule stays as it is.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import preferences_of, reward, terms, view
from app.kinds.iterative.policies import decide
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances, Spec
from app.kinds.iterative.state import State, advance, begin, expect
from benchmarks.drawn_workloads import Generated, draw_shift, generate
from benchmarks.problems import problem
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.simulator import Truth, draw_disturbances, undisturbed_truth
from workers.kinds.iterative.training import TRAINING_MEMBERS

DRAWN, WORKLOADS, EPISODES = 90_000, 192, 512
SEEDS, SHARED_EPISODES = range(9_300, 9_305), 1_024
MARGIN = 0.005  # of the return
FAINT = Disturbances.model_validate({"pace_shift": {"probability": 0.1, "factor": (1.01, 1.04)}})
SHARED = ("pace-shifts", "pace-shifts-mild")
PARTS = (*SHARED, "drawn", "control", "unchanged")
Row = dict[str, Any]
Array = NDArray[Any]
Floats = NDArray[np.float64]


class Arena:
    """Plays a workload's episodes by the rule, behind the guard; ``shift`` happens, whatever a spec declares.

    The first half of the episodes follows what is true, the second half members of the belief; all of them follow the
    belief if it is what is true."""

    def __init__(self, values: Generated, shift: Disturbances) -> None:
        self.inputs, self.happens = values, Layout(values.spec.model_copy(update={"disturbances": shift}))
        self.true = Projector(self.happens, values.truth, np.float32)

    def play(self, spec: Spec, seed: int, episodes: int) -> Floats:
        """Return the returns [E] of the rule that answers for ``spec`` in the episodes of a seed."""
        random, layout = np.random.Generator(np.random.SFC64(seed)), Layout(spec)
        believed = Projector(layout, self.inputs.table, np.float32)
        half = 0 if self.inputs.truth is self.inputs.table else episodes // 2
        true = np.arange(episodes)[:, None] < half
        truth = self._truth(random, believed, true)
        drift = np.where(true, np.sqrt(self.true.drift_variance), np.sqrt(believed.drift_variance))
        state = begin(believed, np.tile(layout.start_levels, (episodes, 1)))
        state = state._replace(levels=np.repeat(first_allocation(believed, _first(state)), episodes, axis=0))
        preferences, total, wanted = preferences_of(believed, state), np.zeros((episodes, 3)), state.levels
        for iteration in range(layout.iterations):
            if iteration:
                wandered = random.standard_normal(truth.effect.shape, np.float32) * drift
                truth = truth._replace(effect=truth.effect + wandered).at(state.iteration)
                chosen = decide(Situation(believed, state, view(believed, state, preferences)), None).action
                wanted = step(layout, state.levels, chosen)
            levels = truth.within(layout, wanted, state.iteration)
            after = self._ran(believed, state, levels, truth, true, random)
            total += terms(believed, state, after, preferences)
            state = after
        return reward(state.weights.astype(np.float64), total)

    def gain(self, spec: Spec, seed: int, episodes: int) -> float:
        """Return what ``spec`` gains over the same spec without disturbances, as a share of the return."""
        plain = spec.model_copy(update={"disturbances": Disturbances()})
        with_it, without = (self.play(one, seed, episodes).mean() for one in (spec, plain))
        return float((with_it - without) / max(abs(without), 1e-3))

    def _truth(self, random: np.random.Generator, believed: Projector, true: Array) -> Truth:
        episodes, metrics = len(true), len(self.happens.metrics)
        deviation = np.sqrt(np.where(true, self.true.effect_variance, believed.effect_variance))
        effect = random.standard_normal((episodes, metrics), np.float32) * deviation
        members, begun = random.integers(0, believed.members, episodes), np.zeros(episodes, np.intp)
        return draw_disturbances(self.happens, undisturbed_truth(self.happens, effect, members, begun), begun, random)

    def _ran(
        self,
        believed: Projector,
        state: State,
        levels: NDArray[np.int16],
        truth: Truth,
        true: Array,
        random: np.random.Generator,
    ) -> State:
        """Run an iteration of E runs, of which those in ``true`` [E, 1] follow what is true."""
        at, expected = self.happens.index(levels), expect(believed, state, levels, state.features)
        logs = expected.logs
        if believed.members > 1:
            offsets = believed.offsets(at, believed.point(state.features), state.iteration)
            logs = logs + offsets[np.arange(len(at)), truth.member]
        logs = np.where(true, self.true.log_mean(at, self.true.point(state.features), state.iteration), logs)
        deviation = np.sqrt(np.where(true, self.true.noise(state.iteration), believed.noise(state.iteration)))
        noise = random.standard_normal(truth.effect.shape, np.float32) * deviation
        measured = np.exp(logs + truth.effect + noise).astype(np.float32)
        measured[:, self.happens.seconds] += expected.pause
        return advance(believed, state, levels, measured, state.features, expected)


def _first(state: State) -> State:
    parts: list[Any] = [field[:1] for field in state]
    return State(*parts)


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A row for each of ``parts``."""
    return [_shared(name) if name in SHARED else _drawn(name) for name in parts]


def _shared(name: str) -> Row:
    """What is gained on a shared problem, whose runs follow the belief."""
    chosen = problem("pace-shifts")
    shift = FAINT if name.endswith("-mild") else chosen.spec.disturbances
    spec, table = chosen.spec.model_copy(update={"disturbances": shift}), chosen.table.thinned(TRAINING_MEMBERS)
    arena = Arena(Generated(spec, table, table), shift)
    gains = np.array([arena.gain(spec, seed, SHARED_EPISODES) for seed in SEEDS])
    return _row(f"{name}: over {len(SEEDS)} seeds", gains)


def _drawn(name: str) -> Row:
    gains = np.array([_gain(name, seed) for seed in range(DRAWN, DRAWN + WORKLOADS)])
    losing = f"{np.mean(gains < -MARGIN):.0%} lose more than {MARGIN:.1%}"
    return _row(f"{name}: {len(gains)} workloads, median {100 * np.median(gains):+.2f} %, {losing}", gains)


def _gain(name: str, seed: int) -> float:
    drawn, shift = generate(seed), draw_shift(seed)
    if name == "unchanged":
        drawn, shift = _changed(drawn, shift) if seed % 2 else (drawn, _below_one(shift))
    spec = drawn.spec.model_copy(update={"disturbances": shift})
    return Arena(drawn, Disturbances() if name == "control" else shift).gain(spec, seed, EPISODES)


def _changed(drawn: Generated, shift: Disturbances) -> tuple[Generated, Disturbances]:
    """The workload with a lower limit of the duration instead of an upper one."""
    metrics = [metric.model_copy(update={"goal": "at_least"}) for metric in drawn.spec.metrics]
    return drawn._replace(spec=drawn.spec.model_copy(update={"metrics": tuple(metrics)})), shift


def _below_one(shift: Disturbances) -> Disturbances:
    """The shift with a lowest factor below 1."""
    assert shift.pace_shift is not None  # noqa: S101 - it was drawn
    changed = shift.pace_shift.model_copy(update={"factor": (0.9, shift.pace_shift.factor[1])})
    return Disturbances(pace_shift=changed)


def _row(name: str, gains: Floats) -> Row:
    """A row of gains as shares of the return, one for each workload or seed."""
    gain = mean_interval(gains)
    low, high = 100 * gain["low"], 100 * gain["high"]
    return {
        "name": f"{name}: 95 % {low:+.2f} to {high:+.2f} %, least {100 * gains.min():+.2f} %",
        "value": round(100 * gain["mean"], 2),
        "unit": "% of the return",
        "peer": "the rule without a declared shift",
        "peer_value": 0.0,
        "ratio": None,
        "goal": f"no loss beyond {MARGIN:.1%}: {'missed' if gain['low'] < -MARGIN else 'met'}",
    }


if __name__ == "__main__":
    for row in results():
        print(row)
