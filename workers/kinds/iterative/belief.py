"""The belief of an ``iterative`` domain model: several members drawn from a hierarchical posterior over laws.

Letters in shapes: n rows of samples, K members, M metrics, A allocations, R resources, F features, C feature cells, I
stages (bins of iterations), G executions, J shares of the work that resources shorten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prior import LAWS, shares
from app.kinds.iterative.projector import Projector
from workers.estimators.base import Floats, Integers, distinct, grouped_median
from workers.estimators.selection import Selection
from workers.kinds.iterative.grid import Flat, scatter

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
    """One metric's samples: n rows, R resources, I stages (bins of iterations).

    Attributes:
        logs: natural log of the metric, [n].
        stages, groups: index of each row's stage and execution, [n].
        allocations: units of each resource, [n, R].
        importance: weight of each stage in the metric's sum over a run, [I].
    """

    logs: Floats
    stages: Integers
    groups: Integers
    allocations: Floats
    importance: Floats


class Surfaces(NamedTuple):
    """K members (possible models, drawn from a posterior) of one metric, at A allocations and I bins of iterations.

    Attributes:
        logs: natural log of the metric's median, [K, A, I].
        noise_sd: standard deviation of the log noise within runs, [I].
        effect_sd: standard deviation of the log run effect between runs.
    """

    logs: Floats
    noise_sd: Floats
    effect_sd: float


def surfaces(samples: Samples, grid: Floats, count: int, rng: np.random.Generator) -> Surfaces:
    """Estimate noise and run effects; draw ``count`` possible models at the allocations ``grid`` [A, R] (in units)."""
    posterior = _Posterior(samples, grid)
    for _ in range(ROUNDS):
        posterior.reweigh()
    return Surfaces(np.stack([posterior.draw(rng) for _ in range(count)]), posterior.noise_sd, posterior.effect_sd)


class _Stages(NamedTuple):
    """Fit of I stages (bins of iterations) under one scaling law, for J possible shares of work that resources shorten.

    Attributes:
        likelihood: natural log of the likelihood of each share, [I, J].
        level: most likely natural log of the stage's level given the share, [I, J].
        precision: inverse variance of that level; 0 without samples, [I].
    """

    likelihood: Floats
    level: Floats
    precision: Floats


class _Posterior:
    """Posterior of one metric over I stages (bins of iterations), to sample models from. Noise and run effects are
    point estimates (empirical Bayes); drawn are a scaling law, stages' levels, and their shares of work that resources
    shorten.

    Attributes:
        scale: scale of Student's t of each stage's log residuals, [I].
        noise_sd: the corresponding standard deviation, [I].
        effect_sd: standard deviation of log run effects.
    """

    def __init__(self, samples: Samples, grid: Floats) -> None:
        self.samples, self.lattice = samples, shares(grid.shape[1])
        first, self.cell = distinct(samples.allocations)
        centre = np.exp(np.log(np.maximum(samples.allocations, 1e-9)).mean(axis=0))
        self.curves = [law(samples.allocations[first] / centre, self.lattice) for law in LAWS.values()]  # [D, J] each
        self.grid = [law(grid / centre, self.lattice) for law in LAWS.values()]  # [A, J] each
        self.runs, self.stages = int(samples.groups.max()) + 1, len(samples.importance)
        self.scale, self.effect_sd = np.full(self.stages, 2 * NOISE_SD), EFFECT_SD
        self.noise_sd = self.scale
        self.robust = np.ones(len(samples.logs))
        self._judge()

    def reweigh(self) -> None:
        """Re-estimate the spreads of noise and run effects, and rows' robust weights, at the most likely parameters."""
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
        """Draw one model from the posterior: the metric's natural log at A allocations and I iteration bins, [A, I]."""
        weights = np.exp(self.likelihood - self.likelihood.max()).ravel()
        law, share = divmod(int(rng.choice(len(weights), p=weights / weights.sum())), len(self.lattice))
        spread = np.sqrt(1 / (1 / self.effect_sd**2 + self.precision))
        effects = self.effects[law][:, share] * self.persistence + spread * rng.standard_normal(self.runs)
        fit = self._by_stage(law, effects)
        chance = rng.gumbel(size=fit.likelihood.shape)
        chosen = (fit.likelihood + self._prior(fit, share, rng) + chance).argmax(axis=1)
        observed = fit.precision > 0
        level = fit.level[np.arange(self.stages), chosen]
        level[observed] += rng.standard_normal(int(observed.sum())) / np.sqrt(fit.precision[observed])
        level = np.interp(np.arange(self.stages), np.flatnonzero(observed), level[observed])
        return np.asarray(level + self.grid[law][:, chosen], np.float64)

    def _judge(self) -> None:
        """Set, by scaling law and share (J) of work that resources shorten, ``effects`` of G executions on the natural
        log of the metric ([G, J] per law), and the natural-log ``likelihood`` ([laws, J])."""
        samples, weight = self.samples, self.samples.importance
        scale = weight.sum() / (weight**2 * self.scale**2).sum()
        rows = weight[samples.stages] * scale * self.robust
        self.precision = np.bincount(samples.groups, rows, self.runs)  # [G]
        variance = self.effect_sd**2 + 1 / np.maximum(self.precision, 1e-9)
        self.persistence = self.effect_sd**2 / variance
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
        """Fit an effect per stage and execution to ``columns`` [n, c] by least squares; ``weights``: of the rows, [n].

        Returns the effects of executions [G, c] and the residuals [n, c].
        """
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
        """Fit each stage's level, for every share of work that resources shorten, under the scaling law number ``law``,
        given the ``effects`` [G] of executions on the natural log of the metric."""
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
        """Return the natural-log prior [J] of a stage's share of work that resources shorten, given the index ``share``
        of the whole application's; how closely stages follow that is drawn by ``rng``, or (None) the most likely."""
        prior = scatter(self.lattice, share)  # [S, J]
        evidence = logsumexp(fit.likelihood + prior[:, None], axis=2).sum(axis=1)
        chance = 0.0 if rng is None else rng.gumbel(size=len(evidence))
        return np.asarray(prior[int((evidence + chance).argmax())], np.float64)

    def _spreads(self, residual: Floats, effects: Floats) -> None:
        """Update ``scale``, ``robust``, ``noise_sd`` and ``effect_sd`` from log residuals ``residual`` [n] and run
        ``effects`` [G]. The deviation of an execution with a single row is split equally between noise and run effect.
        """
        stages, groups, runs = self.samples.stages, self.samples.groups, max(self.runs - 1, 0)
        deviation, single = residual + effects[groups], (np.bincount(groups, minlength=self.runs) == 1)
        residual = np.where(single[groups], deviation / np.sqrt(2), residual)
        counts = np.bincount(stages, minlength=self.stages)
        freedom = np.maximum(counts * max(1 - (self.stages + (~single).sum()) / len(residual), 0.1), 0)

        def spread(squares: Floats) -> Floats:
            """Return root mean squares [I] of each stage's ``squares`` [n], shrunk towards that of all stages."""
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
        """Estimate the sum of squared run effects: over executions, the mean ``deviation`` [n] of even rows times that
        of odd rows, whose noise is independent."""
        weights, half = self.samples.importance[self.samples.stages] * self.robust, np.arange(len(deviation)) % 2
        halves = [_means(deviation[:, None], self.samples.groups, weights * (half == k), self.runs) for k in range(2)]
        return float((halves[0] * halves[1]).sum())


def _means(values: Floats, index: Integers, weights: Floats, size: int) -> Floats:
    """Average the rows of ``values`` [n, c] by ``index`` [n], with ``weights`` [n]: [size, c]; 0 without weight."""
    total = np.maximum(np.bincount(index, weights, size), 1e-12)[:, None]
    columns = [np.bincount(index, weights * column, size) for column in values.T]
    return np.stack(columns, axis=1) / total


def importance(logs: Floats, stages: Integers, count: int) -> Floats:
    """Return the weight of each of ``count`` stages in a sum over a run: its median metric, in the metric's unit.

    Args:
        logs: natural log of the metric, [n].
        stages: stage of each row, [n]; a stage without rows gets the median of the other stages.
    """
    level = grouped_median(logs, stages, count)
    return np.exp(np.where(np.isnan(level), np.nanmedian(level), level))


# Correction of members whose mean fits the samples worse than the selected family predicts unseen samples.


CLEARLY = 0.9  # largest ratio of the family's error on unseen rows to the members' error on known rows


def shift_members(
    layout: Layout,
    table: ModelTable,
    flat: Flat,
    held_out: Sequence[Floats],
    used: Sequence[NDArray[np.bool_]],
) -> ModelTable:
    """Shift the members (alternative models) of ``table`` for metrics that their mean fits clearly worse than the
    family of regressions that was selected; return the table.

    At measured allocations the mean over members then equals the family's value; at others the members shift as at the
    nearest measured allocation. Differences between members stay as they are.

    Args:
        flat: all rows of the samples.
        held_out: natural-log residuals of each metric's family on held-out rows.
        used: mask [n] of the rows of ``flat`` that these residuals belong to, for each metric.
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
    """Return, for each allocation of the grid, the index of the nearest one within the measured bounds, [A]."""
    minima, steps = (np.array([getattr(r, name) for r in layout.spec.resources]) for name in ("minimum", "step"))
    inside = np.clip(layout.allocations, table.seen_low, table.seen_high)
    return layout.index(np.rint((inside - minima) / steps).astype(np.int64))


MEMBERS = 16


class Members(NamedTuple):
    """K alternative models that fit samples equally well: M metrics, A allocations, C feature cells, I bins of
    iterations.

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
        """Standard deviation of the log residual over all iterations together (root mean square), [M]."""
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
    """Draw ``count`` alternative models from the posterior given the samples ``flat``; one execution is enough.

    Args:
        inputs: allocation and features of each entry of the table, feature cells varying fastest, [A · C, R + F].
        bin_of: bin of each iteration, [iterations].
        selections: each metric's selected family, or None. Its effect of features is used, and whether iterations
            differ; the effect of allocations is drawn.
        used: mask of the rows to fit each metric on, [n].
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
    """Draw K = ``count`` alternative models of one metric at A allocations, C feature cells and ``size`` iteration
    bins: (natural logs [K, A, C, size], standard deviation of log noise [size], and that of log run effects)."""
    alike = selection is not None and selection.form == "none"
    stages, known = (0 * bins, 1) if alike else (bins, size)
    logs = np.log(flat.metrics[:, metric])
    apart = np.zeros((len(layout.allocations), len(inputs) // len(layout.allocations), known))
    if layout.features and selection is not None:
        logs = logs - _by_features(layout, selection, flat, flat.X, stages)
        every = [_by_features(layout, selection, flat, inputs, np.full(len(inputs), i)) for i in range(known)]
        apart = np.stack(every, axis=1).reshape(apart.shape)
    surfaces = _draw_surfaces(layout, metric, flat, stages, logs, known, count, rng)
    surface = np.broadcast_to(surfaces.logs[:, :, None] + apart, (count, *apart.shape[:2], size))
    return surface, np.broadcast_to(surfaces.noise_sd, size), surfaces.effect_sd


def _by_features(layout: Layout, selection: Selection, flat: Flat, X: Floats, stages: Integers) -> Floats:
    """Return the natural log, [n], of the ratio of the metric at the features in ``X`` [n, R + F], clipped to the
    measured range, to that at median features; ``stages`` [n]: iteration bins."""
    resources = len(layout.resources)
    typical, X = np.median(flat.X, axis=0), np.clip(X, flat.X.min(axis=0), flat.X.max(axis=0))
    usual = np.hstack([X[:, :resources], np.tile(typical[resources:], (len(X), 1))])
    return selection.log_mean(X, stages) - selection.log_mean(usual, stages)


def _draw_surfaces(
    layout: Layout,
    metric: int,
    flat: Flat,
    stages: Integers,
    logs: Floats,
    size: int,
    count: int,
    rng: np.random.Generator,
) -> Surfaces:
    """Draw ``count`` models of the natural-log metric ``logs`` [n], of rows in iteration bins ``stages`` [n] of
    ``size``; of its reciprocal if it rises with allocation."""
    stated = layout.spec.metrics[metric]
    summed = metric == layout.seconds or stated.scope == "run"
    weight = importance(logs, stages, size) if summed else np.ones(size)
    rises = metric != layout.seconds and stated.goal == "at_least"
    sign = -1.0 if rises else 1.0
    samples = Samples(sign * logs, stages, flat.groups, flat.allocations, weight)
    result = surfaces(samples, layout.allocations, count, rng)
    return result._replace(logs=sign * result.logs)
