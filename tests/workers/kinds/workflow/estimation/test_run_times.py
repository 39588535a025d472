"""Run-time predictors: the family that a planted log follows is found, and what users do is told apart."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.workflow.run_times import PastTask, Predictor
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.estimators.base import TooLittleData
from workers.kinds.workflow.run_times import fit_run_times, predict_traces, refit

Floats = NDArray[np.float64]
UNKNOWN = float("nan")


def trace(runtime: Floats, estimate: Floats, user: NDArray[np.int64]) -> Trace:
    """Tasks a day apart: each has ended before the next comes."""
    count = len(runtime)
    return independent_jobs(1e6 * np.arange(count, dtype=np.float64), runtime, estimate, np.ones(count, np.int64), user)


def planted(kind: str, count: int = 400) -> Trace:
    rng = np.random.default_rng(1)
    user = rng.integers(0, 4, count)
    usual = np.array([100.0, 1_000.0, 5_000.0, 20_000.0])[user]
    noise = np.exp(rng.normal(0, 0.05, count))
    if kind == "history":  # a user's tasks take what they took; estimates say nothing
        return trace(usual * noise, 86_400.0 * np.exp(rng.uniform(0, 3, count)), user)
    estimate = np.exp(rng.uniform(5, 11, count))
    share = {"estimate": np.ones(count), "ratio": np.array([0.9, 0.5, 0.2, 0.05])[user]}[kind]
    return trace(estimate * share * np.minimum(noise, 1.0), estimate, user)


@pytest.mark.parametrize("family", ["history", "ratio", "estimate"])
def test_the_family_that_a_log_follows_is_found(family: str) -> None:
    predictor, report = fit_run_times([("log", planted(family))])
    mape = {candidate["family"]: candidate["mape"] for candidate in report["candidates"]}
    assert min(mape.values()) < 0.1 < mape["mean"]
    assert predictor.family == family
    assert report["metrics"]["run_time"]["mape"] == mape[predictor.family]


def test_a_log_without_estimates_is_not_predicted_by_them() -> None:
    log = planted("history")
    report = fit_run_times([("log", log._replace(estimate=np.full(log.tasks, UNKNOWN)))]).report
    assert [c["mape"] for c in report["candidates"] if c["family"] in ("estimate", "ratio")] == [None, None]
    assert report["family"] == "history"


def test_what_is_predicted_of_a_task_is_what_was_known_when_it_was_submitted() -> None:
    user = np.array([0, 1, 0, 0, -1, 0])
    log = trace(np.array([10.0, 70.0, 30.0, 80.0, 5.0, 1.0]), np.full(6, 100.0), user)
    log = log._replace(estimate=np.array([100.0, 100.0, 100.0, UNKNOWN, UNKNOWN, 40.0]))
    last, mean = (predict_traces([log, log], Predictor(family, mean=50.0)) for family in ("history", "mean"))
    for one in last:
        np.testing.assert_allclose(one.expected, [100, 100, 10, 20, 50, 40])
        np.testing.assert_allclose(one.requested, [100, 100, 100, 20, 50, 40])
    np.testing.assert_allclose(mean[1].expected, [50, 50, 50, 50, 50, 40])
    assert refit(Predictor("mean", mean=1.0), [log]).mean == pytest.approx(196 / 6)
    unknown = log._replace(runtime=np.full(6, UNKNOWN))
    assert refit(Predictor("mean", mean=1.0), [unknown]).mean == 1.0


def test_too_few_tasks_are_a_state_with_its_terms() -> None:
    with pytest.raises(TooLittleData, match="needs 50 tasks with run times; has 20"):
        fit_run_times([("log", planted("history", 20))])


@pytest.mark.filterwarnings("error")
def test_traces_without_run_times_and_traces_of_one_task_are_fitted_with_the_others() -> None:
    """Of a trace of one task nothing is fitted before it is predicted, even if there are only such traces."""
    log = planted("estimate")
    none = log._replace(runtime=np.full(log.tasks, UNKNOWN))
    predictor, report = fit_run_times([("none", none), ("log", log), ("log again", log)])
    assert predictor.family == "estimate"
    assert (report["executions"], report["observations"], report["held_out"]) == (3, 800, 200)
    single = [(f"task {k}", trace(np.array([90.0 + k]), np.array([100.0 + k]), np.array([0]))) for k in range(50)]
    predictor, report = fit_run_times(single)
    assert predictor.mean == pytest.approx(114.5)
    assert report["held_out"] == 50
    assert all(np.isfinite(candidate["median"]) for candidate in report["candidates"])


def test_predictions_are_never_above_estimates_and_survive_their_bytes() -> None:
    fitted = Predictor.from_bytes(Predictor("ratio", 500.0, 2.0, {"ann": 0.5}).to_bytes())
    estimate = np.array([100.0, 100.0, UNKNOWN, UNKNOWN])
    users, history = ["ann", "bob", "cy", ""], {"cy": tuple(PastTask(seconds, 100.0, 1) for seconds in (40.0, 60.0))}
    np.testing.assert_allclose(fitted.expected(estimate, users, history), [50, 100, 50, 500])
    np.testing.assert_allclose(Predictor().expected(estimate, users, {}), [100, 100, 3600, 3600])
