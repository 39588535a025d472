"""The world of a workload of kind workflow keeps the contract, and disturbances befall its tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.workers.kinds.workflow.evaluation.schedules import drawn, jobs
from tests.workers.kinds.workflow.evaluation.test_protocol import build, spec
from workers.evaluation.arena import play
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import (
    WRAPPERS,
    Capacity,
    Failures,
    HeldOut,
    Load,
    Parameters,
    Seeds,
    World,
    Wrapper,
    applicable_wrappers,
    wrap_world,
)
from workers.kinds.workflow.evaluation import episodes
from workers.kinds.workflow.evaluation.episodes import TaskDisturbance, disturbed_episode
from workers.kinds.workflow.evaluation.problem import WorkflowProblem
from workers.kinds.workflow.evaluation.world import WorkflowWorld


def disturbed(*wrappers: type[Wrapper], batch: int = 16, seed: int = 1) -> tuple[WorkflowWorld, World | Wrapper]:
    inner = build().world(batch, 3)
    outer: World | Wrapper = inner
    for wrapper in wrappers:
        outer = wrapper(outer, seed)
    return inner, outer


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_keeps_the_contract(wrapper: type[Wrapper]) -> None:
    _, outer = disturbed(wrapper)
    observation, mask = outer.reset()
    assert observation.shape == (16, outer.observation_space.shape[0])
    assert mask.shape == (16, outer.action_space.n)
    step = outer.step(mask.argmax(axis=1))
    assert step.done.all()
    assert step.observation.dtype == np.float32
    assert np.isfinite(step.observation).all()
    assert (step.reward <= 0).all()


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_state_that_is_put_back_goes_on_the_same(wrapper: type[Wrapper]) -> None:
    def onwards(simulator: World | Wrapper) -> list[np.ndarray]:
        return [simulator.step(np.arange(16) % 5).reward for _ in range(3)]

    with_seeds = (Seeds,) if wrapper is Seeds else (Seeds, wrapper)
    inner, outer = disturbed(*with_seeds)
    outer.reset()
    outer.step(np.zeros(16, np.int64))
    assert inner.value(0, 0) <= 0, "what befalls these episodes is known from here on"
    state = outer.get_state()
    first = onwards(outer)
    _, other = disturbed(*with_seeds, seed=99)
    other.reset()
    other.set_state(state)
    np.testing.assert_array_equal(first, onwards(other))


def test_undisturbed_all_episodes_are_one_and_seeds_part_them() -> None:
    alike, _ = disturbed()
    alike.reset()
    assert len({id(one) for one in alike.truth}) == 1
    parted, outer = disturbed(Seeds)
    outer.reset()
    assert len({one.trace.names for one in parted.truth}) > 10
    again, outer = disturbed(Seeds)
    outer.reset()
    for one, other in zip(parted.truth, again.truth, strict=True):
        np.testing.assert_array_equal(one.trace.submit, other.trace.submit)


def test_everybody_plays_the_same_episodes() -> None:
    """Through shared memory or afresh: the same returns to the bit."""
    problem = build()
    policy = problem.heuristics["ljf+easy"]
    level = Level.ENVIRONMENT
    first = play(problem.world(8, 0), level, 5, problem.player(policy)).returns
    shared = play(problem.world(8, 0), level, 5, problem.player(policy)).returns
    fresh = build()
    np.testing.assert_array_equal(first, shared)
    np.testing.assert_array_equal(first, play(fresh.world(8, 0), level, 5, fresh.player(policy)).returns)


def test_parameters_reach_weights_prices_and_estimates() -> None:
    inner, outer = disturbed(Seeds, Parameters)
    outer.reset()
    weights = np.array([one.weights[0] for one in inner.truth])
    prices = np.array([one.nodes.price[0] for one in inner.truth]) * 3600
    assert (weights.min() >= 0.9) & (weights.max() <= 1.1) & (np.ptp(weights) > 0.05)
    assert (prices.min() >= 0.9) & (prices.max() <= 1.1) & (np.ptp(prices) > 0.05)
    usual, seeds = disturbed(Seeds)
    seeds.reset()
    power = [
        np.log(one.trace.estimate / one.trace.runtime).mean() / np.log(two.trace.estimate / two.trace.runtime).mean()
        for one, two in zip(inner.truth, usual.truth, strict=True)
    ]
    assert 0.5 <= min(power) < 1 < max(power) <= 1.5


def test_held_out_episodes_come_from_the_other_trace() -> None:
    held_out = drawn(50, 9)._replace(names=tuple(f"other {i}" for i in range(50)))
    problem = WorkflowProblem(spec(), drawn(50, 8), [held_out], tasks=5)
    inner = problem.world(4, 0)
    outer = HeldOut(Seeds(inner, 1), 1)
    outer.reset()
    assert all(name.startswith("other") for one in inner.truth for name in one.trace.names)


def test_load_comes_in_a_fifth_faster() -> None:
    usual, seeds = disturbed(Seeds)
    seeds.reset()
    more, loaded = disturbed(Seeds, Load)
    loaded.reset()
    for one, other in zip(usual.truth, more.truth, strict=True):
        np.testing.assert_allclose(other.trace.submit, one.trace.submit / 1.2)
        np.testing.assert_array_equal(other.trace.runtime, one.trace.runtime)
    at_once = jobs([0, 0], [10, 20], [1, 1])
    assert episodes.scale_load(at_once, 1.2).runtime.tolist() == [12, 24]


def test_load_is_only_there_where_something_arrives() -> None:
    inner, _ = disturbed()
    assert Load in applicable_wrappers(Level.ENVIRONMENT, inner)
    assert Load not in applicable_wrappers(Level.COMPOSITION, inner)
    assert type(wrap_world(inner, Level.ENVIRONMENT, 1)) is Load


def test_failures_make_tasks_run_again() -> None:
    class Often(Failures):
        rate = 0.5

    usual, seeds = disturbed(Seeds, batch=64)
    seeds.reset()
    more, failing = disturbed(Seeds, Often, batch=64)
    failing.reset()
    ratio = np.concatenate([a.trace.runtime / b.trace.runtime for a, b in zip(more.truth, usual.truth, strict=True)])
    error = 0.5 / len(ratio) ** 0.5
    assert (ratio > 1 + 1e-9).mean() == pytest.approx(0.5, abs=4 * error)
    assert ratio.min() >= 1 - 1e-9
    assert ratio.max() <= 2
    for one, other in zip(more.truth, usual.truth, strict=True):
        np.testing.assert_array_equal(one.trace.estimate, other.trace.estimate)


def test_capacity_takes_processors_and_wide_tasks_take_longer() -> None:
    class Half(Capacity):
        affected, left, lasting = 1.0, (0.5, 0.5), 1.0

    inner, outer = disturbed(Half, batch=32)
    outer.reset()
    processors = np.array([one.nodes.processors[0] for one in inner.truth])
    assert processors.min() >= 8
    assert (processors < 16).mean() > 0.5
    episode = disturbed(Seeds)[0]
    episode.reset()
    known = episode.truth[0]
    reported = disturbed_episode(known, TaskDisturbance(np.ones(known.trace.tasks), 0.5))
    assert reported.trace.processors.max() <= 8
    np.testing.assert_allclose(
        reported.trace.runtime * reported.trace.processors, known.trace.runtime * known.trace.processors
    )


def test_of_several_nodes_some_are_lost_as_long_as_all_tasks_fit() -> None:
    small = {"name": "small", "processors": 2, "minimum": 1, "maximum": 8}
    layout = WorkflowProblem(spec(nodes=[small]), jobs([0], [1], [1])).layout
    trace = episodes.draw_episode(jobs([0, 0], [5, 5], [1, 2]), 2, np.random.default_rng(0))
    measure: Any = None
    episode = episodes.Episode(trace, layout.nodes, layout.weights, measure)
    assert len(disturbed_episode(episode, TaskDisturbance(np.ones(2), 0.5)).nodes.kind) == 4
    big = {"name": "big", "processors": 4, "minimum": 1, "maximum": 1}
    mixed = WorkflowProblem(spec(nodes=[small, big, small | {"name": "more"}]), jobs([0], [1], [4])).layout.nodes
    wide = episode._replace(nodes=mixed, trace=trace._replace(processors=np.array([1, 4])))
    assert 8 in disturbed_episode(wide, TaskDisturbance(np.ones(2), 0.5)).nodes.kind.tolist() or len(mixed.kind) == 17


def test_a_stretch_begins_at_second_zero_with_its_estimates() -> None:
    trace = drawn(100, 4)
    part = episodes.draw_episode(trace, 10, np.random.default_rng(3))
    first = trace.names.index(part.names[0])
    assert part.tasks == 10
    assert part.submit[0] == 0
    np.testing.assert_allclose(part.submit, trace.submit[first : first + 10] - trace.submit[first])
    unknown = trace._replace(estimate=np.full(100, np.nan))
    episode = episodes.draw_episode(unknown, 10, np.random.default_rng(3))
    np.testing.assert_array_equal(episode.estimate, episode.runtime)
