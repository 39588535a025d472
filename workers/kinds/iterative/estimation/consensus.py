"""Where the belief's middle errs on the samples more than the selected family does on samples it has not seen."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from workers.estimators.base import Floats
from workers.kinds.iterative.estimation.executions import Flat

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
