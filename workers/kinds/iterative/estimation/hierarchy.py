"""A set of models of one metric that its samples can't tell apart, which disagree where nobody has measured.

    log y = level[stage] + law(share[stage], allocation) + run effect[execution] + noise[stage]

A member draws what the samples leave open: its law and the application's share, then the run effects, each stage's
share and level. The application's share is judged by executions as wholes, for what all stages of one have in common
may be its run effect. A stage's share scatters around it, so that a stage that the samples say little of has it on
average; how far, all stages say together (empirical Bayes): nearly alike, or some scale while the others wait.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from workers.estimators.base import Floats, Integers
from workers.estimators.replicates import distinct, grouped_median
from workers.kinds.iterative.estimation.speedup import LAWS, scatter, shares

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
        """Estimate noise and run effects; of an execution with a single row nobody can tell, so it is half of each."""
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
