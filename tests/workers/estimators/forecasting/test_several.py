"""Logs of events as series, and which of them networks are trained for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.kinds.forecasting.answer import deserialise
from app.kinds.forecasting.series import Floats, Series
from tests.workers.estimators.forecasting.planted import HOUR
from workers.estimators.forecasting import back_test
from workers.estimators.forecasting.back_test import SECONDS, count_by_class, forecaster, forecasters
from workers.estimators.forecasting.families import HYBRID


def test_events_are_counted_in_whole_intervals_by_class() -> None:
    times = np.sort(np.random.default_rng(0).uniform(1_000.0, 40_000.0, 500))
    classes = np.arange(500) % 2

    series = count_by_class(times, classes, ("a", "b"))

    assert [one.start for one in series.values()] == [SECONDS, SECONDS]
    assert series["a"].end == times[-1] // SECONDS * SECONDS
    for place, name in enumerate("ab"):
        own = times[classes == place]
        assert series[name].counts.sum() == (own < series[name].end).sum()
        assert series[name].counts[3] == ((own >= 4 * SECONDS) & (own < 5 * SECONDS)).sum()


@pytest.mark.parametrize("times", [np.zeros(0), np.linspace(0, 24 * SECONDS - 1, 200)], ids=["none", "short"])
def test_a_short_log_tells_nothing(times: Floats) -> None:
    series = count_by_class(times, np.zeros(len(times), np.int64), ("a",))
    result, forecast_values = forecasters(series, 0)
    assert (series, len(result), forecast_values) == ({}, 0, {})


def test_the_busiest_alone_have_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = {}
    result = forecaster

    def recorded(name: str, series: Series, horizons: Sequence[int], seed: int, names: Sequence[str]) -> Any:
        tried[name] = HYBRID in names
        return result(name, series, horizons, seed, names)

    monkeypatch.setattr(back_test, "MOST_TRAINED", 1)
    monkeypatch.setattr(back_test, "forecaster", recorded)
    every = {name: Series(np.full(40, level), 0.0, HOUR) for name, level in (("few", 1.0), ("many", 9.0))}
    selection, forecast_values = forecasters(every, 0)

    assert tried == {"few": False, "many": True}
    assert [one.name for one in deserialise(selection)] == [*forecast_values] == ["few", "many"]
