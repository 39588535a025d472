from dataclasses import replace

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.simulator import TRAINING, ExpectedSimulator, IterativeSimulator, Ranges

SPEC = planted_spec()
RANGES = [Ranges(), TRAINING]


def simulator(seed: int = 1, batch: int = 64, ranges: Ranges = RANGES[1], **spread: float) -> IterativeSimulator:
    return IterativeSimulator(Layout(SPEC), planted_table(SPEC, **spread), batch, seed, ranges)


@pytest.mark.parametrize("ranges", RANGES)
def test_shapes_types_and_spaces(ranges: Ranges) -> None:
    environment = simulator(ranges=ranges)
    observation, mask = environment.reset()
    assert environment.observation_space.contains(observation[0])
    for _ in range(70):
        got = environment.step(mask.argmax(axis=1))
        assert got.observation.dtype == got.reward.dtype == np.float32
        assert got.observation.shape == got.final_observation.shape == observation.shape
        assert np.isfinite(got.observation).all()
        assert np.isfinite(got.reward).all()
        assert got.mask.any(axis=1).all()
        ended = got.done
        np.testing.assert_array_equal(got.final_observation[~ended], got.observation[~ended])
        mask = got.mask


def test_the_same_seed_is_the_same_world_and_another_is_not() -> None:
    def rewards(seed: int) -> np.ndarray:
        environment = simulator(seed)
        environment.reset()
        return np.array([environment.step(np.full(64, 5)).reward for _ in range(40)])

    np.testing.assert_array_equal(rewards(1), rewards(1))
    assert not np.array_equal(rewards(1), rewards(2))


def test_a_saved_state_goes_on_to_the_bit() -> None:
    one, other = simulator(seed=1), simulator(seed=99)
    one.reset()
    for _ in range(7):
        one.step(np.full(64, 5))
    other.set_state(one.get_state())
    for _ in range(60):
        here, there = one.step(np.full(64, 4)), other.step(np.full(64, 4))
        np.testing.assert_array_equal(here.observation, there.observation)
        np.testing.assert_array_equal(here.reward, there.reward)


def test_episodes_are_as_long_as_the_spec_says() -> None:
    environment = simulator(ranges=Ranges())
    environment.reset()
    done = np.array([environment.step(np.full(64, 4)).done for _ in range(58)])
    assert done[28].all()
    assert done[57].all()
    assert done.sum() == 2 * 64


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_the_posterior_is_calibrated_wherever_an_episode_begins(drift: float) -> None:
    """(true − posterior mean)/posterior spread has mean 0 and variance 1, within five standard errors."""
    environment = simulator(batch=20_000, effect=0.3, noise=0.2, drift=drift)
    environment.reset()
    for _ in range(5):
        environment.step(np.full(20_000, 4))
    state, truth = environment.state, environment._current().truth.effect
    z = ((truth - state.effect) / np.sqrt(state.variance))[:, 0]
    assert abs(z.mean()) < 5 / 20_000**0.5
    assert z.var() == pytest.approx(1, abs=0.05)


def test_a_step_before_a_reset_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="reset"):
        simulator().step(np.zeros(64, int))


def test_two_resources_and_features_run_too() -> None:
    spec = planted_spec(
        resources=[
            {"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 2},
            {"name": "cpus", "minimum": 1, "maximum": 8, "change_seconds": 1.0},
        ],
        features=[{"name": "batch", "minimum": 1, "maximum": 512}],
        metrics=[{"name": "loss", "target": 1.0, "goal": "track"}],
    )
    environment = IterativeSimulator(Layout(spec), planted_table(spec), 32, 1, TRAINING)
    _, mask = environment.reset()
    random = np.random.default_rng(0)
    for _ in range(35):
        actions = np.array([random.choice(np.flatnonzero(row)) for row in mask])
        got = environment.step(actions)
        mask = got.mask
    assert np.isfinite(got.reward).all()


FEATURED = planted_spec(features=[{"name": "batch", "minimum": 32, "maximum": 512}])
COURSES = np.stack([64.0 + np.arange(30), 200.0 - np.arange(30)])[:, :, None].astype(np.float32)


@pytest.mark.parametrize("family", [IterativeSimulator, ExpectedSimulator])
@pytest.mark.parametrize("ranges", RANGES)
def test_features_go_as_they_went_in_past_executions(family: type[IterativeSimulator], ranges: Ranges) -> None:
    plain, nodes = planted_table(FEATURED), np.array([32.0, 512.0])
    logs = (plain.log_mean + np.log(nodes / 128)[:, None]).astype(np.float32)
    table = replace(plain, log_mean=logs, feature_nodes=(nodes,), courses=COURSES)
    environment = family(Layout(FEATURED), table, 64, 1, ranges)
    environment.reset()
    visited = set()
    for _ in range(60):
        environment.step(np.full(64, environment.layout.noop))
        state = environment.state
        there = COURSES[:, np.maximum(state.iteration - 1, 0), 0]  # [2, B]
        matching = np.isclose(there, state.features[:, 0])
        assert matching.any(axis=0).all()
        visited |= set(matching.argmax(axis=0).tolist())
        assert np.isfinite(environment.view.outlook[environment.view.mask]).all()
    assert visited == {0, 1}


def test_a_simulator_with_courses_goes_on_from_where_it_was() -> None:
    plain, nodes = planted_table(FEATURED), np.array([32.0, 512.0])
    logs = (plain.log_mean + np.log(nodes / 128)[:, None]).astype(np.float32)
    table = replace(plain, log_mean=logs, feature_nodes=(nodes,), courses=COURSES)
    one, other = (IterativeSimulator(Layout(FEATURED), table, 16, seed, TRAINING) for seed in (1, 2))
    one.reset()
    other.reset()
    other.set_state(one.get_state())
    for _ in range(40):
        np.testing.assert_array_equal(
            one.step(np.full(16, 4)).final_observation, other.step(np.full(16, 4)).final_observation
        )


DISTURBED = planted_spec(
    disturbances={
        "lost_capacity": {"probability": 0.5, "left": (0.3, 0.6)},
        "pace_shift": {"probability": 0.5, "factor": (1.5, 1.5)},
    }
)


@pytest.mark.parametrize("ranges", RANGES)
def test_what_is_lost_stays_lost_and_shows_in_the_reported_allocation(ranges: Ranges) -> None:
    environment = IterativeSimulator(Layout(DISTURBED), planted_table(DISTURBED), 4_000, 3, ranges)
    environment.reset()
    top = len(environment.layout.deltas) - 1
    truth = environment._current().truth
    for _ in range(DISTURBED.iterations - 1):
        state = environment.state
        wanted = np.minimum(state.levels[:, 0] + environment.layout.deltas[top, 0], environment.layout.tops[0])
        most = np.where(state.iteration >= truth.lost, np.floor(environment.layout.tops[0] * truth.left), wanted)
        going = state.iteration < DISTURBED.iterations - 1
        environment.step(np.full(4_000, top))
        np.testing.assert_array_equal(environment.state.levels[going, 0], np.minimum(wanted, most)[going])
        if ranges.explore:
            break
    share = (truth.lost < DISTURBED.iterations).mean()
    assert share == pytest.approx(0.5 * 29 / 30, abs=4 * (0.25 / 4_000) ** 0.5)


def test_the_pace_shifts_once_and_for_good() -> None:
    layout = Layout(DISTURBED)
    environment = IterativeSimulator(layout, planted_table(DISTURBED, effect=0.0, noise=0.0), 500, 3)
    environment.reset()
    truth = environment._current().truth
    for _ in range(DISTURBED.iterations - 2):
        environment.step(np.full(500, layout.noop))
        state = environment.state
        units = 4 + state.levels[:, 0]
        factor = state.measured[:, 0] / (2 + 60 / units + 0.1 * units)
        settled = state.iteration - 1 != truth.lost  # there, the allocation changes, and that takes time
        np.testing.assert_allclose(factor[settled], np.where(state.iteration > truth.shifted, 1.5, 1)[settled], 0.01)


def test_disturbed_runs_go_on_from_where_they_were() -> None:
    one, other = (
        IterativeSimulator(Layout(DISTURBED), planted_table(DISTURBED), 32, seed, TRAINING) for seed in (1, 2)
    )
    one.reset()
    other.reset()
    other.set_state(one.get_state())
    for _ in range(60):
        np.testing.assert_array_equal(one.step(np.full(32, 5)).observation, other.step(np.full(32, 5)).observation)
