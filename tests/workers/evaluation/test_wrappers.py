"""Every wrapper keeps the simulator's contract, and disturbs what it says it does and nothing else."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.projector import Projector
from tests.planted import planted_spec, planted_table
from workers.evaluation.arena import play
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import (
    RANGES,
    WRAPPERS,
    Capacity,
    Drift,
    Failures,
    HeldOut,
    Noise,
    Parameters,
    Seeds,
    World,
    Wrapper,
    switched_on,
    wrap_world,
)
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.world import IterativeWorld

SPEC = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 110.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.2, drift=0.02)
LAYOUT = Layout(SPEC)
NOOP = LAYOUT.noop


def world(batch: int = 64, held_out: Sequence[Any] = (TABLE,), seed: int = 3) -> IterativeWorld:
    projectors = [Projector(LAYOUT, table, np.float32) for table in (TABLE, *held_out)]
    return IterativeWorld(projectors[0], projectors[1:], batch, seed)


def disturbed(*wrappers: type[Wrapper], batch: int = 64, seed: int = 1) -> tuple[IterativeWorld, World | Wrapper]:
    inner = world(batch)
    outer: World | Wrapper = inner
    for wrapper in wrappers:
        outer = wrapper(outer, seed)
    return inner, outer


def measured(inner: IterativeWorld, outer: World | Wrapper, steps: int = 9) -> np.ndarray:
    """Seconds of every iteration at the first allocation, [steps + 1, B]."""
    outer.reset()
    out = [inner.state.measured[:, 0]]
    for _ in range(steps - 1):
        outer.step(np.full(inner.batch, NOOP))
        out.append(inner.state.measured[:, 0])
    return np.array(out)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_keeps_the_contract(wrapper: type[Wrapper]) -> None:
    inner, outer = disturbed(wrapper)
    observation, mask = outer.reset()
    assert observation.shape == (64, outer.observation_space.shape[0])
    assert mask.shape == (64, outer.action_space.n)
    for number in range(SPEC.iterations - 1):
        step = outer.step(mask.argmax(axis=1))
        assert step.observation.dtype == np.float32
        assert np.isfinite(step.observation).all()
        assert np.isfinite(step.reward).all()
        assert step.done.all() == (number == SPEC.iterations - 2)
        mask = step.mask
    assert (inner.state.iteration == 1).all(), "the world begins again by itself"


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_state_that_is_put_back_goes_on_the_same(wrapper: type[Wrapper]) -> None:
    def onwards(simulator: World | Wrapper) -> list[np.ndarray]:
        return [simulator.step(np.full(64, NOOP)).reward for _ in range(SPEC.iterations + 3)]

    _, outer = disturbed(Seeds, wrapper) if wrapper is not Seeds else disturbed(Seeds)
    outer.reset()
    outer.step(np.full(64, NOOP))
    state = outer.get_state()
    first = onwards(outer)
    _, other = disturbed(Seeds, wrapper, seed=99) if wrapper is not Seeds else disturbed(Seeds, seed=99)
    other.reset()
    other.set_state(state)
    np.testing.assert_array_equal(first, onwards(other))


def test_levels_are_nested_and_every_wrapper_stands_at_one() -> None:
    reached = [switched_on(level, held_out=True) for level in Level if level is not Level.TRAIN]
    assert reached[0] == ()
    for less, more in itertools.pairwise(reached):
        assert more[: len(less)] == less
        assert len(more) > len(less)
    assert set(reached[-1]) == set(WRAPPERS)
    assert switched_on(Level.TRAIN, held_out=True) == switched_on(Level.SEEDS, held_out=True)
    assert HeldOut not in switched_on(Level.ENVIRONMENT, held_out=False)


def test_undisturbed_all_episodes_are_one_and_seeds_part_them() -> None:
    alike = measured(*disturbed())
    assert (alike == alike[:, :1]).all()
    np.testing.assert_array_equal(alike, measured(*disturbed()))
    parted = measured(*disturbed(Seeds))
    assert (np.unique(parted[0]).size, np.unique(parted[5]).size) == (64, 64)
    np.testing.assert_array_equal(parted, measured(*disturbed(Seeds)))
    assert not (parted == measured(*disturbed(Seeds, seed=2))).any()


@pytest.mark.parametrize("heuristic", ["hold", "model_predictive"])
def test_at_l1_it_is_the_judges_court(heuristic: str) -> None:
    """Two independent samples of one distribution: means within four standard errors of their difference."""
    evaluator = Evaluator(SPEC, TABLE, seed=5, episodes=4096).score(HEURISTICS[heuristic]).returns
    problem = IterativeProblem(SPEC, TABLE)
    here = play(problem.world(4096, 0), Level.SEEDS, 7, problem.player(HEURISTICS[heuristic])).returns
    error = ((evaluator.var() + here.var()) / 4096) ** 0.5
    assert abs(evaluator.mean() - here.mean()) < 4 * error
    assert np.quantile(here, 0.1) == pytest.approx(np.quantile(evaluator, 0.1), rel=0.1)


def test_parameters_stay_in_their_ranges_and_reach_the_state() -> None:
    inner, outer = disturbed(Seeds, Parameters)
    outer.reset()
    for values, usual, group in (
        (inner.state.targets, LAYOUT.targets, "target"),
        (inner.state.weights[:, 1:], LAYOUT.weights[1:], "weight"),
        (inner.state.prices, LAYOUT.prices, "price"),
    ):
        low, high = RANGES[group]
        ratio = values / usual
        assert (low * 0.999 < ratio.min()) & (ratio.max() < high * 1.001)
        assert np.ptp(ratio) > 0.5 * (high - low)
    assert (inner.state.weights[:, 0] == LAYOUT.weights[0]).all()


def test_held_out_episodes_follow_the_other_model_while_policies_believe_their_own() -> None:
    slower = planted_table(SPEC, effect=1e-3, noise=1e-3)
    slower.log_mean[:] += np.log(2)
    inner = world(64, (slower,))
    outer = wrap_world(inner, Level.SEEDS, 1)
    HeldOut(outer, 1)
    outer.reset()
    here = LAYOUT.index(inner.state.levels)
    np.testing.assert_allclose(inner.state.measured[:, 0], np.exp(slower.log_mean[0, here, 0, 0]), rtol=0.01)
    assert inner.situation.projector.table is TABLE
    assert inner.state.effect.mean() > 0.3, "seen as a slow run"


def test_held_out_executions_like_all_others_change_nothing() -> None:
    problem = IterativeProblem(SPEC, TABLE, (TABLE,))
    one, other = (
        play(problem.world(64, 0), level, 3, problem.player(HEURISTICS["model_predictive"])).returns
        for level in (Level.PARAMETERS, Level.COMPOSITION)
    )
    np.testing.assert_array_equal(one, other)
    without = wrap_world(world(4, ()), Level.COMPOSITION, 1)
    assert [type(d) for d in without.world.disturbances] == [Seeds, Parameters]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="held-out"):
        HeldOut(world(4, ()), 1).reset()


def test_noise_multiplies_by_a_cut_student_t() -> None:
    inner, outer = disturbed(Noise, batch=4096)
    ratio = np.log(measured(inner, outer, 2)[1] / measured(*disturbed(batch=4096), 2)[1])
    assert abs(np.median(ratio)) < 4 * 1.253 * 0.05 / 64
    assert np.abs(ratio).max() <= 0.5 + 1e-4
    assert np.quantile(ratio, 0.75) == pytest.approx(0.05 * 0.7649, rel=0.15)  # of Student's t with 3 degrees


def test_drift_grows_and_shifts_last() -> None:
    class Walk(Drift):
        shifted, per_episode = 0.0, 0.3

    ratio = np.log(measured(*disturbed(Walk, batch=4096)) / measured(*disturbed(batch=4096)))
    deviation = ratio.std(axis=1)
    expected = 0.3 * (np.arange(1, 10) / 9) ** 0.5
    np.testing.assert_allclose(deviation, expected, rtol=4 * (1 / 8192) ** 0.5 + 0.02)

    class Shift(Drift):
        shifted, per_episode, shift = 1.0, 0.0, (2.0, 2.0)

    ratio = np.log(measured(*disturbed(Shift, batch=512)) / measured(*disturbed(batch=512))) / np.log(2)
    assert set(np.unique(ratio.round(4))) == {0.0, 1.0}
    assert (np.diff(ratio.round(4), axis=0) >= 0).all(), "for good"


def test_capacity_takes_away_and_gives_back() -> None:
    class Short(Capacity):
        affected, left = 1.0, (0.25, 0.25)

    inner, outer = disturbed(Short)
    outer.reset()
    top, levels = int(LAYOUT.tops[0]), []
    up = len(LAYOUT.deltas) - 1
    for _ in range(SPEC.iterations - 2):
        levels.append(inner.state.levels[:, 0].copy())
        outer.step(np.full(64, up))
    short = np.array(levels) <= top // 4
    assert short.any(axis=0).mean() > 0.5
    assert np.array(levels).max() == top


def test_failures_cost_what_is_done_again() -> None:
    class Often(Failures):
        rate = 0.5

    ratio = measured(*disturbed(Often, batch=4096), 2)[1] / measured(*disturbed(batch=4096), 2)[1]
    assert (ratio > 1.0001).mean() == pytest.approx(0.5, abs=4 * 0.5 / 64)
    assert ratio.min() + 1e-4 >= 1
    assert ratio.max() <= 2.0001
    assert ratio.mean() == pytest.approx(1.25, abs=4 * 0.32 / 64)


def test_wrappers_compose_in_any_order() -> None:
    one, other = disturbed(Seeds, Noise, Capacity, Drift), disturbed(Seeds, Drift, Capacity, Noise)
    np.testing.assert_allclose(measured(*one), measured(*other), rtol=1e-5)


def test_what_the_spec_expects_happens_from_l1_on() -> None:
    """Capacity: 0.3 of the range is 9 levels. Pace: one factor, from some iteration of each run on."""
    happening = {"lost_capacity": {"probability": 1, "left": (0.3, 0.3)}, "pace_shift": {"probability": 1.0}}
    layout = Layout(planted_spec(iterations=10, disturbances=happening))
    for wrapper, lost in ((None, False), (Seeds, True)):
        inner = IterativeWorld(Projector(layout, planted_table(layout.spec), np.float32), (), 200, 3)
        outer: World | Wrapper = inner if wrapper is None else wrapper(inner, 1)
        outer.reset()
        began = inner.truth.effect.copy()
        for _ in range(8):
            outer.step(np.full(200, len(layout.deltas) - 1))
        levels = inner.state.levels[:, 0]
        assert (levels == layout.tops[0]).all() == (not lost)
        assert (levels == 9).mean() == pytest.approx(0.8 if lost else 0.0, abs=4 * (0.16 / 200) ** 0.5)
        factor = np.exp(inner.truth.effect - began)[:, 0]
        assert (factor > 1.09).mean() == pytest.approx(0.8 if lost else 0.0, abs=4 * (0.16 / 200) ** 0.5)
        other = IterativeWorld(inner.projector, (), 200, 99)
        other.reset()
        other.set_state(inner.get_state())
        np.testing.assert_array_equal(inner.step(np.full(200, 8)).reward, other.step(np.full(200, 8)).reward)
