"""How far jobs get while they hold GPUs: scale-invariant iterations, epoch by epoch, until the last one ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.measured import Application, Batch

FIRST_ROWS = 64
COLUMNS = ("application", "data", "epoch", "done", "ended")


class Rates:
    """Scale-invariant iterations a second of what jobs may be set to, row by row; rows are made once.

    Attributes:
        numbers: where each application stands.
        ends: iterations at which epochs end, infinite after the last, [A, E].
        epochs: of each application, [A].
        table: [rows, E].
    """

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self._applications = list(applications.values())
        self.numbers = {name: number for number, name in enumerate(applications)}
        self.epochs: Integers = np.array([one.epochs for one in self._applications])
        self.ends: Floats = np.full((len(self._applications), int(self.epochs.max())), np.inf)
        for number, one in enumerate(self._applications):
            self.ends[number, : one.epochs] = one.ends
        self.table: Floats = np.zeros((FIRST_ROWS, self.ends.shape[1]))
        self._rows: dict[tuple[int, tuple[int, ...], Batch], int] = {}

    def row(self, application: int, placement: tuple[int, ...], batch: Batch) -> int:
        """The row of an application on GPUs per node, most first, at a batch."""
        key = application, placement, batch
        if key not in self._rows:
            self._add(*key)
        return self._rows[key]

    def _add(self, application: int, placement: tuple[int, ...], batch: Batch) -> None:
        one, row = self._applications[application], len(self._rows)
        if row == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
        total = sum(placement) * batch.atomic * (batch.accumulated + 1)
        self.table[row, : one.epochs] = one.gain(one.initial, total) / one.update_seconds(placement, batch)
        self._rows[application, placement, batch] = row


class Pace(Protocol):
    """How fast jobs go, and what they do after each stretch of time: some change their batch."""

    def rows(self, at: Integers) -> Integers:
        """Rows of the rates of the jobs at these positions, for the epoch that they are in."""
        ...

    def speeds(self, at: Integers) -> Floats:
        """By how much the nodes of the jobs at these positions are faster than those that were measured."""
        ...

    def trained(self, at: Integers) -> None:
        """The jobs at these positions have ended an epoch, or the time."""
        ...


class Progress:
    """What J jobs have learned by now, [J] each; changed in place.

    Attributes:
        application: numbers in ``rates``.
        data: size of each one's data over that which was measured.
        epoch: epochs that have ended.
        done: scale-invariant iterations.
        ended: seconds into the last stretch of time at which each was complete; not a number where it isn't.
    """

    def __init__(self, rates: Rates, application: Integers, data: Floats) -> None:
        self.rates, self.application, self.data = rates, application, data
        self.epoch = np.zeros(len(application), np.int64)
        self.done = np.zeros(len(application))
        self.ended = np.full(len(application), np.nan)

    def keep(self, which: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Some of the jobs, in their order."""
        for name in COLUMNS:
            setattr(self, name, getattr(self, name)[which])

    def join(self, application: Integers, data: Floats) -> None:
        """More jobs, [K]."""
        new = Progress(self.rates, application, data)
        for name in COLUMNS:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(new, name)]))

    @property
    def left(self) -> Floats:
        """Iterations that are left of each job, [J]."""
        ends = self.rates.ends[self.application, self.rates.epochs[self.application] - 1]
        return np.asarray(self.data * ends - self.done, np.float64)

    def train(self, pace: Pace, left: Floats, seconds: float) -> None:
        """Jobs train for what is ``left`` [J] of the last ``seconds``; 0 left: they don't.

        An epoch's end is reached after whole seconds.
        """
        left = left.copy()
        training = np.flatnonzero(left > 0)
        while training.size:
            rate = self.rates.table[pace.rows(training), self.epoch[training]] * pace.speeds(training)
            end = self.data[training] * self.rates.ends[self.application[training], self.epoch[training]]
            reached = self.done[training] + rate * left[training]
            through = reached >= end
            self.done[training[~through]] = reached[~through]
            at, end, rate = training[through], end[through], rate[through]
            left[at] -= np.rint((end - self.done[at]) / rate)
            self.done[at] = end
            self.epoch[at] += 1
            over = self.epoch[at] == self.rates.epochs[self.application[at]]
            self.ended[at[over]] = seconds - left[at[over]]
            pace.trained(training)
            training = at[~over & (left[at] > 0)]
