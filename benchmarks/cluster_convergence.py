"""What jobs that converge give back: node-hours freed, and what that costs of their final metric.

Learning curves of networks that were really trained (``accelerating-nas``): residual networks on CIFAR-10, 50 epochs
with a drop of the learning rate at 30, and MetaQNN's networks on SVHN, 20 epochs. Each is played forward as a job on
eight GPUs that has the time of its epochs and no more: on half the GPUs an epoch takes twice as long, and what it has
not trained by its end is lost. After each epoch the job shows its validation metric, and the rule of
``app.kinds.cluster.allocation.convergence`` says how many GPUs it keeps, from eight down to one. A job's metric is its
best so far, as of a checkpoint that is kept; that of the last epoch is told, too.

A quarter of the networks of each set says how curves of the application go (the domain model, as from samples); another
quarter set the two constants of the rule, the same for both sets. The other half is told of; it was read twice, since
intervals were set by stages of a run after the first time, for their coverage (.79 to 1.00 by then); constants stayed.
Beside: the same rule where nothing is known but the job's own curve. ``--development`` tells of the quarter that set
the constants.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import sys
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from app.kinds.cluster.allocation.convergence import Progress, Tolerance, judged, none
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.learning_curves import LearningCurves, Seen, ahead
from benchmarks.problems import data
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.estimation.learning_curves import Curve, classes, fit_class

Row = dict[str, Any]
SETS = ("deep_resnets_cifar10", "metaqnn_svhn")
GPUS, FLOOR = 8, 1
FREED, LOST = 0.2, 0.01
SEED = 0
EPOCHS = Tolerance(window_seconds=1.0)
"""An epoch on all GPUs takes a second, and so does a window."""


class Played(NamedTuple):
    """Of n jobs, [n] each: parts of node-hours freed, of the best and of the last metric lost, how often restored."""

    freed: Floats
    lost: Floats
    lost_last: Floats
    turns: Integers


def results() -> list[Row]:
    """Rows for the common table."""
    with threadpool_limits(1):
        return [row for name in SETS for row in _rows(name)]


def curves(name: str) -> Floats:
    """Validation accuracy by epoch of the networks of a set that have all epochs, [n, E]."""
    with gzip.open(data() / f"accelerating-nas/{name}.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    epochs = [column for column in rows[0] if column.startswith("acc_")]
    table = np.array([[float(row[column] or "nan") for column in epochs] for row in rows])
    return table[np.isfinite(table).all(axis=1)]


def parts(table: Floats) -> tuple[Floats, Floats, Floats]:
    """A quarter to learn curves from, a quarter to set constants on, and half to tell of."""
    order = np.random.default_rng(SEED).permutation(len(table))
    quarter = len(table) // 4
    return table[order[:quarter]], table[order[quarter : 2 * quarter]], table[order[2 * quarter :]]


def learned(table: Floats) -> LearningCurves:
    """How curves of the set go."""
    epochs = np.arange(1, table.shape[1] + 1.0)
    return classes([0], [True], [fit_class([Curve(epochs, one) for one in table], SEED)])


def played(table: Floats, known: LearningCurves | None, tolerance: Tolerance) -> Played:
    """All curves [n, E] as jobs, of which ``known`` says how such curves go."""
    count, epochs = table.shape
    gpus, done, used = np.full(count, GPUS), np.zeros(count), np.zeros(count)
    state, turns = none(count), np.zeros(count, np.int64)
    for now in range(epochs):
        done += gpus / GPUS
        used += gpus
        told = np.floor(done + 1e-9).astype(np.int64)
        before = state
        state = judged(state, _progress(table, told, known or NOTHING, gpus), now + 1.0, tolerance)
        turns += (before.restored != state.restored).astype(np.int64)
        gpus = np.minimum(state.ceiling, GPUS)
    reached = np.maximum(np.floor(done + 1e-9).astype(np.int64), 1)
    best, row = np.maximum.accumulate(table, axis=1), np.arange(count)
    lost = 1 - best[row, reached - 1] / best[:, -1]
    return Played(1 - used / (GPUS * epochs), lost, 1 - table[row, reached - 1] / table[:, -1], turns)


def _progress(table: Floats, told: Integers, known: LearningCurves, gpus: Integers) -> Progress:
    count, epochs = table.shape
    epoch = np.broadcast_to(np.arange(1, epochs + 1.0), table.shape)
    there = epoch <= told[:, None]
    seen = Seen(np.where(there, epoch, np.nan), np.where(there, table, np.nan))
    found = ahead(known, np.full(count, len(known.family) - 1), seen, np.full(count, float(epochs)))
    return Progress(found.level, found.gain, found.half, gpus, np.full(count, FLOOR))


NOTHING = classes([], [], [])


def _rows(name: str) -> list[Row]:
    model, _, judged_on = parts(curves(name))
    found, own = (played(judged_on, known, EPOCHS) for known in (learned(model), None))
    return [*_told(name, "curves of its application known", found), *_told(name, "its own curve alone", own)]


def _told(name: str, how: str, found: Played) -> list[Row]:
    freed, lost = mean_interval(found.freed), mean_interval(found.lost)
    within = lost["mean"] < LOST
    return [
        {
            "name": f"{name}, {how}: node-hours freed ({len(found.freed)} networks, {freed['low']:.3f}–"
            f"{freed['high']:.3f})",
            "value": freed["mean"],
            "unit": "of all",
            "peer": None,
            "peer_value": None,
            "ratio": None,
            "goal": f"> {FREED}: {'met' if freed['mean'] > FREED else 'missed'}",
        },
        {
            "name": f"{name}, {how}: metric lost ({lost['low']:.4f}–{lost['high']:.4f}; last epoch's "
            f"{found.lost_last.mean():.4f}; {(found.lost > LOST).mean():.1%} lose more than 1 %)",
            "value": lost["mean"],
            "unit": "of the final",
            "peer": None,
            "peer_value": None,
            "ratio": None,
            "goal": f"< {LOST}: {'met' if within else 'missed'}; at most {int(found.turns.max())} turns a job",
        },
    ]


def _development() -> None:
    for name in SETS:
        model, constants, _ = parts(curves(name))
        known = learned(model)
        for gain, doubt in itertools.product((0.0025, 0.005, 0.01, 0.02, 0.04), (0.0, 0.5, 1.0)):
            for how, curves_known in (("known", known), ("alone", None)):
                found = played(constants, curves_known, Tolerance(gain, doubt, 1.0))
                told = f"freed {found.freed.mean():.3f} lost {found.lost.mean():.4f} last {found.lost_last.mean():.4f}"
                sys.stdout.write(f"{name} {how} gain {gain} doubt {doubt}: {told} turns {found.turns.mean():.2f}\n")


if __name__ == "__main__":
    from benchmarks.__main__ import show

    if "--development" in sys.argv:
        _development()
    else:
        show("cluster_convergence", results())
