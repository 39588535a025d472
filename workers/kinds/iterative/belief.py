"""The belief of an ``iterative`` domain model: several members drawn from a hierarchical posterior over laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from workers.estimators.base import Floats, Integers, distinct, grouped_median
from workers.estimators.selection import Selection
from workers.kinds.iterative.grid import LAWS, Flat, scatter, shares

# A belief is a set of models (members) of one metric that fit its samples equally well, and differ where nothing was
# measured.
#
#     log y = level[stage] + law(share[stage], allocation) + run effect[execution] + noise[stage]
#
# A member draws the parameters from their posterior: the law and the application's share, then run effects, each
# stage's share and level. The application's share is judged by whole executions, because a difference that all stages
# of one execution have in common may be its run effect. Stages' shares scatter around it, so that a stage with few
# samples has it on average; how widely is estimated from all stages (empirical Bayes).


SWEEPS, CONVERGED = 10, 1e-4
ROUNDS = 3
FREEDOM = 4.0  # degrees of freedom of Student's t, which gives outlying executions and iterations less weight
EFFECT_SD, EFFECT_PRIOR = 0.15, 2.0  # prior deviation of log run effects, and its weight in executions
NOISE_SD, NOISE_PRIOR = 0.1, 4.0  # prior deviation of log noise; weight of all stages in each one's, in measurements
LEAST_SD = 1e-3
TAIL = 4.0
"""Residuals beyond so many of Student's scales are clipped; that scale is 6 to 9 % below normal noise's deviation."""


class Samples(NamedTuple):
    """One metric's n rows: natural log, stage (iteration bin), execution, allocation [n, R]; stages' importance [I]."""

    logs: Floats
    stages: Integers
    groups: Integers
    allocations: Floats
    importance: Floats


class Surfaces(NamedTuple):
    """Members at A allocations: natural log of the metric [K, A, I], noise deviation [I], deviation of run effects."""

    logs: Floats
    noise_sd: Floats
    effect_sd: float


def surfaces(samples: Samples, grid: Floats, count: int, rng: np.random.Generator) -> Surfaces:
    """Draw ``count`` members at the allocations ``grid`` [A, R], after estimating the spreads."""
    found = _Posterior(samples, grid)
    for _ in range(ROUNDS):
        found.reweigh()
    return Surfaces(np.stack([found.draw(rng) for _ in range(count)]), found.noise_sd, found.effect_sd)


class _Stages(NamedTuple):
    """Log likelihood of each share of each stage [I, J], level given the share [I, J], precision of the level [I]."""

    likelihood: Floats
    level: Floats
    precision: Floats


class _Posterior:
    """Point estimates of the spreads (empirical Bayes), and draws of everything else given them.

    Attributes:
        scale: scale of Student's t of each stage's log residuals, [I].
        noise_sd: the corresponding standard deviation, [I].
        effect_sd: standard deviation of log run effects.
    """

    def __init__(self, samples: Samples, grid: Floats) -> None:
        self.samples, self.lattice = samples, shares(grid.shape[1])
        first, self.cell = distinct(samples.allocations)
        centre = np.exp(np.log(np.maximum(samples.allocations, 1e-9)).mean(axis=0))
        self.curves = [law(samples.allocations[first] / centre, self.lattice) for law in LAWS]  # [D, J] each
        self.grid = [law(grid / centre, self.lattice) for law in LAWS]  # [A, J] each
        self.runs, self.stages = int(samples.groups.max()) + 1, len(samples.importance)
        self.scale, self.effect_sd = np.full(self.stages, 2 * NOISE_SD), EFFECT_SD
        self.noise_sd = self.scale
        self.robust = np.ones(len(samples.logs))
        self._judge()

    def reweigh(self) -> None:
        """Re-estimate the spreads and the rows' robust weights, given the most likely law and shares."""
        law, share = np.unravel_index(int(self.likelihood.argmax()), self.likelihood.shape)
        effects = self.effects[law][:, share]
        fit = self._by_stage(int(law), effects)
        chosen = (fit.likelihood + self._prior(fit, int(share), None)).argmax(axis=1)
        every = np.arange(self.stages)
        stage, logs = self.samples.stages, self.samples.logs
        model = fit.level[every, chosen][stage] + self.curves[law][self.cell, chosen[stage]]
        self._spreads(logs - model - effects[self.samples.groups], effects)
        self._judge()

    def draw(self, rng: np.random.Generator) -> Floats:
        """Natural logs of one posterior draw over the grid, [A, I]."""
        weights = np.exp(self.likelihood - self.likelihood.max()).ravel()
        law, share = divmod(int(rng.choice(len(weights), p=weights / weights.sum())), len(self.lattice))
        spread = np.sqrt(1 / (1 / self.effect_sd**2 + self.precision))
        effects = self.effects[law][:, share] * self.kept + spread * rng.standard_normal(self.runs)
        fit = self._by_stage(law, effects)
        chance = rng.gumbel(size=fit.likelihood.shape)
        chosen = (fit.likelihood + self._prior(fit, share, rng) + chance).argmax(axis=1)
        seen = fit.precision > 0
        level = fit.level[np.arange(self.stages), chosen]
        level[seen] += rng.standard_normal(int(seen.sum())) / np.sqrt(fit.precision[seen])
        level = np.interp(np.arange(self.stages), np.flatnonzero(seen), level[seen])
        return np.asarray(level + self.grid[law][:, chosen], np.float64)

    def _judge(self) -> None:
        """Fit effects of executions [G, J] and log likelihoods [laws, J] of every law; stages weigh by importance."""
        samples, weight = self.samples, self.samples.importance
        scale = weight.sum() / (weight**2 * self.scale**2).sum()
        rows = weight[samples.stages] * scale * self.robust
        self.precision = np.bincount(samples.groups, rows, self.runs)  # [G]
        variance = self.effect_sd**2 + 1 / np.maximum(self.precision, 1e-9)
        self.kept = self.effect_sd**2 / variance
        mine, left = self._two_way(samples.logs[:, None], rows)
        self.effects, likelihood = [], []
        for curve in self.curves:
            theirs, right = self._two_way(curve[self.cell], rows)
            effects = mine - theirs
            effects -= np.average(effects, axis=0, weights=1 / variance)
            far = np.log1p(effects**2 / (FREEDOM * variance[:, None])).sum(axis=0) * (FREEDOM + 1) / 2
            likelihood.append(-far - (rows[:, None] * (left - right) ** 2).sum(axis=0) / 2)
            self.effects.append(effects)
        self.likelihood = np.stack(likelihood)

    def _two_way(self, columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Weighted two-way fit of ``columns`` [n, c]: effects of executions [G, c], and the residuals [n, c]."""
        stages, groups = self.samples.stages, self.samples.groups
        runs, left = np.zeros((self.runs, columns.shape[1])), columns
        for _ in range(SWEEPS):
            left = columns - runs[groups]
            left = left - _means(left, stages, weights, self.stages)[stages]
            more = _means(left, groups, weights, self.runs)
            runs = runs + more
            if np.abs(more).max() < CONVERGED:
                break
        return runs, left

    def _by_stage(self, law: int, effects: Floats) -> _Stages:
        """Fit each stage's level for every share under ``law``, given the run effects [G]."""
        samples, curve = self.samples, self.curves[law]
        rest = samples.logs - effects[samples.groups]
        weights = self.robust / self.scale[samples.stages] ** 2
        place, size = samples.stages * len(curve) + self.cell, self.stages * len(curve)
        at = np.bincount(place, weights, size).reshape(self.stages, -1)  # [I, D]
        sums = np.bincount(place, weights * rest, size).reshape(self.stages, -1)
        precision = at.sum(axis=1)
        level = (sums.sum(axis=1)[:, None] - at @ curve) / np.maximum(precision, 1e-12)[:, None]
        squares = at @ curve**2 - 2 * sums @ curve - precision[:, None] * level**2
        return _Stages(-squares / 2, level, precision)

    def _prior(self, fit: _Stages, share: int, rng: np.random.Generator | None) -> Floats:
        """Log prior of the stages' shares around the application's, [J]; its concentration is chosen by marginal
        likelihood.

        With ``rng`` the concentration is drawn from its posterior (Gumbel-max); with None it is the most likely one.
        """
        prior = scatter(self.lattice, share)  # [S, J]
        evidence = logsumexp(fit.likelihood + prior[:, None], axis=2).sum(axis=1)
        chance = 0.0 if rng is None else rng.gumbel(size=len(evidence))
        return np.asarray(prior[int((evidence + chance).argmax())], np.float64)

    def _spreads(self, residual: Floats, effects: Floats) -> None:
        """Update ``scale``, ``robust``, ``noise_sd`` and ``effect_sd`` from log residuals [n] and run effects [G].

        The deviation of an execution with a single row is split equally between noise and run effect.
        """
        stages, groups, runs = self.samples.stages, self.samples.groups, max(self.runs - 1, 0)
        deviation, single = residual + effects[groups], (np.bincount(groups, minlength=self.runs) == 1)
        residual = np.where(single[groups], deviation / np.sqrt(2), residual)
        counts = np.bincount(stages, minlength=self.stages)
        freedom = np.maximum(counts * max(1 - (self.stages + (~single).sum()) / len(residual), 0.1), 0)

        def spread(squares: Floats) -> Floats:
            """Root mean square by stage of ``squares`` [n], shrunk towards that of all stages, [I]."""
            each = np.bincount(stages, squares, self.stages)
            common = (each.sum() + NOISE_PRIOR * NOISE_SD**2) / (freedom.sum() + NOISE_PRIOR)
            return np.asarray(np.sqrt((each + NOISE_PRIOR * common) / (freedom + NOISE_PRIOR)) + LEAST_SD)

        self.scale = spread(self.robust * residual**2)
        self.robust = (FREEDOM + 1) / (FREEDOM + (residual / self.scale[stages]) ** 2)
        limit = TAIL * self.scale[stages]
        self.noise_sd = spread(np.clip(residual, -limit, limit) ** 2)
        between = max(self._in_common(deviation) + (deviation[single[groups]] ** 2).sum() / 2, 0.0)
        self.effect_sd = float(np.sqrt((between + EFFECT_PRIOR * EFFECT_SD**2) / (runs + EFFECT_PRIOR)))

    def _in_common(self, deviation: Floats) -> float:
        """Sum over executions of the product of mean ``deviation`` [n] of even and odd rows: noise cancels out."""
        weights, half = self.samples.importance[self.samples.stages] * self.robust, np.arange(len(deviation)) % 2
        halves = [_means(deviation[:, None], self.samples.groups, weights * (half == k), self.runs) for k in range(2)]
        return float((halves[0] * halves[1]).sum())


def _means(values: Floats, index: Integers, weights: Floats, size: int) -> Floats:
    """Weighted means of ``values`` [n, c] by ``index`` [n], [size, c]; 0 where an index has no weight."""
    total = np.maximum(np.bincount(index, weights, size), 1e-12)[:, None]
    columns = [np.bincount(index, weights * column, size) for column in values.T]
    return np.stack(columns, axis=1) / total


def importance(logs: Floats, stages: Integers, count: int) -> Floats:
    """Weight of each stage in a sum over a run, [count]: its median metric, or all stages' if it has no rows."""
    level = grouped_median(logs, stages, count)
    return np.exp(np.where(np.isnan(level), np.nanmedian(level), level))


# Correction of members whose mean fits the samples worse than the selected family predicts unseen samples.


CLEARLY = 0.9  # largest ratio of the family's error on unseen rows to the members' error on known rows


def centred(
    layout: Layout,
    table: ModelTable,
    flat: Flat,
    held_out: Sequence[Floats],
    used: Sequence[NDArray[np.bool_]],
) -> ModelTable:
    """``table`` with members shifted, for metrics where the belief's mean is clearly worse than the selected family.

    Within the measured allocations the members' mean becomes the family's value; outside, they are shifted as at the
    nearest measured allocation. So differences between members are kept, and their laws outside.

    Args:
        held_out: log residuals of each metric's family on held-out rows.
        used: the rows of ``flat`` that these are of, bool [n] for each metric.
    """
    if table.members is None:
        return table
    projector = Projector(layout, table)
    index = layout.index(np.rint((flat.allocations - projector.minima) / projector.steps).astype(np.int64))
    at = index, projector.point(flat.features), np.clip(flat.iterations, 0, layout.iterations - 1)
    middle = projector.log_mean(*at) + projector.offsets(*at).mean(axis=1)
    members = table.members.copy()
    for m, (residuals, rows) in enumerate(zip(held_out, used, strict=True)):
        errors = np.abs(np.log(flat.metrics[rows, m]) - middle[rows, m])
        if np.abs(residuals).mean() < CLEARLY * errors.mean():
            members[:, m] -= members[:, m].mean(axis=0)[_nearest_seen(layout, table)]
    return replace(table, members=members)


def _nearest_seen(layout: Layout, table: ModelTable) -> NDArray[np.intp]:
    """For each allocation of the grid the index of the nearest one within the measured bounds, [A]."""
    minima, steps = (np.array([getattr(r, name) for r in layout.spec.resources]) for name in ("minimum", "step"))
    inside = np.clip(layout.allocations, table.seen_low, table.seen_high)
    return layout.index(np.rint((inside - minima) / steps).astype(np.int64))


# Members of every metric over the grid of an exported table.


MEMBERS = 16


class Members(NamedTuple):
    """K members that fit the samples equally well: M metrics, A allocations, C feature cells, I iteration bins.

    Attributes:
        log_mean: natural log of each metric's median, [K, M, A, C, I].
        noise_sd: standard deviation of the log residual within runs, [M, I].
        effect_sd: standard deviation of the log run effect between runs, [M].
    """

    log_mean: NDArray[np.float32]
    noise_sd: Floats
    effect_sd: Floats

    @property
    def usual_noise_sd(self) -> Floats:
        """Noise deviation over all iterations together, [M]: the root mean square."""
        return np.asarray(np.sqrt((self.noise_sd**2).mean(axis=1)))


def members(
    layout: Layout,
    flat: Flat,
    inputs: Floats,
    bin_of: NDArray[np.int32],
    selections: Sequence[Selection | None],
    used: Sequence[NDArray[np.bool_]],
    *,
    count: int = MEMBERS,
    rng: np.random.Generator,
) -> Members:
    """Draw ``count`` members from the posterior given ``flat``; one allocation or one execution is enough.

    Args:
        inputs: inputs of the table, cells fastest, [A · C, R + F].
        bin_of: bin of each iteration, [iterations].
        selections: each metric's selected family, or None. Only the effect of features, and whether iterations differ,
            are taken from it; the effect of allocations is drawn.
        used: rows to fit each metric on, bool [n].
    """
    size = int(bin_of.max()) + 1
    bins = bin_of[np.clip(flat.iterations, 0, len(bin_of) - 1)].astype(np.intp)
    drawn = [
        _metric(layout, m, flat.take(np.flatnonzero(rows)), bins[rows], inputs, size, selection, count, rng)
        for m, (selection, rows) in enumerate(zip(selections, used, strict=True))
    ]
    return Members(
        np.stack([logs for logs, _, _ in drawn], axis=1).astype(np.float32),
        np.stack([noise for _, noise, _ in drawn]),
        np.array([effect for _, _, effect in drawn]),
    )


def _metric(
    layout: Layout,
    metric: int,
    flat: Flat,
    bins: Integers,
    inputs: Floats,
    size: int,
    selection: Selection | None,
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, float]:
    """Members of one metric: logs [K, A, C, size], noise deviation [size], deviation of the run effects."""
    alike = selection is not None and selection.form == "none"
    stages, known = (0 * bins, 1) if alike else (bins, size)
    logs = np.log(flat.metrics[:, metric])
    apart = np.zeros((len(layout.allocations), len(inputs) // len(layout.allocations), known))
    if layout.features and selection is not None:
        logs = logs - _by_features(layout, selection, flat, flat.X, stages)
        every = [_by_features(layout, selection, flat, inputs, np.full(len(inputs), i)) for i in range(known)]
        apart = np.stack(every, axis=1).reshape(apart.shape)
    found = _drawn(layout, metric, flat, stages, logs, known, count, rng)
    surface = np.broadcast_to(found.logs[:, :, None] + apart, (count, *apart.shape[:2], size))
    return surface, np.broadcast_to(found.noise_sd, size), found.effect_sd


def _by_features(layout: Layout, selection: Selection, flat: Flat, X: Floats, stages: Integers) -> Floats:
    """Log factor of the features of ``X`` [n, R + F], clipped to the measured range, relative to median ones, [n]."""
    resources = len(layout.resources)
    typical, X = np.median(flat.X, axis=0), np.clip(X, flat.X.min(axis=0), flat.X.max(axis=0))
    usual = np.hstack([X[:, :resources], np.tile(typical[resources:], (len(X), 1))])
    return selection.log_mean(X, stages) - selection.log_mean(usual, stages)


def _drawn(
    layout: Layout,
    metric: int,
    flat: Flat,
    stages: Integers,
    logs: Floats,
    size: int,
    count: int,
    rng: np.random.Generator,
) -> Surfaces:
    """Members of ``logs`` [n]; a metric that rises with the allocation is modelled by its reciprocal."""
    stated = layout.spec.metrics[metric]
    summed = metric == layout.seconds or stated.scope == "run"
    weight = importance(logs, stages, size) if summed else np.ones(size)
    rises = metric != layout.seconds and stated.goal == "at_least"
    sign = -1.0 if rises else 1.0
    samples = Samples(sign * logs, stages, flat.groups, flat.allocations, weight)
    found = surfaces(samples, layout.allocations, count, rng)
    return found._replace(logs=sign * found.logs)
