"""Recover pairwise slow-downs from steps that were measured beside other jobs.

log slow-down of a beside b = usual + how sensitive a is + how much b presses + what is particular to the pair; each
part normal, its variance chosen by the marginal likelihood (empirical Bayes). So a pair that was never measured is told
by what is known of both, and one that was measured often by that alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from app.kinds.cluster.interference import Interference, unknown
from app.kinds.cluster.jobs import Floats, Integers
from workers.estimators.base import LEVEL, NORMAL_90

SEARCH_ROWS, MOST_ROWS = 400, 2_000
FOLDS = 5
FEWEST = 3
START = np.log([0.1, 0.1, 0.1, 0.05, 0.1])
"""Standard deviations: of what is usual, of sensitivity, of pressure, of pairs, of one measurement."""
LOWEST, HIGHEST = np.log(1e-3), np.log(3.0)


class Shared(NamedTuple):
    """Steps that were measured beside others.

    Attributes:
        application: positions, [n].
        beside: how many jobs of each application were there, [n, B].
        log: of seconds over those that it takes alone, [n].
    """

    application: Integers
    beside: Floats
    log: Floats

    def take(self, rows: Integers) -> Shared:
        """Some of them."""
        return Shared(self.application[rows], self.beside[rows], self.log[rows])


def fit_pairs(shared: Shared, applications: int, seed: int) -> tuple[Interference, dict[str, Any] | None]:
    """Slow-downs of all pairs, and what they err on pairs that were left out; nothing known from too few rows."""
    if len(shared.log) < FEWEST:
        return unknown(), None
    rng = np.random.default_rng([seed, 13])
    shared = shared.take(np.sort(rng.permutation(len(shared.log))[:MOST_ROWS]))
    return pairs(shared, applications, likeliest(shared, rng)), held_out(shared, rng)


def pairs(shared: Shared, applications: int, spreads: Floats) -> Interference:
    """All pairs, under given standard deviations."""
    one, other = (part.ravel() for part in np.indices((applications, applications)))
    asked = Shared(one, np.eye(applications)[other], np.zeros(len(one)))
    solved = cho_factor(_covariance(shared, shared, spreads) + _noise(shared, spreads), lower=True)
    across = _covariance(asked, shared, spreads)
    log = across @ cho_solve(solved, shared.log)
    own = float((np.exp(spreads[:4]) ** 2).sum())
    variance = own - np.einsum("an,na->a", across, cho_solve(solved, across.T))
    shape = applications, applications
    usual = [float(log.mean()), float(np.sqrt(own))]
    return Interference(log.reshape(shape), np.sqrt(np.maximum(variance, 0.0)).reshape(shape), np.array(usual))


def held_out(shared: Shared, rng: np.random.Generator) -> dict[str, Any]:
    """Errors of the slow-down on pairs that were left out, fold by fold, beside those of none and of the mean."""
    _, pair = np.unique(np.column_stack([shared.application, shared.beside]), axis=0, return_inverse=True)
    number = int(pair.max()) + 1
    fold = (rng.permutation(number) % min(FOLDS, number))[pair.ravel()]
    told = [_judged(shared, fold == one, rng) for one in range(int(fold.max()) + 1) if (fold != one).any()]
    if not told:
        return {"mape": None, "naive_mape": None, "mean_mape": None, "coverage": None}
    error, none, mean, inside = (np.concatenate(parts) for parts in zip(*told, strict=True))
    return {
        "mape": float(error.mean()),
        "naive_mape": float(none.mean()),
        "mean_mape": float(mean.mean()),
        "coverage": float(inside.mean()),
        "level": LEVEL,
        "observations": len(shared.log),
    }


def _judged(
    shared: Shared, test: np.ndarray[Any, np.dtype[np.bool_]], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    known, asked = shared.take(np.flatnonzero(~test)), shared.take(np.flatnonzero(test))
    spreads = likeliest(known, rng)
    mean, sd = foretold(known, asked, spreads)
    true = np.exp(asked.log)
    naive = np.exp(float((known.log / known.beside.sum(axis=1)).mean()) * asked.beside.sum(axis=1))
    inside = np.abs(asked.log - mean) <= NORMAL_90 * sd
    return np.abs(np.exp(mean) / true - 1), np.abs(1 / true - 1), np.abs(naive / true - 1), inside.astype(np.float64)


def foretold(known: Shared, asked: Shared, spreads: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the log of measurements that were not seen, [n] each."""
    solved = cho_factor(_covariance(known, known, spreads) + _noise(known, spreads), lower=True)
    across = _covariance(asked, known, spreads)
    mean = across @ cho_solve(solved, known.log)
    variance = np.diag(_covariance(asked, asked, spreads)) - np.einsum("an,na->a", across, cho_solve(solved, across.T))
    return mean, np.sqrt(np.maximum(variance, 0.0) + np.exp(2 * spreads[4]))


def likeliest(shared: Shared, rng: np.random.Generator) -> Floats:
    """Logs of the standard deviations of the parts that make what was measured likeliest, [5]."""
    few = shared.take(rng.permutation(len(shared.log))[:SEARCH_ROWS])
    parts, size = _parts(few, few), len(few.log)

    def loss(logs: Floats) -> float:
        covariance = np.tensordot(np.exp(2 * logs[:4]), parts, axes=1) + np.exp(2 * logs[4]) * np.eye(size)
        factor, lower = cho_factor(covariance, lower=True)
        solved = cho_solve((factor, lower), few.log)
        return float(few.log @ solved / 2 + np.log(np.diag(factor)).sum())

    bounds = [(LOWEST, HIGHEST)] * len(START)
    return np.asarray(minimize(loss, START, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25}).x, np.float64)


def _parts(one: Shared, other: Shared) -> Floats:
    """Of the covariance of two sets of measurements, by the four parts, [4, n, m]."""
    number = np.outer(one.beside.sum(axis=1), other.beside.sum(axis=1))
    same = one.application[:, None] == other.application
    together = one.beside @ other.beside.T
    return np.stack([number, number * same, together, together * same])


def _covariance(one: Shared, other: Shared, spreads: Floats) -> Floats:
    return np.asarray(np.tensordot(np.exp(2 * spreads[:4]), _parts(one, other), axes=1), np.float64)


def _noise(shared: Shared, spreads: Floats) -> Floats:
    return np.asarray(np.exp(2 * spreads[4]) * np.eye(len(shared.log)), np.float64)
