"""What convergence would give back: jobs that learn as the domain model has seen jobs learn, played one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.allocation.convergence import Progress, Tolerance, judged, none
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import LearningCurves
from app.kinds.cluster.model import ClusterModel
from workers.kinds.cluster.world.learning import DRAWN, STEPS, drawn, foreseen, seen_at

Json = dict[str, Any]
GPUS = 8
MOST_CLASSES = 6


class GivenBack(NamedTuple):
    """Of jobs of one class.

    Attributes:
        kept: mean share of a job's GPUs that it has in each part of its time, [STEPS].
        freed: of all node-hours.
        lost: of the final level, on average; 0 where it ends as it would have.
    """

    kept: Floats
    freed: float
    lost: float


def convergence(layout: Layout, model: ClusterModel) -> list[Json]:
    """One plot, where the spec has convergence and curves are known."""
    wanted, curves = layout.spec.convergence, model.curves
    if wanted is None or not len(curves.family):
        return []
    tolerance = Tolerance(wanted.tolerance, wanted.doubt, 1.0)
    series = []
    for own in range(min(len(curves.family), MOST_CLASSES)):
        found = given_back(curves, own, tolerance)
        name = f"{model.applications[int(curves.application[own])]}: {found.freed:.0%} for {found.lost:.1%}"
        x, y = np.linspace(0, 1, STEPS + 1), np.append(found.kept, found.kept[-1])
        series.append({"name": name, "x": x.round(5).tolist(), "y": y.round(5).tolist()})
    return [
        {
            "heading": "Convergence",
            "caption": f"GPUs that jobs keep, by how much of their time is over: {DRAWN} jobs of each application "
            "that learn as others have, one window in each of 40 parts; beside the names node-hours freed, and what "
            "is lost of the final value for that",
            "form": "steps",
            "x": {"title": "part of a job's time", "share": True, "domain": [0, 1]},
            "y": {"title": "GPUs kept", "share": True, "domain": [0, 1]},
            "panels": [{"name": "", "series": series}],
        }
    ]


def given_back(curves: LearningCurves, own: int, tolerance: Tolerance) -> GivenBack:
    """Jobs of one class that have the time of their steps on all GPUs, and no more."""
    played, jobs = drawn(curves, own), np.arange(DRAWN)
    gpus, done, kept = np.full(DRAWN, GPUS), np.zeros(DRAWN), []
    state, table = none(DRAWN), foreseen(curves, own, played)
    for now in range(STEPS):
        done += gpus / GPUS
        kept.append(gpus.mean() / GPUS)
        left = seen_at(table, jobs, done / STEPS)
        state = judged(state, Progress(*left, gpus, np.ones(DRAWN, np.int64)), now + 1.0, tolerance)
        gpus = np.minimum(state.ceiling, GPUS)
    best = np.maximum.accumulate(played.value, axis=1)
    reached = best[jobs, np.clip(np.floor(done + 1e-9).astype(np.int64), 1, STEPS) - 1]
    lost = (best[:, -1] - reached) / np.maximum(np.abs(best[:, -1]), 1e-12)
    return GivenBack(np.array(kept), 1 - float(np.mean(kept)), float(lost.mean()))
