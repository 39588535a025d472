"""Forecasts, against sums done by hand on the planted workload."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import forecast
from app.kinds.iterative.state import advance, begin
from tests.app.kinds.iterative.decisions.deciding import compiled, reported, seconds


def test_the_projection_is_what_is_spent_and_what_is_left() -> None:
    on = compiled()
    state = reported(on, [8], slower=1.0, iterations=10)
    hold, chosen = on.layout.index(state.levels), on.layout.index(state.levels + 4)
    observation = forecast(on.projector, state, hold, chosen, np.array([2.0]))
    spread = math.exp(on.projector.noise_variance[0] / 2 + state.variance[0, 0] / 2)
    assert observation.projected[0, 0, 0] == pytest.approx(10 * seconds(8) + 20 * seconds(8) * spread)
    assert observation.projected[1, 0, 0] == pytest.approx(10 * seconds(8) + 20 * seconds(12) * spread + 2.0)
    assert observation.excess[:, 0, 0] == pytest.approx(observation.projected[:, 0, 0] / 330 - 1)
    price = on.layout.prices[0] / 3600
    assert observation.cost[0, 0] == pytest.approx(20 * seconds(8) * spread * 8 * price)


def test_the_next_iteration_holds_the_pause_of_a_change() -> None:
    on = compiled()
    state = reported(on, [8])
    hold, chosen = on.layout.index(state.levels), on.layout.index(state.levels + 4)
    calm = forecast(on.projector, state, hold, chosen, np.zeros(1))
    paused = forecast(on.projector, state, hold, chosen, np.array([2.0]))
    for values, more in ((calm.mean, paused.mean), (calm.low, paused.low), (calm.high, paused.high)):
        assert more == pytest.approx(values + 2.0)


def test_intervals_narrow_as_the_run_is_known() -> None:
    on = compiled()
    widths = []
    for iterations in (0, 1, 5, 20):
        state = reported(on, [8], iterations=iterations)
        here = on.layout.index(state.levels)
        observation = forecast(on.projector, state, here, here, np.zeros(1))
        widths.append(float(observation.high[0, 0] / observation.low[0, 0]))
    table = on.projector.table
    assert widths == sorted(widths, reverse=True)
    assert math.log(widths[0]) == pytest.approx(float(table.marginal_high[0] - table.marginal_low[0]))


@pytest.mark.parametrize("times", [0.4, 2.5])
def test_intervals_learn_their_scale_from_the_errors_of_the_run(times: float) -> None:
    """Errors of an eighth or so of what the samples' were narrow them, larger ones widen them."""
    on = compiled()
    widths = []
    for scale in (1.0, times):
        state = reported(on, [8], iterations=0)
        noise = float(on.projector.table.noise_sd[0]) * scale * np.random.default_rng(3).standard_normal(20)
        for error in noise - noise.mean():
            measured = np.array([[seconds(8) * math.exp(error)]])
            state = advance(on.projector, state, state.levels, measured, np.zeros((1, 0)))
        here = on.layout.index(state.levels)
        observation = forecast(on.projector, state, here, here, np.zeros(1))
        widths.append(math.log(float(observation.high[0, 0] / observation.low[0, 0])))
    assert (widths[1] < 0.75 * widths[0]) if times < 1 else (widths[1] > 1.5 * widths[0])


def test_loud_iterations_have_wider_intervals() -> None:
    on = compiled()
    table = on.projector.table
    bins = np.arange(30, dtype=np.int32) % 2
    loud = replace(
        table,
        log_mean=np.repeat(table.log_mean, 2, axis=3),
        iteration_bin=bins,
        noise_by_bin=np.array([[0.05, 0.2]]),
    )
    projector = Projector(on.layout, loud)
    state = begin(projector, np.array([[4]]))._replace(variance=np.zeros((1, 1)))
    here, widths = on.layout.index(state.levels), []
    for iteration in (0, 1):
        observation = forecast(projector, state._replace(iteration=np.array([iteration])), here, here, np.zeros(1))
        widths.append(math.log(float(observation.high[0, 0] / observation.low[0, 0])))
    assert widths[1] == pytest.approx(4 * widths[0], rel=1e-6)
