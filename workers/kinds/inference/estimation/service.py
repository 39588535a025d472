"""Service times: Bayesian ensembles of laws in batch size and cores, with a Gaussian process for the rest.

Letters in shapes: n rows or points, c cells (groups of rows alike), V variants, M members, P parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from workers.estimators.base import NORMAL_90, Floats, Integers, Prediction

MOST_ALIKE = 64


class Rows(NamedTuple):
    """n measured batches: index of variant, index of server class, number of requests, cores, seconds, [n] each."""

    variant: Integers
    server: Integers
    batch: Floats
    cores: Floats
    seconds: Floats

    def take(self, rows: Integers) -> Rows:
        """Return the k batches with the indices ``rows`` [k]."""
        return Rows(self.variant[rows], self.server[rows], self.batch[rows], self.cores[rows], self.seconds[rows])


class Cells(NamedTuple):
    """Groups of batches measured under equal conditions.

    Attributes:
        points: one row of each group, [c].
        log: median of the natural log of seconds, [c].
        number: number of rows, [c].
        of_row: group of each row, [n].
    """

    points: Rows
    log: Floats
    number: Floats
    of_row: Integers


def cells(rows: Rows) -> Cells:
    """Group rows of equal variant, class, batch size and cores."""
    keys = np.stack([rows.variant, rows.server, rows.batch, rows.cores], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    of_row = inverse.reshape(-1)
    parts = np.split(np.log(rows.seconds)[np.argsort(of_row, kind="stable")], np.cumsum(np.bincount(of_row))[:-1])
    log = np.array([np.median(part) for part in parts])
    return Cells(rows.take(first), log, np.bincount(of_row).astype(np.float64), of_row)


def thin_rows(rows: Rows, rng: np.random.Generator) -> Rows:
    """Keep at most ``MOST_ALIKE`` random rows of each group of equal variant, class, batch size and cores."""
    count = len(rows.seconds)
    if count <= MOST_ALIKE:
        return rows
    cell, order = cells(rows).of_row, rng.permutation(count)
    by_cell = order[np.argsort(cell[order], kind="stable")]
    first = np.searchsorted(cell[by_cell], cell[by_cell])
    return rows.take(np.sort(by_cell[np.arange(count) - first < MOST_ALIKE]))


# Laws by which batch seconds grow with batch size and fall with cores; samples may not tell them apart.
#
# Each gives the log of a factor that is 1 at the usual size or cores. It has one parameter, the logit of a share, and
# is monotone for all its values.


SMALLEST = 0.02  # relative to the usual capacity
SUPERLINEAR = 1.25  # largest share of usual capacity proportional to cores; the rest may be negative

Law = Callable[[Floats, Floats], Floats]
"""Maps relative sizes or cores [n] and logits of shares [n] to the natural log of a factor [n]; 0 at 1."""


def share(logit: Floats) -> Floats:
    """Compute the logistic function of ``logit``, in 0…1, of the same shape."""
    return 1 / (1 + np.exp(-np.minimum(np.maximum(logit, -30.0), 30.0)))


def affine(size: Floats, logit: Floats) -> Floats:
    """Return ln(1 − part + part · ``size``), part = share(``logit`` [n]), for sizes relative to a usual one, [n]."""
    part = share(logit)
    return np.log(1 - part + part * size)


def elastic(size: Floats, logit: Floats) -> Floats:
    """Return ln(``size``) · share(``logit`` [n]), a power law's log, for sizes relative to a usual batch's, [n]."""
    return share(logit) * np.log(size)


def amdahl(cores: Floats, logit: Floats) -> Floats:
    """Return ln(1 − part + part / ``cores``), part = share(``logit`` [n]), for cores relative to the usual, [n]."""
    part = share(logit)
    return np.log(1 - part + part / cores)


def power(cores: Floats, logit: Floats) -> Floats:
    """Return −ln(``cores``) · share(``logit`` [n]), a power law's log, for cores relative to the usual, [n]."""
    return -share(logit) * np.log(cores)


def capacity(exponent: float) -> Law:
    """Make a law (relative cores [n], logits [n]) → natural log of relative seconds [n]: seconds are inversely
    proportional to a power ``exponent`` of a capacity that is affine in cores, perhaps with a negative intercept
    (InfAdapter: Salmani et al., EuroMLSys 2023)."""

    def law(cores: Floats, logit: Floats) -> Floats:
        part = SUPERLINEAR * share(logit)
        return -exponent * np.log(np.maximum(1 - part + part * cores, SMALLEST))

    return law


BATCH_LAWS: dict[str, Law] = {"affine": affine, "elastic": elastic}
CORE_LAWS: dict[str, Law] = {
    "Amdahl": amdahl,
    "power": power,
    **{f"capacity^{exponent:g}": capacity(exponent) for exponent in (1.0, 0.95, 0.9, 0.8)},
}
LAWS = {
    f"{batch} in batch, {cores} in cores": (BATCH_LAWS[batch], CORE_LAWS[cores])
    for batch in BATCH_LAWS
    for cores in CORE_LAWS
}
"""Every pair of laws, by name."""


# An ensemble of models of batch seconds that fit the samples equally well, and differ where nothing was measured.
#
#     log seconds = level[v] + batch law(z[v], batch) + core law(g[v], cores) + class effect[k] + difference[v, k]
#         + rest
#
# for variant v on server class k; variants' shares are shrunk to common ones. A member draws its laws, then is fitted
# to measurements and priors with noise of their uncertainty (randomise, then optimise: Bardsley et al. 2014), which for
# a linear model is a draw from the posterior. The rest is a Gaussian process over log batch and log cores within (v,
# k), drawn by Matheron's rule.


MEMBERS = 32
ITERATIONS, ROUNDS, CONVERGED = 40, 3, 1e-5
FREEDOM = 4.0  # degrees of freedom of Student's t, which gives outlying cells less weight
LOGIT, LOGIT_SD = 1.0, 1.5  # prior mean and deviation of the common shares' logits
APART_SD = 0.3  # prior deviation of a variant's logit about the common one
CLASS_SD, DIFFERENCE_SD = 0.3, 0.05  # prior deviations of the logs of server classes, and of variants on them
MISS_SD, NOISE_SD, PRIOR = 0.05, 0.05, 4.0  # prior deviations of the rest and a batch; weight in batches
GROWTHS = {0.0: 6.0, 1.0: 0.0, 2.0: 0.0}
"""Exponents of seconds by which log variances may grow, with minus twice their prior log odds.

Seconds of work that is counted per second err by one unit (2) or by its root (1); proportional noise (0) must be shown
by the data.
"""
LENGTH = 0.35  # length scale of the rest, in logs of batch and cores
STEP = 1e-4
LEAST_SD = 1e-3
WIDEST = 1.5


class _Fit(NamedTuple):
    """Parameters [P] under a pair of laws (of batch size, of cores), and ``loss``, minus twice their log posterior."""

    laws: tuple[Law, Law]
    parameters: Floats
    loss: float


class _Spread(NamedTuple):
    """Spreads as in ``ServiceTime``, the likeliest ``fit`` under them, and ``loss``, minus twice its log posterior."""

    growth: float
    noise_sd: Floats
    miss_sd: float
    fit: _Fit
    loss: float


class ServiceTime:
    """An ensemble of models of batch seconds, for V variants on C server classes. Each model has a law of how seconds
    grow with the batch size, and one of how they fall with cores.

    Attributes:
        noise_sd_: standard deviation of a batch's natural-log seconds about the median, [V].
        miss_sd_: standard deviation of the part of log median seconds that the laws don't explain.
        growth_: power of the seconds with which both variances grow.
        weights_: probability of each pair of laws, in the order of ``LAWS``.
    """

    def __init__(self, variants: int, servers: int, seed: int, members: int = MEMBERS) -> None:
        self._variants, self._servers, self._seed, self._members = variants, servers, seed, members
        self.noise_sd_: Floats = np.full(variants, NOISE_SD)
        self.miss_sd_ = MISS_SD
        self.growth_ = 0.0
        self._reference: _Fit | None = None

    def fit(self, rows: Rows) -> Self:
        """Fit the ensemble to measured batches, at least one, and return itself."""
        self._cells = cells(rows)
        points = self._cells.points
        self._usual = np.exp([np.log(points.batch).mean(), np.log(points.cores).mean()])
        self._middle = float(self._cells.log.mean())
        self._known = points.variant * self._servers + points.server
        self._rows = self._prior()
        best = min((self._under(rows, growth) for growth in GROWTHS), key=lambda one: one.loss + GROWTHS[one.growth])
        self.growth_, self.noise_sd_, self.miss_sd_, self._reference = (
            best.growth,
            best.noise_sd,
            best.miss_sd,
            best.fit,
        )
        fits = self._fits([best.fit.parameters] * len(LAWS))
        losses = np.array([one.loss for one in fits])
        self.weights_ = np.exp(-losses / 2 - logsumexp(-losses / 2))
        self._draw(fits)
        return self

    def logs(self, points: Rows) -> Floats:
        """Return the natural log of median seconds by each of M models at n ``points`` (without seconds), [M, n]."""
        rng = np.random.default_rng([self._seed, 1])
        draws = self._rests(points, rng)
        return np.stack([self._mean(one.laws, one.parameters, points) for one in self._drawn]) + draws

    def predict(self, points: Rows) -> Prediction:
        """Predict the median seconds of a batch at n ``points`` and its 90 % interval, [n] each."""
        logs = self.logs(points)
        noise = self.noise_sd_[points.variant] * self.wider(points)
        half = NORMAL_90 * np.sqrt(logs.var(axis=0, ddof=1) + noise**2)
        return Prediction(*(np.exp(logs.mean(axis=0) + sign * half) for sign in (0.0, -1.0, 1.0)))

    def _under(self, rows: Rows, growth: float) -> _Spread:
        """Estimate spreads and the best fit if variances of log seconds grow with the power ``growth`` of seconds."""
        self.growth_, self._reference = growth, None
        self.noise_sd_, self.miss_sd_ = np.full(self._variants, NOISE_SD), MISS_SD
        fits = self._fits([None] * len(LAWS))
        for _ in range(ROUNDS):
            self._reference = min(fits, key=lambda one: one.loss)
            self._spreads(rows, self._reference)
            fits = self._fits([one.parameters for one in fits])
        best = min(fits, key=lambda one: one.loss)
        loss = best.loss + 2 * float(np.log(self._cell_sd()).sum()) + self._repeats(rows)
        return _Spread(growth, self.noise_sd_, self.miss_sd_, best, loss)

    def _repeats(self, rows: Rows) -> float:
        """Return minus twice the log likelihood of batches about the medians of those with equal conditions."""
        of_row, free = self._cells.of_row, 1 - 1 / self._cells.number
        sd = self.noise_sd_[rows.variant] * self.wider(self._cells.points)[of_row]
        off = (np.log(rows.seconds) - self._cells.log[of_row]) / sd
        return float((off**2 + 2 * free[of_row] * np.log(sd)).sum())

    def _fits(self, starts: Sequence[Floats | None]) -> list[_Fit]:
        """Fit the most probable parameters under each pair of laws, from ``starts`` [P] each (None: default values)."""
        nothing = np.zeros(self._size)
        return [
            self._optimum(pair, start, self._cells.log, nothing)
            for pair, start in zip(LAWS.values(), starts, strict=True)
        ]

    def wider(self, points: Rows) -> Floats:
        """Return the factor of the log spreads at n ``points`` over those at usual points, [n]."""
        if self._reference is None or not self.growth_:
            return np.ones(len(points.variant))
        log = self._mean(self._reference.laws, self._reference.parameters, points)
        return np.exp(np.clip(self.growth_ / 2 * (log - self._middle), -WIDEST, WIDEST))

    def _draw(self, fits: Sequence[_Fit]) -> None:
        """Draw the models: laws by probability, then parameters by fits to perturbed data, in antithetic pairs."""
        rng = np.random.default_rng([self._seed, 0])
        pairs = self._members // 2
        places = (np.arange(pairs) + rng.random()) / pairs
        chosen = np.minimum(np.searchsorted(np.cumsum(self.weights_), places), len(fits) - 1)
        self._drawn = []
        for fit in (fits[place] for place in chosen.tolist()):
            noise = self._cell_sd() * rng.standard_normal(len(self._cells.log))
            prior = rng.standard_normal(self._size)
            for sign in (1, -1):
                logs = self._cells.log + sign * noise
                self._drawn.append(self._optimum(fit.laws, fit.parameters, logs, sign * prior))

    # parameters: level [V], logits of batch shares [V], of core shares [V], the two in common, classes [C], [V · C]
    @property
    def _size(self) -> int:
        return 3 * self._variants + 2 + self._servers * (1 + self._variants)

    def _prior(self) -> tuple[Floats, Floats]:
        """Return the prior as matrix [q, P] and centres [q]: the q terms matrix @ parameters − centres are standard
        normal."""
        variants, size = self._variants, self._size
        every = np.eye(size)
        level, batch, cores = (every[i * variants : (i + 1) * variants] for i in range(3))
        common = every[3 * variants : 3 * variants + 2]
        classes = every[3 * variants + 2 : 3 * variants + 2 + self._servers]
        rest = every[3 * variants + 2 + self._servers :]
        rows = [
            (level - level.mean(axis=0)) / 3.0 if variants > 1 else level * 1e-6,
            (batch - common[0]) / APART_SD,
            (cores - common[1]) / APART_SD,
            common / LOGIT_SD,
            classes / CLASS_SD,
            rest / DIFFERENCE_SD,
        ]
        centre = np.concatenate([np.full(len(part), LOGIT / LOGIT_SD if part is rows[3] else 0.0) for part in rows])
        return np.concatenate(rows), centre

    def _mean(self, laws: tuple[Law, Law], parameters: Floats, points: Rows) -> Floats:
        """Return the natural log of seconds at n ``points``, [n], by a pair of laws with ``parameters`` [P]."""
        variants = self._variants
        level, batch, cores = parameters[: 3 * variants].reshape(3, -1)[:, points.variant]
        shifts = parameters[3 * variants + 2 :]
        shift = shifts[points.server] + shifts[self._servers + points.variant * self._servers + points.server]
        relative = points.batch / self._usual[0], points.cores / self._usual[1]
        return np.asarray(level + laws[0](relative[0], batch) + laws[1](relative[1], cores) + shift, np.float64)

    def _slopes(self, laws: tuple[Law, Law], parameters: Floats, points: Rows) -> Floats:
        """Return the derivatives of ``_mean`` (natural log of seconds at n ``points``) by the P parameters, [n, P]."""
        variants, every = self._variants, np.arange(len(points.variant))
        out = np.zeros((len(every), self._size))
        out[every, points.variant] = 1.0
        for i, (law, values) in enumerate(zip(laws, (points.batch, points.cores), strict=True), start=1):
            logit, relative = parameters[i * variants + points.variant], values / self._usual[i - 1]
            rise = law(relative, logit + STEP) - law(relative, logit - STEP)
            out[every, i * variants + points.variant] = rise / (2 * STEP)
        first = 3 * variants + 2
        out[every, first + points.server] = 1.0
        out[every, first + self._servers + points.variant * self._servers + points.server] = 1.0
        return out

    def _optimum(self, laws: tuple[Law, Law], start: Floats | None, logs: Floats, draw: Floats) -> _Fit:
        """Fit the median natural-log seconds ``logs`` [c] of c groups of equal batches by damped Gauss–Newton, with
        Student's t by reweighting. ``start``: first parameters [P], None: default ones; ``draw`` [P]: shift of the
        prior means, in prior deviations."""
        rows, centre = self._rows
        target = centre + draw
        points, sd = self._cells.points, self._cell_sd()
        x, damping = self._start(logs) if start is None else start, 1e-3
        residual = (logs - self._mean(laws, x, points)) / sd
        loss = _loss(residual, target - rows @ x)
        for _ in range(ITERATIONS):
            weight = np.sqrt((FREEDOM + 1) / (FREEDOM + residual**2))
            slopes = self._slopes(laws, x, points) * (weight / sd)[:, None]
            left = np.concatenate([slopes, rows])
            right = np.concatenate([weight * residual, target - rows @ x])
            normal = left.T @ left
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), left.T @ right)
            there = x + step
            off = (logs - self._mean(laws, there, points)) / sd
            new = _loss(off, target - rows @ there)
            if new <= loss:
                gain, x, residual, loss, damping = loss - new, there, off, new, max(damping / 5, 1e-9)
                if gain < CONVERGED * max(1.0, abs(loss)):
                    break
            else:
                damping = min(damping * 10, 1e9)
        return _Fit(laws, x, loss)

    def _start(self, logs: Floats) -> Floats:
        x = np.zeros(self._size)
        variants = self._variants
        mean = float(logs.mean())
        for v in range(variants):
            own = self._cells.points.variant == v
            x[v] = float(logs[own].mean()) if own.any() else mean
        x[variants : 3 * variants + 2] = LOGIT
        return x

    def _cell_sd(self) -> Floats:
        """Return the standard deviation of median log seconds about the laws, for c groups of equal batches, [c]."""
        noise = self.noise_sd_[self._cells.points.variant]
        return np.sqrt(self.miss_sd_**2 + noise**2 / self._cells.number) * self.wider(self._cells.points)

    def _trust(self) -> Floats:
        """Return Student-t weights of c groups of equal batches, smaller where they are far from the laws, [c]."""
        assert self._reference is not None  # noqa: S101 - fitted
        mean = self._mean(self._reference.laws, self._reference.parameters, self._cells.points)
        scaled = (self._cells.log - mean) / self._cell_sd()
        return np.asarray((FREEDOM + 1) / (FREEDOM + scaled**2), np.float64)

    def _spreads(self, rows: Rows, fit: _Fit) -> None:
        """Update ``noise_sd_`` [V] and ``miss_sd_``; without repeated batches each of them gets half the variance."""
        known = self._cells
        off = known.log - self._mean(fit.laws, fit.parameters, known.points)
        scaled = off / self._cell_sd()
        wider = self.wider(known.points)
        taken = len(off) / max(len(off) - 2 * len(np.unique(known.points.variant)), len(off) / 3)
        squares = taken * (FREEDOM + 1) / (FREEDOM + scaled**2) * (off / wider) ** 2
        repeated = known.number > 1
        apart = ((np.log(rows.seconds) - known.log[known.of_row]) / wider[known.of_row]) ** 2
        freedom = np.bincount(known.points.variant, np.where(repeated, known.number - 1, 1.0), self._variants)
        single = np.bincount(known.points.variant, np.where(repeated, 0.0, squares / 2), self._variants)
        within = np.bincount(rows.variant, apart * repeated[known.of_row], self._variants) + single
        common = (within.sum() + PRIOR * NOISE_SD**2) / (freedom.sum() + PRIOR)
        self.noise_sd_ = np.sqrt((within + PRIOR * common) / (freedom + PRIOR)) + LEAST_SD
        noise = self.noise_sd_[known.points.variant] ** 2 / known.number
        between = np.where(repeated, squares - noise, squares / 2)
        total = max(between.sum(), 0.0) + PRIOR * MISS_SD**2
        self.miss_sd_ = float(np.sqrt(total / (len(off) + PRIOR))) + LEAST_SD

    def _rests(self, points: Rows, rng: np.random.Generator) -> Floats:
        """Draw, for each of M models, the part of log seconds at n ``points`` that laws don't explain, [M, n]."""
        known, out = self._cells, np.zeros((len(self._drawn), len(points.variant)))
        key, trust = points.variant * self._servers + points.server, self._trust()
        for group in np.unique(key).tolist():
            to, of = np.flatnonzero(key == group), np.flatnonzero(self._known == group)
            both = np.concatenate([_places(known.points.take(of)), _places(points.take(to))])
            wider = np.concatenate([self.wider(known.points.take(of)), self.wider(points.take(to))])
            kernel = (
                self.miss_sd_**2
                * wider[:, None]
                * wider
                * np.exp(-((both[:, None] - both) ** 2).sum(axis=2) / (2 * LENGTH**2))
            )
            root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(both)))
            prior = _opposite(len(self._drawn), len(both), rng) @ root.T
            noise = self.noise_sd_[known.points.variant[of]] * wider[: len(of)] / np.sqrt(known.number[of] * trust[of])
            means = [self._mean(one.laws, one.parameters, known.points.take(of)) for one in self._drawn]
            off = known.log[of] - np.reshape(means, (len(self._drawn), -1))
            off = off - prior[:, : len(of)] - noise * _opposite(len(off), len(of), rng)
            solved = np.linalg.solve(kernel[: len(of), : len(of)] + np.diag(noise**2 + 1e-9), off.T)
            out[:, to] = prior[:, len(of) :] + (kernel[len(of) :, : len(of)] @ solved).T
        return out


def _loss(residual: Floats, prior: Floats) -> float:
    """Return minus twice the log posterior, up to a constant: of ``residual``, standardised residuals of the data, by
    Student's t, and ``prior``, standardised deviations of the parameters from their prior means, by a normal."""
    far = (FREEDOM + 1) * np.log1p(residual**2 / FREEDOM)
    return float(far.sum() + (prior**2).sum())


def _opposite(members: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw standard normal numbers [members, count] in antithetic pairs of rows; ``members`` is even."""
    half = rng.standard_normal((members // 2, count))
    return np.stack([half, -half], axis=1).reshape(members, count)


def _places(points: Rows) -> Floats:
    return np.stack([np.log(points.batch), np.log(points.cores)], axis=1)
