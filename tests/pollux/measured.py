"""Applications as they were measured: seconds of a step by placement and local batch, progress and gradients by epoch.

The files are those of Pollux's published simulator (Qiao et al., OSDI 2021): ``placements.csv``, ``scalability.csv``
and ``validation-<batch>.csv`` per application, as the shared data describe them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from app.kinds.cluster.jobs import Floats, Integers

EPOCHS = {"bert": 2, "cifar10": 100, "ncf": 10, "imagenet": 90, "deepspeech2": 80, "yolov3": 50}
LARGEST_LOCAL = {"yolov3": 8}
ONE_GPU = frozenset({"ncf"})
"""Applications whose jobs the published simulator keeps on one GPU."""
NCF_BATCH = 32_768
MOST_NODES = 16
TOLERANCE = 1e-8


class Batch(NamedTuple):
    """How a job trains: samples per GPU at once, and further ones whose gradients are added before an update."""

    atomic: int
    accumulated: int


class Step(NamedTuple):
    """Seconds of one step, and of the synchronisation in it."""

    seconds: float
    synchronising: float


class Validation(NamedTuple):
    """What was measured at S batch sizes over E epochs.

    Attributes:
        batch: global sizes, ascending, [S].
        progress: scale-invariant iterations at the end of each epoch, [S, E].
        iterations: real ones, [S, E].
        metric: of validation, [S, E].
        squared, variance: of the gradient, [S, E].
    """

    batch: Integers
    progress: Floats
    iterations: Floats
    metric: Floats
    squared: Floats
    variance: Floats

    def neighbours(self, batch: int) -> tuple[int, int]:
        """Positions of the measured sizes at or below and at or above ``batch``.

        Raises:
            ValueError: none is.
        """
        if not self.batch[0] <= batch <= self.batch[-1]:
            raise ValueError(f"batch size {batch} is outside of what was measured: {self.batch[0]} to {self.batch[-1]}")
        above = int(np.searchsorted(self.batch, batch))
        return (above if self.batch[above] == batch else above - 1), above

    def at(self, batch: int, values: Floats) -> Floats:
        """One of the measurements [S, E] at any batch size, linear between the neighbours, [E]."""
        below, above = self.neighbours(batch)
        if below == above:
            return values[below]
        low, high = int(self.batch[below]), int(self.batch[above])
        return np.asarray(((batch - low) * values[above] + (high - batch) * values[below]) / (high - low), np.float64)


class Application:
    """One application: when its epochs end, and how fast it gets there.

    Attributes:
        name: of its folder.
        epochs: after which a job of it is complete.
        validation: see ``Validation``; its rows are cut to ``epochs``.
        initial, largest: batch sizes, global.
        smallest_local, largest_local: batch sizes per GPU.
        ends: scale-invariant iterations at which each epoch ends, [epochs].
    """

    def __init__(self, folder: Path, epochs: int, largest_local: int | None = None) -> None:
        self.name, self.epochs = folder.name, epochs
        self.validation = _validation(folder, epochs)
        self._placements, self._scalability = _table(folder / "placements.csv"), _table(folder / "scalability.csv")
        self.initial, self.largest = int(self.validation.batch[0]), int(self.validation.batch[-1])
        local = self._placements["local_bsz"]
        self.smallest_local, self.largest_local = int(local.min()), largest_local or int(local.max())
        self.ends: Floats = self.validation.progress.min(axis=0)
        self._steps: dict[tuple[tuple[int, ...], int], Step] = {}
        self._packed: dict[tuple[int, int], list[float]] = {}
        self._updates: dict[int, Floats] = {}
        self._by_placement = self._measured()

    def batch_of(self, total: int, gpus: int) -> Batch:
        """How a global batch is split over GPUs, with accumulation where one GPU can't hold its part."""
        local = _up(total / gpus)
        accumulated = _up(local / self.largest_local) - 1
        if gpus == 1 and total > self.initial:
            accumulated = max(1, accumulated)
        return self.split(local, accumulated, gpus)

    def split(self, local: int, accumulated: int, gpus: int) -> Batch:
        """A local batch in parts, such that no global batch is larger than was measured."""
        return Batch(min(_up(local / (accumulated + 1)), self.largest // (gpus * (accumulated + 1))), accumulated)

    def update_seconds(self, placement: Sequence[int], batch: Batch) -> float:
        """Seconds of one update of the parameters."""
        seconds, synchronising = self.step(placement, batch.atomic)
        return seconds + (seconds - synchronising) * batch.accumulated

    def step(self, placement: Sequence[int], local: int) -> Step:
        """What a step takes on GPUs per node, in the order of the nodes.

        Raises:
            ValueError: nothing was measured that is near.
        """
        counts = tuple(int(gpus) for gpus in placement if gpus)
        key = min(counts[i:] + counts[:i] for i in range(len(counts))), local
        if key not in self._steps:
            self._steps[key] = self._looked_up(*key)
        return self._steps[key]

    def gain(self, batch: int, total: int) -> Floats:
        """Scale-invariant iterations of one update at a global batch, in each epoch, [epochs]."""
        squared, variance = (self.validation.at(total, v) for v in (self.validation.squared, self.validation.variance))
        return np.asarray((variance + squared) / (variance / (total / batch) + squared), np.float64)

    def packed_seconds(self, total: int, gpus: int, node: int) -> Floats:
        """Seconds of an update at a global batch on 1 to ``gpus`` GPUs that fill nodes of ``node`` GPUs, [gpus].

        On one GPU gradients are accumulated at least once, as Optimus has it in the published simulator.
        """
        known = self._packed.setdefault((total, node), [])
        for count in range(len(known) + 1, gpus + 1):
            whole, rest = divmod(count, node)
            placement = [node] * whole + [rest] * (rest > 0)
            batch = self.batch_of(total, count)
            if count == 1 and not batch.accumulated:
                batch = self.split(total, 1, 1)
            known.append(self.update_seconds(placement, batch))
        return np.array(known[:gpus])

    def updates_left(self, total: int, epoch: int) -> float:
        """Updates after ``epoch`` ended epochs at a global batch; at least one."""
        if total not in self._updates:
            self._updates[total] = self.validation.at(total, self.validation.iterations)
        known = self._updates[total]
        return float(known[-1] - known[epoch]) if epoch < self.epochs - 1 else 1.0

    @cached_property
    def course(self) -> tuple[Floats, Floats]:
        """Ends of epochs from 0 on, and what part of all its improvement the metric has made by then, [epochs + 1].

        At the initial batch; the first epoch's part is that of the second, since nothing was measured before it.
        """
        metric = self.validation.metric[0]
        metric = np.concatenate([[2 * metric[0] - metric[1]], metric])
        best = np.maximum.accumulate(np.sign(metric[-1] - metric[0]) * metric)
        return np.concatenate([[0.0], self.ends]), (best - best[0]) / (best[-1] - best[0])

    def _looked_up(self, placement: tuple[int, ...], local: int) -> Step:
        rows = self._by_placement.get(int("".join(map(str, placement))))
        if rows is not None and rows[0, 0] <= local <= rows[-1, 0]:
            return Step(*(float(np.interp(local, rows[:, 0], rows[:, column])) for column in (1, 2)))
        interpolator = self._interpolator([min(len(placement), MOST_NODES), sum(placement), local])[0]
        if rows is not None or np.isnan(interpolator).any():
            raise ValueError(f"{self.name} was not measured near a local batch of {local} on {placement}")
        return Step(*map(float, interpolator))

    def _measured(self) -> dict[int, Floats]:
        """Local batch, step and synchronisation seconds by the digits of a placement, [n, 3]."""
        table = self._placements
        rows = np.column_stack([table["local_bsz"], table["step_time"], table["sync_time"]])
        return {int(key): rows[table["placement"] == key] for key in np.unique(table["placement"])}

    @cached_property
    def _interpolator(self) -> LinearNDInterpolator:
        """Over nodes, GPUs and local batch: means of the placements of each, in their order, then scalability."""
        table, scalability = self._placements, self._scalability
        digits = [[int(digit) for digit in str(int(key))] for key in table["placement"]]
        where = np.column_stack([[*map(len, digits)], [*map(sum, digits)], table["local_bsz"]])
        points, group = np.unique(where, axis=0, return_inverse=True)
        counts = np.bincount(group.ravel())
        means = [np.bincount(group.ravel(), table[name]) / counts for name in ("step_time", "sync_time")]
        more = np.column_stack([scalability[name] for name in ("num_nodes", "num_replicas", "local_bsz")])
        values = np.column_stack([scalability[name] for name in ("step_time", "sync_time")])
        return LinearNDInterpolator(
            np.concatenate([points, more]).astype(np.float64), np.concatenate([np.column_stack(means), values])
        )


def read_applications(folder: Path) -> dict[str, Application]:
    """All six of the published simulator, by name."""
    return {name: Application(folder / name, epochs, LARGEST_LOCAL.get(name)) for name, epochs in EPOCHS.items()}


def _up(value: float) -> int:
    """The least whole number that is not clearly smaller."""
    return int(np.ceil(value - TOLERANCE))


def _table(path: Path) -> dict[str, Floats]:
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, np.float64).T, strict=True))


def _validation(folder: Path, epochs: int) -> Validation:
    paths = {int(path.stem.partition("-")[2]): path for path in folder.glob("validation-*.csv")}
    tables = [_table(paths[batch]) for batch in sorted(paths)]
    names = ("progress", "iteration", "metric", "grad_sqr", "grad_var")
    return Validation(
        np.array(sorted(paths), np.int64), *(np.stack([table[name][:epochs] for table in tables]) for name in names)
    )
