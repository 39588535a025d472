"""The set of models: what the samples settle, it agrees on; where they are silent, it doesn't."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import everywhere, outlook
from app.kinds.iterative.prior import shares
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import advance, begin
from workers.estimators.base import Floats, Inputs
from workers.estimators.selection import select
from workers.kinds.iterative import grid
from workers.kinds.iterative.belief import Members, members
from workers.kinds.iterative.fit import fit_domain_model
from workers.kinds.iterative.grid import Executions, Flat, scatter

STAGES = 10
LENGTHS = np.geomspace(5.0, 80.0, STAGES)
EXECUTORS = {"name": "executors", "minimum": 2, "maximum": 40}
Law = Callable[[Floats], Floats]


def _amdahl(units: Floats) -> Floats:
    return np.asarray(0.2 + 0.8 * 16 / units[:, 0])


def _layout(**changes: Any) -> Layout:
    return Layout(Spec.model_validate({"name": "w", "resources": [EXECUTORS], "iterations": STAGES} | changes))


def _flat(
    layout: Layout, sampled: Floats, law: Law = _amdahl, noise: Floats | float = 0.03, effect: float = 0.05
) -> Flat:
    """Executions at allocations [n, R] that never change; a second metric is the reciprocal of the first."""
    rng, items = np.random.default_rng(7), []
    for run, units in enumerate(sampled):
        seconds = LENGTHS * law(units[None]) * np.exp(effect * rng.normal() + noise * rng.normal(size=STAGES))
        metrics = [seconds, 100 / seconds][: len(layout.metrics)]
        items.append((f"run-{run}", np.column_stack([np.arange(STAGES), np.tile(units, (STAGES, 1)), *metrics])))
    return Executions(tuple(items)).flat(layout)


def _members(layout: Layout, flat: Flat, seed: int = 0, count: int = 16) -> Members:
    inputs, every = grid.inputs(layout, ()), np.ones(len(flat.groups), bool)
    metrics = len(layout.metrics)
    bin_of, rng = np.arange(STAGES, dtype=np.int32), np.random.default_rng(seed)
    return members(layout, flat, inputs, bin_of, [None] * metrics, [every] * metrics, count=count, rng=rng)


def _seconds(members: Members, metric: int = 0) -> Floats:
    """Logs of whole runs, [K, A]."""
    return np.log(np.exp(members.log_mean[:, metric, :, 0].astype(float)).sum(axis=2))


def _ladder(low: int, high: int, count: int) -> Floats:
    return np.linspace(low, high, count).round()[:, None]


def test_a_planted_law_is_recovered_within_the_members() -> None:
    layout = _layout()
    members = _members(layout, _flat(layout, _ladder(6, 36, 16)))
    truth = np.log(LENGTHS.sum() * _amdahl(layout.allocations))
    within = layout.allocations[:, 0] >= 6
    assert members.log_mean.shape == (16, 1, 39, 1, STAGES)
    assert np.abs(_seconds(members).mean(axis=0) - truth)[within].max() < 0.06
    assert members.effect_sd[0] == pytest.approx(0.05, abs=0.05)


def test_members_disagree_more_where_nobody_has_measured() -> None:
    layout = _layout()
    spread = _seconds(_members(layout, _flat(layout, _ladder(12, 24, 8)))).std(axis=0)
    measured = spread[10:23]
    assert measured.max() < 0.1
    assert min(spread[0], spread[-1]) > 2 * np.median(measured)


def test_more_never_helps_more_than_in_proportion() -> None:
    layout = _layout()
    logs = _members(layout, _flat(layout, _ladder(12, 24, 4), noise=0.3)).log_mean[:, 0, :, 0]
    slope = np.diff(logs, axis=1) / np.diff(np.log(layout.allocations[:, 0]))[:, None]
    assert slope.min() > -1 - 1e-4


@pytest.mark.parametrize("resources", [1, 2])
def test_stages_have_the_applications_share_on_average_at_its_ends_too(resources: int) -> None:
    lattice = shares(resources)
    for application in (0, len(lattice) // 3, len(lattice) - 1):
        chance = np.exp(scatter(lattice, application))
        np.testing.assert_allclose(chance.sum(axis=1), 1)
        np.testing.assert_allclose(chance @ lattice, np.tile(lattice[application], (len(chance), 1)), atol=0.04)


def test_slopes_that_are_noise_do_not_add_up() -> None:
    """One stage scales and is quiet; the others wait and are noisy: the whole run hardly gets shorter."""
    layout, quiet, slopes = _layout(), np.arange(STAGES) == 4, []
    noise = np.where(quiet, 0.05, 0.5)
    for count in range(8, 16):
        flat = _flat(
            layout, _ladder(8, 30, count), lambda units: np.where(quiet, 16 / units[:, 0], 1.0), noise=noise, effect=0.1
        )
        seconds = _seconds(_members(layout, flat)).mean(axis=0)
        slopes.append(seconds[8 - 2] - seconds[30 - 2])
    whole = LENGTHS.sum() - LENGTHS[4]
    truth = float(np.log((whole + 2 * LENGTHS[4]) / (whole + LENGTHS[4] * 16 / 30)))
    assert abs(np.mean(slopes) - truth) < 0.06


def test_an_overhead_that_was_measured_is_seen() -> None:
    layout = _layout()
    members = _members(
        layout, _flat(layout, _ladder(4, 40, 16), lambda units: 0.5 + 4 / units[:, 0] + units[:, 0] / 40)
    )
    assert (_seconds(members)[:, 8] < _seconds(members)[:, -1]).all()


def test_each_stage_has_its_own_noise() -> None:
    layout, noise = _layout(), np.where(np.arange(STAGES) < 5, 0.3, 0.02)
    noise_sd = _members(layout, _flat(layout, _ladder(6, 36, 24), noise=noise)).noise_sd
    assert noise_sd.shape == (1, STAGES)
    assert 2 * noise_sd[0, 5:].max() < noise_sd[0, :5].min()


def test_noise_is_as_wide_as_it_was_planted_and_an_outlier_adds_little() -> None:
    layout = _layout()
    flat = _flat(layout, _ladder(6, 36, 96), noise=0.2)
    whole = np.sqrt((_members(layout, flat).noise_sd ** 2).mean())
    assert whole == pytest.approx(0.2, rel=0.03)
    spoilt = flat._replace(metrics=flat.metrics.copy())
    spoilt.metrics[::97] *= 1_000
    assert np.sqrt((_members(layout, spoilt).noise_sd ** 2).mean()) < 1.2 * whole


@pytest.mark.parametrize("sampled", [[[12.0], [20.0]], [[16.0]] * 6, [[16.0]]])
def test_little_is_known_from_two_executions_or_one_allocation(sampled: list[list[float]]) -> None:
    layout = _layout()
    seconds = _seconds(_members(layout, _flat(layout, np.array(sampled))))
    shares = seconds[:, 0] - seconds[:, -1]  # of ln 20 at most
    assert np.isfinite(seconds).all()
    assert np.ptp(shares) > 0.4 * np.log(20)
    assert seconds[:, 14].std() < 0.2


def test_two_resources_are_told_apart() -> None:
    resources = [EXECUTORS | {"maximum": 16}, {"name": "cores", "minimum": 1, "maximum": 8}]
    layout = _layout(resources=resources)
    rng = np.random.default_rng(3)
    sampled = np.column_stack([rng.integers(2, 17, 24), rng.integers(1, 9, 24)]).astype(float)
    members = _members(layout, _flat(layout, sampled, lambda units: 0.2 + 6.4 / units[:, 0]))
    logs = _seconds(members).mean(axis=0).reshape(15, 8)
    assert float(np.mean(logs[0] - logs[-1])) == pytest.approx(np.log(3.4 / 0.6), abs=0.3)
    assert float(np.abs(logs[:, 0] - logs[:, -1]).mean()) < 0.2


def test_what_a_target_wants_at_least_rises_with_the_allocation() -> None:
    metrics = [{"name": "iteration_seconds"}, {"name": "throughput", "target": 5.0, "goal": "at_least"}]
    layout = _layout(metrics=metrics)
    result = _members(layout, _flat(layout, _ladder(6, 36, 16))).log_mean[:, 1, :, 0]
    truth = np.log(100 / LENGTHS / _amdahl(layout.allocations)[:, None])
    assert (result[:, -1] > result[:, 0]).all()
    assert np.abs(result.mean(axis=0) - truth)[4:].mean() < 0.08


def test_features_act_as_the_selected_family_says() -> None:
    layout = _layout(features=[{"name": "batch", "minimum": 1, "maximum": 64}])
    rng, items = np.random.default_rng(0), []
    for run in range(16):
        units, batch = np.full(STAGES, float(rng.integers(4, 37))), rng.choice([8.0, 16.0, 32.0], STAGES)
        seconds = batch * _amdahl(units[:, None]) * np.exp(0.03 * rng.normal(size=STAGES))
        items.append((f"run-{run}", np.column_stack([np.arange(STAGES), units, seconds, batch])))
    flat = Executions(tuple(items)).flat(layout)
    inputs, every = grid.inputs(layout, (np.array([8.0, 16.0, 32.0]),)), np.ones(len(flat.groups), bool)
    chosen = select(Inputs(("executors",), ("batch",)), flat.X, flat.metrics[:, 0], flat.groups)
    one = np.zeros(STAGES, np.int32)
    result = members(layout, flat, inputs, one, [chosen], [every], count=4, rng=np.random.default_rng(0))
    assert result.log_mean.shape == (4, 1, 39, 3, 1)
    np.testing.assert_allclose(np.diff(result.log_mean[:, 0, 4:35, :, 0], axis=2), np.log(2), atol=0.15)


def test_what_more_executors_spoil_is_not_taken_for_a_slow_run() -> None:
    """Beyond a knee that no sample shows, runs get slower: those that went there find it out, and go back."""

    def law(units: Floats) -> Floats:
        return np.asarray(_amdahl(np.minimum(units, 18)) * (1 + 0.01 * np.maximum(units[:, 0] - 18, 0)))

    target = {"name": "iteration_seconds", "target": 1.1 * float(law(np.full((1, 1), 14.0))[0] * 3 * LENGTHS.sum())}
    metric = target | {"scope": "run"}
    spec = Spec.model_validate({"name": "w", "resources": [EXECUTORS], "metrics": [metric], "iterations": 3 * STAGES})
    layout, back = Layout(spec), []
    for seed in range(8):
        random, items = np.random.default_rng(seed), []
        for run, units in enumerate((9.0, 12.0, 13.0, 16.0, 20.0, 21.0, 24.0, 25.0)):
            slowness = np.exp(0.15 * random.normal() + 0.1 * random.normal(size=3 * STAGES))
            seconds = np.tile(LENGTHS, 3) * law(np.full((1, 1), units)) * slowness
            columns = np.arange(3 * STAGES), np.full(3 * STAGES, units), seconds
            items.append((f"run-{run}", np.column_stack(columns)))
        projector = Projector(layout, fit_domain_model(spec, Executions(tuple(items)), seed).table)
        state = begin(projector, np.full((50, 1), 25 - 2))
        for i, units in enumerate([25.0] * 3 + [40.0] * 8):
            pace = np.exp(0.25 + 0.1 * random.normal(size=(50, 1)))
            measured = np.tile(LENGTHS, 3)[i] * law(np.full((50, 1), units))[:, None] * pace
            state = advance(projector, state, np.full((50, 1), int(units) - 2), measured, np.zeros((50, 0)))
        best = outlook(projector, state, everywhere(projector, state)).argmax(axis=0)
        back.append(float((layout.allocations[best, 0] <= 26).mean()))
    assert np.mean(back) > 0.85  # .92; .78 under laws that only rise with an overhead from the start


def test_draws_repeat_by_seed() -> None:
    layout = _layout()
    flat = _flat(layout, _ladder(6, 36, 6))
    one, same, other = (_members(layout, flat, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.log_mean, same.log_mean)
    assert not np.array_equal(one.log_mean, other.log_mean)


def test_single_rows_leave_open_what_is_noise_and_what_is_the_run() -> None:
    layout, rng = _layout(), np.random.default_rng(0)
    units = rng.integers(4, 37, 60).astype(float)
    seconds = 20 * _amdahl(units[:, None]) * np.exp(0.2 * rng.normal(size=60))
    rows = [np.array([[0.0, x, y]]) for x, y in zip(units, seconds, strict=True)]
    flat = Executions(tuple((f"run-{n}", row) for n, row in enumerate(rows))).flat(layout)
    members = _members(layout, flat)
    assert 0.08 < members.effect_sd[0] < 0.2
    assert 0.08 < members.noise_sd[0, 0] < 0.2
