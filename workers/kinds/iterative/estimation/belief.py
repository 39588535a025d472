"""The fitted belief: members for every metric over the grid of an exported table."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from workers.estimators.base import Floats, Integers
from workers.estimators.selection import Selection
from workers.kinds.iterative.estimation.executions import Flat
from workers.kinds.iterative.estimation.hierarchy import Samples, Surfaces, importance, surfaces

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
