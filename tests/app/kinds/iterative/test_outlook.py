from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HEURISTICS, best_allocation, default_heuristic, first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point, initial_table
from app.kinds.iterative.observation import MEAN_DEVIATION, expected_size, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import advance, begin
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator

SPEC = planted_spec(
    metrics=[
        {"name": "iteration_seconds", "target": 330.0, "scope": "run"},
        {"name": "loss", "target": 0.9, "goal": "track"},
        {"name": "speed", "target": 1.2, "goal": "at_least"},
    ]
)


def test_an_observation_holds_what_its_names_say() -> None:
    layout = Layout(SPEC)
    projector = Projector(layout, planted_table(SPEC))
    state = begin(projector, np.array([[16]]))
    state = advance(projector, state, state.levels, np.array([[9.0, 0.9, 1.2]]), np.zeros((1, 0)))
    visited = dict(zip(layout.observation_names, view(projector, state).observation[0], strict=True))
    assert visited["allocation.executors"] == pytest.approx(0.5)
    assert visited["progress"] == pytest.approx(1 / 30)
    assert visited["measured.loss"] == pytest.approx(0)
    assert visited["target.iteration_seconds"] == pytest.approx(0)
    assert max(visited[f"advice.{a}"] for a in range(len(layout.deltas))) == 0


@given(st.integers(0, 32), st.floats(0.1, 1e4), st.floats(10, 1e4))
def test_observations_stay_of_order_one(level: int, seconds: float, target: float) -> None:
    layout = Layout(SPEC)
    projector = Projector(layout, planted_table(SPEC))
    state = begin(projector, np.array([[level]]), targets=[[target, 0.9, 1.2]])
    state = advance(projector, state, state.levels, np.array([[seconds, 1.0, 1.0]]), np.zeros((1, 0)))
    observation = view(projector, state).observation
    assert np.isfinite(observation).all()
    assert np.abs(observation).max() <= 20


def test_the_outlook_is_the_mean_of_what_holding_earns() -> None:
    """Against the simulator: 20,000 runs that hold, within four standard errors plus the normal approximation's 2 %."""
    spec = planted_spec()
    layout = Layout(spec)
    simulator = IterativeSimulator(layout, planted_table(spec), 20_000, seed=3, shaped=False)
    simulator.reset()
    promised = simulator.view.outlook[:, layout.noop].astype(float)
    earned = np.zeros(simulator.batch)
    for _ in range(layout.iterations - 1):
        earned += simulator.step(np.full(simulator.batch, layout.noop)).reward / 100
    error = (earned - promised).std() / simulator.batch**0.5
    assert abs((earned - promised).mean()) < 4 * error + 0.02 * abs(earned.mean())


def test_shaping_telescopes_to_the_plain_return() -> None:
    spec = planted_spec()
    layout = Layout(spec)
    actions = np.random.default_rng(0).integers(0, len(layout.deltas), (layout.iterations - 1, 64))
    totals = []
    for shaped in (False, True):
        simulator = IterativeSimulator(layout, planted_table(spec), 64, seed=3, shaped=shaped)
        simulator.reset()
        start = simulator.view.outlook.max(axis=1)
        totals.append(sum(simulator.step(a).reward / 100 for a in actions) + (start if shaped else 0))
    np.testing.assert_allclose(totals[0], totals[1], atol=2e-4)


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("informed", [True, False])
def test_every_heuristic_is_legal_everywhere(name: str, informed: bool) -> None:
    layout = Layout(SPEC)
    table = planted_table(SPEC) if informed else initial_table(layout)
    simulator = IterativeSimulator(layout, table, 256, seed=1, ranges=TRAINING)
    simulator.reset()
    for _ in range(40):
        action = HEURISTICS[name].act(Situation(simulator.projector, simulator.state, simulator.view)).action
        assert simulator.view.mask[np.arange(256), action].all()
        simulator.step(action)


def test_the_first_allocation_is_the_cheapest_that_meets_the_target() -> None:
    spec = planted_spec(weights={"sla": 100.0, "cost": 0.01, "change": 0.0})
    layout, table = Layout(spec), planted_table(spec, effect=0.01, noise=0.01)
    projector = Projector(layout, table)
    level = first_allocation(projector, begin(projector, np.array([[0]])))[0, 0]
    run = 30 * np.exp(table.log_mean[0, :, 0, 0])
    cheapest = min(np.flatnonzero(run <= 330), key=lambda a: run[a] * layout.allocations[a, 0])
    assert abs(int(level) - int(cheapest)) <= 1


def test_without_a_model_the_spec_and_the_threshold_rule_decide() -> None:
    layout = Layout(planted_spec())
    projector = Projector(layout, initial_table(layout))
    assert first_allocation(projector, begin(projector, np.array([[9]])))[0, 0] == layout.start_levels[0]
    assert default_heuristic(projector).name == "threshold"


def test_best_allocation_does_not_depend_on_how_many_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(planted_spec())
    projector = Projector(layout, planted_table(planted_spec()))
    state = begin(projector, np.zeros((50, 1), int), targets=np.linspace(200, 600, 50)[:, None])
    whole = best_allocation(projector, state)
    monkeypatch.setattr("app.kinds.iterative.heuristics.LARGEST_PLAN", 100)
    np.testing.assert_array_equal(whole, best_allocation(projector, state))
    assert (np.diff(whole[:, 0]) <= 0).all()


@given(st.floats(-3, 3), st.floats(0.01, 2))
def test_the_expected_size_of_a_normal_number(mean: float, spread: float) -> None:
    exact = 2 * spread * norm.pdf(mean / spread) + mean * (2 * norm.cdf(mean / spread) - 1)
    got = expected_size(np.array([mean]), np.array([spread * MEAN_DEVIATION]))[0]
    assert got == pytest.approx(exact, abs=1e-4 * spread)


def test_the_advice_is_the_outlook_against_the_best() -> None:
    layout = Layout(SPEC)
    projector = Projector(layout, planted_table(SPEC))
    observation = view(projector, begin(projector, np.array([[16]])))
    advice = observation.observation[0, -len(layout.deltas) :]
    np.testing.assert_allclose(
        advice, np.maximum((observation.outlook[0] - observation.outlook[0].max()) * 100, -20), atol=1e-9
    )


def test_coming_iterations_are_told_of() -> None:
    spec = planted_spec(iterations=6)
    layout, table = Layout(spec), planted_table(spec)
    stage = np.array([0, 0, 1, 1, 0, 0])
    logs = np.stack(
        [table.log_mean[..., 0], np.zeros_like(table.log_mean[..., 0])], axis=-1
    )  # a stage that can't scale
    projector = Projector(layout, replace(table, log_mean=logs, iteration_bin=stage.astype(np.int32)))
    length, scaling = np.split(projector.coming(Point(np.zeros((1, 6), int)), np.arange(6)), 2)
    gain = float(logs[0, 0, 0, 0] - logs[0, -1, 0, 0])
    np.testing.assert_allclose(scaling[0], np.where(stage == 1, 0, gain), rtol=1e-6)
    np.testing.assert_allclose(scaling[1, :3], [gain, 0, 0], rtol=1e-6)
    assert length[0][stage == 1].max() < length[0][stage == 0].min()
    assert (scaling[3, 3:] == 0).all()  # past the end


def test_noise_of_what_is_left_counts_long_iterations_by_their_length() -> None:
    spec = planted_spec(iterations=2)
    table = planted_table(spec)
    logs = np.log(np.array([1.0, 9.0], np.float32))
    table = replace(
        table,
        log_mean=np.broadcast_to(logs, (*table.log_mean.shape[:3], 2)).astype(np.float32),
        iteration_bin=np.arange(2, dtype=np.int32),
        noise_by_bin=np.tile([0.5, 0.1], (len(table.log_mean), 1)),
    )
    rest_noise = Projector(Layout(spec), table).rest_noise(0, np.arange(3))
    np.testing.assert_allclose(rest_noise, [(0.25 + 81 * 0.01) / 100, 0.01, 0], rtol=1e-5)


def test_a_run_begins_within_what_the_belief_has_seen() -> None:
    """Fewer executors would be the best if nothing is doubted, but nobody has tried less than eight or more than 10."""
    spec = planted_spec(metrics=[{"name": "iteration_seconds", "target": 1e6, "scope": "run"}])
    layout = Layout(spec)
    table = replace(planted_table(spec), seen_low=np.array([8.0]), seen_high=np.array([10.0]))
    alone = Projector(layout, table)
    believed = Projector(layout, replace(table, members=np.zeros((2, *table.log_mean.shape), np.float32)))
    units = [
        float(projector.units(first_allocation(projector, begin(projector, layout.start_levels[None])))[0, 0])
        for projector in (alone, believed)
    ]
    assert units[0] < 8
    assert units[1] == 8


def test_a_bound_of_what_was_seen_counts_as_seen_though_the_grid_rounds() -> None:
    """Steps of .1 reach .1 + 2 · .1 > .3, which is what a sample says."""
    executors = {"name": "executors", "minimum": 0.1, "maximum": 3.6, "step": 0.1, "max_steps": 4}
    metrics = [{"name": "iteration_seconds", "target": 1.0, "scope": "run"}]  # far too short: the more, the better
    spec = planted_spec(resources=[executors], metrics=metrics)
    table = replace(planted_table(spec), seen_low=np.array([0.1]), seen_high=np.array([0.3]))
    believed = Projector(Layout(spec), replace(table, members=np.zeros((2, *table.log_mean.shape), np.float32)))
    assert believed.units(np.array([[2]]))[0, 0] > 0.3
    assert first_allocation(believed, begin(believed, np.array([[0]])))[0, 0] == 2
