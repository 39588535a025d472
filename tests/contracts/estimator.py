"""The contract test kit of domain-model families: run over every member of the registry."""

import warnings

import numpy as np

from workers.estimators.base import Estimator, Floats, Inputs, Integers
from workers.estimators.registry import Family

INPUTS = Inputs(("gpus",), ("batch",))


def planted(executions: int = 60, noise: float = 0.02, seed: int = 0) -> tuple[Floats, Floats, Integers]:
    """Seconds of a computation that scales, and an overhead that grows: X [n, 2], y [n], execution [n]."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(1, 17, executions), rng.choice([16.0, 32.0, 64.0, 128.0], executions)])
    y = 2.0 + 0.5 * X[:, 1] / X[:, 0] + 0.1 * X[:, 0]
    return X, y * np.exp(noise * rng.normal(size=executions)), np.arange(executions)


def check(family: Family) -> None:
    """All that ``workers.estimators.base`` promises of a family."""
    X, y, groups = planted()
    fitted = family.make(INPUTS).fit(X, y, groups)
    _predicts(fitted, X)
    _repeats(family, fitted, X, y, groups)
    _freezes(fitted, X, y, groups)
    _beats_the_mean(family, fitted)
    _follows_the_unit(family, X, y, groups)
    _takes_a_single_input(family)


def _predicts(fitted: Estimator, X: Floats) -> None:
    assert isinstance(fitted.name, str)
    assert fitted.name
    for inputs in (X, X[:1], np.array([[1000.0, 1.0]]), np.array([[0.0, 32.0]])):
        mean, low, high = fitted.predict(inputs)
        np.testing.assert_allclose(fitted.median(inputs), mean, rtol=1e-9)
        assert mean.shape == low.shape == high.shape == (len(inputs),)
        assert np.isfinite(mean).all()
        assert (low > 0).all()
        assert (low <= mean).all()
        assert (mean <= high).all()


def _repeats(family: Family, fitted: Estimator, X: Floats, y: Floats, groups: Integers) -> None:
    again = family.make(INPUTS).fit(X, y, groups)
    np.testing.assert_array_equal(again.predict(X).mean, fitted.predict(X).mean)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = family.make(INPUTS).fit(X[order], y[order], groups[order])
    np.testing.assert_allclose(shuffled.predict(X).mean, fitted.predict(X).mean, rtol=1e-3)


def _freezes(fitted: Estimator, X: Floats, y: Floats, groups: Integers) -> None:
    frozen = fitted.frozen()
    assert frozen is not fitted
    assert frozen.name == fitted.name
    before = fitted.predict(X).mean
    half = frozen.fit(X[::2], y[::2], groups[::2])
    assert np.isfinite(half.predict(X).mean).all()
    np.testing.assert_array_equal(fitted.predict(X).mean, before)


def _beats_the_mean(family: Family, fitted: Estimator) -> None:
    X, y, _ = planted(seed=7)
    error = float(np.abs(fitted.predict(X).mean / y - 1).mean())
    assert error < (0.25 if family.complexity else 1.0)


def _follows_the_unit(family: Family, X: Floats, y: Floats, groups: Integers) -> None:
    milliseconds = family.make(INPUTS).fit(X, 1000 * y, groups).predict(X).mean
    np.testing.assert_allclose(milliseconds / 1000, family.make(INPUTS).fit(X, y, groups).predict(X).mean, rtol=0.02)


def _takes_a_single_input(family: Family) -> None:
    """What cross-validation leaves over may be a single input: no error, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = family.make(INPUTS).fit(np.array([[4.0, 32.0]] * 3), np.array([3.0, 3.1, 2.9]), np.arange(3))
        np.testing.assert_allclose(fitted.predict(np.array([[4.0, 32.0]])).mean, 3.0, rtol=0.05)
