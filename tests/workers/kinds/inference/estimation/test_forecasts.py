"""Forecasts of users' requests, out of logs."""

from __future__ import annotations

import numpy as np
import pytest

from app.kinds.columns import MICRO
from app.kinds.forecasting.answer import LEAST_SECONDS, ExpectedCounts
from app.kinds.inference.kind import KIND
from app.kinds.inference.samples import Content, Requests
from tests.app.kinds.inference.workloads import spec
from tests.workers.kinds.inference.estimation.test_fit import few
from workers.estimators.forecasting.back_test import FEWEST, SECONDS
from workers.inputs import STEADY, Drifts, Workload
from workers.kinds.inference.estimation.fit import fit


def log(hours: float, every: tuple[float, float] = (10.0, 30.0)) -> Requests:
    """Requests of two users, each at its pace in seconds."""
    each = [np.arange(0.0, hours * 3600, pace) for pace in every]
    user = np.repeat([0, 1], [len(times) for times in each])
    time = np.concatenate(each)
    order = np.argsort(time, kind="stable")
    return Requests((time[order] * MICRO).astype(np.int64), user[order].astype(np.uint8), np.full(len(time), np.nan))


def expected(drifts: Drifts, *logs: Requests) -> dict[str, ExpectedCounts]:
    """What a fitted model tells, by user."""
    samples = [(str(number), Content(few(servers=(0,)), one)) for number, one in enumerate(logs)]
    result = fit(Workload(spec(), samples=samples, drifts=drifts), 0)
    return {one.name: one.ahead() for one in KIND.forecasters(KIND.model(result.model))}


def test_each_user_is_forecast_from_the_longest_log() -> None:
    reported = expected(STEADY, log(1, (1.0, 1.0)), log(5))
    assert {name: one.median.item() for name, one in reported.items()} == pytest.approx({"web": 60, "mobile": 20})


def test_a_drift_of_the_load_is_in_the_forecast() -> None:
    reported = expected(Drifts([{"arrivals.web": 2.0}]), log(5))
    assert reported["web"].median == pytest.approx([120.0])
    assert reported["mobile"].median == pytest.approx([20.0])


def test_a_short_log_gives_none() -> None:
    assert expected(STEADY, log(3)) == {}
    assert FEWEST * SECONDS == LEAST_SECONDS
    jumped = log(3)._replace(time=log(3).time + np.where(np.arange(len(log(3).time)) > 10, 10**14, 0))
    samples = [("0", Content(few(servers=(0,)), jumped))]
    log_seconds = fit(Workload(spec(), samples=samples), 0).report["log_seconds"]
    assert 2.9 * 3600 < log_seconds < 3 * 3600
