"""Forecasts, against sums done by hand on the planted workload."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.kinds.iterative.decisions.forecast import forecast
from tests.app.kinds.iterative.decisions.deciding import compiled, reported, seconds


def test_the_projection_is_what_is_spent_and_what_is_left() -> None:
    on = compiled()
    state = reported(on, [8], slower=1.0, iterations=10)
    hold, chosen = on.layout.index(state.levels), on.layout.index(state.levels + 4)
    seen = forecast(on.projector, state, hold, chosen, np.array([2.0]))
    spread = math.exp(on.projector.noise_variance[0] / 2 + state.variance[0, 0] / 2)
    assert seen.projected[0, 0, 0] == pytest.approx(10 * seconds(8) + 20 * seconds(8) * spread)
    assert seen.projected[1, 0, 0] == pytest.approx(10 * seconds(8) + 20 * seconds(12) * spread + 2.0)
    assert seen.excess[:, 0, 0] == pytest.approx(seen.projected[:, 0, 0] / 330 - 1)
    price = on.layout.prices[0] / 3600
    assert seen.cost[0, 0] == pytest.approx(20 * seconds(8) * spread * 8 * price)


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
        seen = forecast(on.projector, state, here, here, np.zeros(1))
        widths.append(float(seen.high[0, 0] / seen.low[0, 0]))
    table = on.projector.table
    assert widths == sorted(widths, reverse=True)
    assert math.log(widths[0]) == pytest.approx(float(table.marginal_high[0] - table.marginal_low[0]))
    assert math.log(widths[-1]) > float(table.residual_high[0] - table.residual_low[0])
