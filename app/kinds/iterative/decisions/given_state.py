"""A state that is given in full with the request, instead of being kept from report to report."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance

Array = NDArray[np.floating]


class GivenState(NamedTuple):
    """The last iteration of some run, in the layout's order.

    Attributes:
        iteration: its number, from 0.
        levels, metrics, features: what it used and measured, [R], [M], [F].
        totals: sums over the run including it, [M]; not a number where they are not known.
        targets: [M]; not a number where the workload's hold.
        probabilities: with which they are to be met, [M]; not a number where none is asked for.
    """

    iteration: int
    levels: list[int]
    metrics: list[float]
    features: list[float]
    totals: list[float]
    targets: list[float]
    probabilities: list[float]


def states(compiled: Compiled, given: Sequence[GivenState]) -> State:
    """The runs of which ``given`` are the last iterations, [B].

    Only one iteration is known of each, so the run effect is what that one tells; what the run has used up before is
    taken from ``totals``, or else from the model under that run effect and the present allocation.
    """
    layout, projector = compiled.layout, compiled.projector
    columns = zip(*given, strict=True)
    iteration, levels, metrics, features, totals, targets, probabilities = (np.array(column) for column in columns)
    features = features.reshape(len(given), len(layout.features))
    before = compiled.fresh(len(given))._replace(
        iteration=iteration.astype(np.int32),
        levels=levels.astype(np.int16),
        targets=np.where(np.isnan(targets), layout.targets, targets),
        probabilities=probabilities,
        features=features,
    )
    after = advance(projector, before, levels, metrics, features)
    used = _used(projector, after, iteration)
    elapsed = np.where(np.isnan(totals), used + metrics, totals)
    rate = (projector.minima + projector.steps * levels) * after.prices
    cost = rate.sum(axis=1) * elapsed[:, layout.seconds] * projector.hours_per_second
    return after._replace(elapsed=elapsed, cost=cost)


def _used(projector: Projector, after: State, iteration: NDArray[np.integer]) -> Array:
    """Sums of the metrics before ``iteration`` [B] as the model expects them, [B, M]."""
    projector = projector.ahead
    here, point = projector.layout.index(after.levels)[None], projector.point(after.features)
    start = np.zeros_like(iteration)
    sums = [
        projector.remaining(m, here, point, start)[0] - projector.remaining(m, here, point, iteration)[0]
        for m in range(len(projector.layout.metrics))
    ]
    result: Array = np.stack(sums, axis=1) * np.exp(after.effect + after.variance / 2)
    return result
