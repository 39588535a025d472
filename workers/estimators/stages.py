"""Iterations that differ by their place in the run: a level per iteration, and how much it feels the allocation.

Real iterative programs are not stationary: they load, warm up, check-point, validate every n-th time. With a the level
and e the elasticity of an iteration (bin), the model is

    log y = a[bin] + e[bin] · f(execution, input),

where f is what an execution took relative to the levels. ``decompose`` estimates a, e and f together, by alternating
robust fits; a family then learns f's dependence on the input. Which of three forms is used, cross-validation decides:
``none`` (a = 0, e = 1), ``levels`` (e = 1) and ``elastic``.
"""

from typing import Literal, NamedTuple

import numpy as np

from workers.estimators.base import Floats, Integers
from workers.estimators.replicates import distinct, grouped_median

Form = Literal["none", "levels", "elastic"]
ROUNDS = 8
PRIOR_SD = 0.5  # of an elasticity, around 1


class Rows(NamedTuple):
    """Measurements: inputs [n, D], log metric [n], execution [n], iteration bin [n]."""

    X: Floats
    logs: Floats
    groups: Integers
    bins: Integers

    def where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> "Rows":
        """The rows where ``chosen`` [n] holds."""
        return Rows(self.X[chosen], self.logs[chosen], self.groups[chosen], self.bins[chosen])


class Stages(NamedTuple):
    """Level and elasticity per bin, [I] each, and the rows that are left for a family to learn from."""

    level: Floats
    elasticity: Floats
    rows: Rows

    def compose(self, curve: Floats, bins: Integers) -> Floats:
        """Log metric of ``curve`` [n], a log prediction, in ``bins`` [n]; bins beyond the last one seen are typical."""
        level, elasticity = (np.append(part, np.median(part)) for part in (self.level, self.elasticity))
        bins = np.minimum(bins, len(self.level))
        return np.asarray(level[bins] + elasticity[bins] * curve, np.float64)


def decompose(rows: Rows, bins: int, form: Form) -> Stages:
    """Levels, elasticities and remaining rows of ``rows``, whose bins run from 0 to ``bins`` − 1."""
    if form == "none":
        return Stages(np.zeros(bins), np.ones(bins), rows)
    first, cell = distinct(rows.X, rows.groups)
    level, elasticity, effect = _alternate(rows, cell, len(first), bins, elastic=form == "elastic")
    residual = rows.logs - level[rows.bins] - elasticity[rows.bins] * effect[cell]
    level = _filled(_shrunk(level, residual, rows.bins, bins))
    left = Rows(rows.X[first], effect, rows.groups[first], np.zeros(len(first), np.intp))
    return Stages(level, _filled(elasticity), left)


def _alternate(rows: Rows, cell: Integers, cells: int, bins: int, *, elastic: bool) -> tuple[Floats, Floats, Floats]:
    logs, place = rows.logs, rows.bins
    level, elasticity = grouped_median(logs, place, bins), np.ones(bins)
    effect = grouped_median(logs - level[place], cell, cells)
    for _ in range(ROUNDS):
        if elastic:
            weight, noise = _weights(logs - level[place] - elasticity[place] * effect[cell])
            elasticity = _elasticity(logs - level[place], effect[cell], weight, place, bins, noise)
            slope = elasticity[place]
            over = np.bincount(cell, weight * slope * (logs - level[place]), cells)
            effect = over / (np.bincount(cell, weight * slope**2, cells) + 1e-6)
        else:
            effect = grouped_median(logs - level[place], cell, cells)
        shift = float(np.median(effect))
        effect = effect - shift
        level = grouped_median(logs - elasticity[place] * effect[cell], place, bins)
    return level, np.where(np.isnan(level), np.nan, elasticity), effect


def _weights(residual: Floats) -> tuple[Floats, float]:
    """Huber weights [n], and a robust variance of ``residual`` [n]."""
    scale = max(1.4826 * float(np.median(np.abs(residual))), 1e-4)
    return np.minimum(1.0, 1.5 * scale / np.maximum(np.abs(residual), 1e-12)), scale**2


def _elasticity(logs: Floats, effect: Floats, weight: Floats, place: Integers, bins: int, noise: float) -> Floats:
    prior = noise / PRIOR_SD**2
    over = np.bincount(place, weight * effect * logs, bins) + prior
    return np.clip(over / (np.bincount(place, weight * effect**2, bins) + prior), -0.5, 2.5)


def _shrunk(level: Floats, residual: Floats, place: Integers, bins: int) -> Floats:
    """Levels drawn towards their median as far as their differences are noise (James and Stein 1961)."""
    counts = np.maximum(np.bincount(place, minlength=bins), 1)
    _, noise = _weights(residual)
    sampling = np.pi / 2 * noise / counts
    between = max(float(np.nanvar(level)) - float(sampling.mean()), 0.0)
    centre = float(np.nanmedian(level))
    return centre + (level - centre) * between / np.maximum(between + sampling, 1e-12)


def _filled(values: Floats) -> Floats:
    """Bins that were not seen, between the nearest that were."""
    seen = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), seen, values[seen])
