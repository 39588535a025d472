"""A workload of kind ``iterative`` as one of the jobs of another's: seconds of its iterations, and its targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.member import Member
from app.kinds.iterative.feature_grid import weighted
from app.kinds.iterative.foreseen import foreseen
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable

SHARED = "gpus"
WHOLE = 1e-9


def member(layout: Layout, table: ModelTable | None) -> Member | None:
    """What shares its resource: the only one, or that which is called ``gpus``; None where it has no whole amounts."""
    names = layout.resources
    if len(names) > 1 and SHARED not in names:
        return None
    column = names.index(SHARED) if SHARED in names else 0
    amounts = np.unique(layout.allocations[:, column])
    if (np.abs(amounts - np.rint(amounts)) > WHOLE).any():
        return None
    amounts = amounts[amounts > 0]
    seconds = np.full(len(amounts), np.nan) if table is None else _seconds(layout, table, column, amounts)
    spread = 0.0 if table is None else float(np.hypot(*(x[layout.seconds] for x in (table.effect_sd, table.noise_sd))))
    own = layout.spec.metrics[layout.seconds]
    wanted = own.target if own.target is not None and own.goal == "at_most" else np.inf
    whole = own.scope == "run"
    return Member(
        amounts=np.rint(amounts).astype(np.int64),
        seconds=seconds,
        spread=spread,
        iterations=layout.iterations,
        run_seconds=wanted if whole else np.inf,
        iteration_seconds=np.inf if whole else wanted,
        weight=own.weight,
    )


def _seconds(layout: Layout, table: ModelTable, column: int, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over a run of the medians of its iterations, [A]: at usual features, with the most of other resources."""
    usual = foreseen(table)
    logs = usual.log_mean[layout.seconds]
    point = usual.point((usual.feature_low + usual.feature_high)[None] / 2)
    corners = [logs[:, cell].swapaxes(1, 2) for cell in point.cells]  # [A, I, 1] each
    known = corners[0] if point.weights is None else weighted(corners, point.weights)
    each = np.exp(known[:, :, 0].astype(np.float64))[:, usual.iteration_bin].mean(axis=1)
    held = layout.allocations[:, column]
    return np.array([each[np.flatnonzero(held == amount)[-1]] for amount in amounts])
