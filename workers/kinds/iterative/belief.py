"""The belief over laws: hierarchy, members and consensus."""

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

# A set of models of one metric that its samples can't tell apart, which disagree where nobody has measured.
#
#     log y = level[stage] + law(share[stage], allocation) + run effect[execution] + noise[stage]
#
# A member draws what the samples leave open: its law and the application's share, then the run effects, each stage's
# share and level. The application's share is judged by executions as wholes, for what all stages of one have in common
# may be its run effect. A stage's share scatters around it, so that a stage that the samples say little of has it on
# average; how far, all stages say together (empirical Bayes): nearly alike, or some scale while the others wait.


SWEEPS, CONVERGED = 10, 1e-4
ROUNDS = 3
FREEDOM = 4.0  # of Student's t: executions and iterations out of the ordinary weigh less
EFFECT_SD, EFFECT_PRIOR = 0.15, 2.0  # of run effects before any execution, and how many that is worth
NOISE_SD, NOISE_PRIOR = 0.1, 4.0  # the same of noise, and how many measurements a stage's is drawn towards all stages'
LEAST_SD = 1e-3
TAIL = 4.0
"""Scales beyond which a residual counts as so far off; Student's scale is 6 to 9 % less than normal noise's spread."""


class Samples(NamedTuple):
    """One metric: logs [n], stages [n], executions [n], allocations [n, R]; importance of each stage [I]."""

    logs: Floats
    stages: Integers
    groups: Integers
    allocations: Floats
    importance: Floats


class Surfaces(NamedTuple):
    """Logs of each member over a grid of allocations, [K, A, I]; noise by stage [I]; spread of the run effects."""

    logs: Floats
    noise_sd: Floats
    effect_sd: float


def surfaces(samples: Samples, grid: Floats, count: int, rng: np.random.Generator) -> Surfaces:
    """Draw ``count`` members over allocations ``grid`` [A, R]."""
    found = _Posterior(samples, grid)
    for _ in range(ROUNDS):
        found.reweigh()
    return Surfaces(np.stack([found.draw(rng) for _ in range(count)]), found.noise_sd, found.effect_sd)


class _Stages(NamedTuple):
    """Log likelihood of every share of each stage [I, J]; its level with it [I, J], and that level's precision [I]."""

    likelihood: Floats
    level: Floats
    precision: Floats


class _Posterior:
    """Point estimates of the spreads, and draws of the rest given them.

    Attributes:
        scale: Student's, of each stage, by which measurements are weighed, [I].
        noise_sd: the spread that it comes to, [I].
        effect_sd: of run effects.
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
        """Estimate the spreads anew, around the likeliest shares."""
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
        """Logs of one member over the grid, [A, I]."""
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
        """What whole executions say: effects [G, J] by law, log likelihood [laws, J]; stages count by importance."""
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
        """Effects of executions [G, c] beside those of stages, and what is left of ``columns`` [n, c]."""
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
        """Every share of each stage, its level being free."""
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
        """Log prior of the stages' shares around the application's, [J]; how near, the samples say."""
        prior = scatter(self.lattice, share)  # [S, J]
        evidence = logsumexp(fit.likelihood + prior[:, None], axis=2).sum(axis=1)
        chance = 0.0 if rng is None else rng.gumbel(size=len(evidence))
        return np.asarray(prior[int((evidence + chance).argmax())], np.float64)

    def _spreads(self, residual: Floats, effects: Floats) -> None:
        """Estimate the noise of each stage and the spread of run effects; single rows count half for each."""
        stages, groups, runs = self.samples.stages, self.samples.groups, max(self.runs - 1, 0)
        deviation, single = residual + effects[groups], (np.bincount(groups, minlength=self.runs) == 1)
        residual = np.where(single[groups], deviation / np.sqrt(2), residual)
        counts = np.bincount(stages, minlength=self.stages)
        freedom = np.maximum(counts * max(1 - (self.stages + (~single).sum()) / len(residual), 0.1), 0)

        def spread(squares: Floats) -> Floats:
            """Root of the mean of ``squares`` [n] of each stage, drawn towards that of all."""
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
        """Sum over executions of the product of its two halves' mean ``deviation`` [n]: what is noise cancels out."""
        weights, half = self.samples.importance[self.samples.stages] * self.robust, np.arange(len(deviation)) % 2
        halves = [_means(deviation[:, None], self.samples.groups, weights * (half == k), self.runs) for k in range(2)]
        return float((halves[0] * halves[1]).sum())


def _means(values: Floats, index: Integers, weights: Floats, size: int) -> Floats:
    """Weighted means of ``values`` [n, c] by ``index`` [n] → [size, c]."""
    total = np.maximum(np.bincount(index, weights, size), 1e-12)[:, None]
    columns = [np.bincount(index, weights * column, size) for column in values.T]
    return np.stack(columns, axis=1) / total


def importance(logs: Floats, stages: Integers, count: int) -> Floats:
    """How much each stage weighs in a sum over a run, [count]: its median."""
    level = grouped_median(logs, stages, count)
    return np.exp(np.where(np.isnan(level), np.nanmedian(level), level))


# Where the belief's middle errs on the samples more than the selected family does on samples it has not seen.


CLEARLY = 0.9  # the family's error is to be within so much of the middle's: that one has seen what it is judged on


def centred(
    layout: Layout,
    table: ModelTable,
    flat: Flat,
    held_out: Sequence[Floats],
    used: Sequence[NDArray[np.bool_]],
) -> ModelTable:
    """``table`` with the members of such metrics moved so that their middle is the family's where allocations were
    measured; beyond, each goes on as before from there. So they keep what they differ by, and their own laws outside.

    ``held_out`` are each metric's log residuals on held-out rows, of the rows ``used`` [n].
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
    """For every allocation of the grid the row of the nearest within the bounds of what was measured, [A]."""
    minima, steps = (np.array([getattr(r, name) for r in layout.spec.resources]) for name in ("minimum", "step"))
    inside = np.clip(layout.allocations, table.seen_low, table.seen_high)
    return layout.index(np.rint((inside - minima) / steps).astype(np.int64))


# The fitted belief: members for every metric over the grid of an exported table.


MEMBERS = 16


class Members(NamedTuple):
    """Models that the samples can't tell apart. K members, M metrics, A allocations, C feature cells, I bins.

    Attributes:
        log_mean: natural log of each metric's median, [K, M, A, C, I].
        noise_sd: within-run spread of the log residual, [M, I].
        effect_sd: between-run spread of the log run effect, [M].
    """

    log_mean: NDArray[np.float32]
    noise_sd: Floats
    effect_sd: Floats

    @property
    def usual_noise_sd(self) -> Floats:
        """Of all iterations together, [M]: the root of the mean square."""
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
    """Draw ``count`` members from what ``flat`` leaves open; one allocation, or one execution, is enough.

    ``inputs`` [A · C, R + F] are the table's, cells fastest; ``bin_of`` [iterations] its bins. Of each metric's
    ``selections`` (None where nothing was fitted) is taken how features act and whether iterations differ, never how
    allocations act; ``used`` [n] are the rows that count.
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
    """One metric: logs [K, A, C, size], noise [size], spread of the run effects."""
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
    """Log factor of the features of ``X`` [n, R + F] against typical ones, at allocations within what was seen, [n]."""
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
    """Members of ``logs`` [n]; what rises with the allocation falls as its reciprocal."""
    stated = layout.spec.metrics[metric]
    summed = metric == layout.seconds or stated.scope == "run"
    weight = importance(logs, stages, size) if summed else np.ones(size)
    rises = metric != layout.seconds and stated.goal == "at_least"
    sign = -1.0 if rises else 1.0
    samples = Samples(sign * logs, stages, flat.groups, flat.allocations, weight)
    found = surfaces(samples, layout.allocations, count, rng)
    return found._replace(logs=sign * found.logs)
