"""Every family against the contract, and the published numbers of those that come from the literature."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.contracts import estimator
from workers.estimators.base import Estimator, Inputs
from workers.estimators.families import (
    Blend,
    Ernest,
    GaussianProcess,
    GradientBoosting,
    Guided,
    Mean,
    ernest_parameters,
    ernest_terms,
)
from workers.estimators.registry import FAMILIES
from workers.estimators.throughput import (
    Parameters,
    Throughput,
    fit_parameters,
    step_seconds,
)

POLLUX = Parameters(0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317, 1.14)
SQUARE, VARIANCE = 0.00136, 0.000502  # of the gradient at the initial batch size


@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name: str) -> None:
    estimator.check(FAMILIES[name])


def test_a_blend_keeps_the_contract_too() -> None:
    X, y, groups = estimator.planted()
    members: list[Estimator] = [Ernest(estimator.INPUTS), Mean(estimator.INPUTS)]
    blend = Blend(estimator.INPUTS, members).fit(X, y, groups)
    logs = [np.log(member.predict(X).mean) for member in members]
    np.testing.assert_allclose(np.log(blend.predict(X).mean), np.mean(logs, axis=0))
    assert blend.frozen().name == "blend"


@pytest.mark.parametrize("X", [np.ones(3), np.ones((3, 1)), np.ones((3, 3))])
def test_a_design_matrix_of_the_wrong_shape_is_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"X must be \[n, 2\]"):
        Ernest(estimator.INPUTS).fit(X, np.ones(len(X)), np.arange(len(X)))


def test_a_gaussian_process_is_conditioned_on_so_many_inputs() -> None:
    X, y, groups = estimator.planted()
    inputs = replace(estimator.INPUTS, most_cells=7)
    few, many = (GaussianProcess(one).fit(X, y, groups).process_.X_train_ for one in (inputs, estimator.INPUTS))
    assert len(few) == 7 < len(many)


def test_ernest_parameters_on_its_own_example(shared_data: Path) -> None:
    with (shared_data / "bell" / "ernest-rcv1.csv").open() as file:
        cores, share, seconds = np.array([[float(v) for v in row] for row in list(csv.reader(file))[1:]]).T
    theta = ernest_parameters(ernest_terms(cores, share), seconds)
    np.testing.assert_allclose(theta, [1.9001, 162.1982, 0.0, 1.5883], atol=5e-5)
    predicted = ernest_terms(np.array([4.0, 8.0, 16.0])) @ theta
    np.testing.assert_allclose(predicted, [44.652, 25.478, 16.441], atol=5e-4)


def test_ernest_recovers_a_planted_sum() -> None:
    machines = np.arange(1.0, 17.0)
    theta = ernest_parameters(ernest_terms(machines), ernest_terms(machines) @ [3.0, 50.0, 0.2, 0.0], "relative")
    np.testing.assert_allclose(theta, [3.0, 50.0, 0.2, 0.0], atol=1e-6)


def test_ernest_takes_a_throughput_by_its_reciprocal() -> None:
    gpus = np.arange(1.0, 17.0)[:, None]
    per_second = 1 / (1.0 + 20.0 / gpus[:, 0])
    fitted = Ernest(Inputs(("gpus",))).fit(gpus, per_second, np.arange(16))
    assert fitted.sign_ == -1
    np.testing.assert_allclose(fitted.predict(gpus).mean, per_second, rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "replicas", "expected"), [(2, 8, (975.602, 0.31336, 305.717)), (1, 4, (517.641, 0.57790, 299.145))]
)
def test_pollux_numbers(nodes: int, replicas: int, expected: tuple[float, float, float]) -> None:
    n, r, b = np.array([float(nodes)]), np.array([float(replicas)]), np.array([64.0])
    rate, scale = r * b / step_seconds(POLLUX, n, r, b), r * b / 128.0
    share = (VARIANCE + SQUARE) / (VARIANCE / scale + SQUARE) / scale
    np.testing.assert_allclose([rate[0], share[0], rate[0] * share[0]], expected, atol=6e-4)


def test_pollux_parameters_are_recovered_as_durations() -> None:
    rng = np.random.default_rng(3)
    replicas = rng.choice([1.0, 2.0, 3.0, 4.0, 8.0, 12.0, 16.0], 200)
    nodes, batch = np.ceil(replicas / 4), rng.choice([16.0, 32.0, 64.0, 128.0], 200)
    truth = step_seconds(POLLUX, nodes, replicas, batch)
    parameters = fit_parameters(nodes, replicas, batch, truth * np.exp(0.01 * rng.normal(size=200)))
    assert float(np.abs(step_seconds(parameters, nodes, replicas, batch) / truth - 1).mean()) < 0.02
    assert 1 <= parameters.gamma <= 10


def test_throughput_learns_whether_the_batch_is_global() -> None:
    gpus, batch = (grid.ravel() for grid in np.meshgrid([1.0, 2.0, 4.0, 8.0, 16.0], [64.0, 128.0, 256.0, 512.0]))
    seconds = step_seconds(POLLUX, np.ones(20), gpus, batch / gpus)
    fitted = Throughput(Inputs(("gpus",), ("batch",))).fit(np.column_stack([gpus, batch]), seconds, np.arange(20))
    assert fitted.batch_ == "global"
    np.testing.assert_allclose(fitted.predict(np.column_stack([gpus, batch])).mean, seconds, rtol=0.05)


def test_beyond_what_was_seen_a_flexible_family_moves_as_ernest_does() -> None:
    gpus = np.arange(4.0, 13.0)[:, None]
    seconds = 100 / gpus[:, 0]
    guided = Guided(Inputs(("gpus",)), GaussianProcess(Inputs(("gpus",)))).fit(gpus, seconds, np.arange(9))
    inside, outside = guided.predict(np.array([[4.0]])), guided.predict(np.array([[1.0]]))
    np.testing.assert_allclose(outside.mean / inside.mean, 4.0, rtol=0.05)
    assert outside.high[0] / outside.low[0] > inside.high[0] / inside.low[0]


def test_boosting_is_monotone_only_where_the_data_are() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 16, (120, 2))
    y = 50 / X[:, 0] * np.exp(0.02 * rng.normal(size=120))
    fitted = GradientBoosting(Inputs(("gpus", "cpus"))).fit(X, y, np.arange(120))
    assert fitted.monotone_ == [-1, 0]
    curve = fitted.predict(np.column_stack([np.linspace(1, 16, 50), np.full(50, 8.0)])).mean
    assert (np.diff(curve) <= 1e-12).all()


def test_one_disturbed_execution_does_not_bend_the_others() -> None:
    X, y, groups = estimator.planted(noise=0.01)
    disturbed = y.copy()
    disturbed[5] *= 20
    for name in ("log_linear", "log_quadratic"):
        clean = FAMILIES[name].make(estimator.INPUTS).fit(X, y, groups).predict(X).mean
        robust = FAMILIES[name].make(estimator.INPUTS).fit(X, disturbed, groups).predict(X).mean
        assert float(np.abs(robust / clean - 1).mean()) < 0.05
