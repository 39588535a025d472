"""Measured batches as arrays, and what was measured alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workers.estimators.base import Floats, Integers

MOST_ALIKE = 64


class Rows(NamedTuple):
    """Batches, [n] each: positions of variant and server class, batch size, cores, seconds."""

    variant: Integers
    server: Integers
    batch: Floats
    cores: Floats
    seconds: Floats

    def take(self, rows: Integers) -> Rows:
        """Some of them."""
        return Rows(self.variant[rows], self.server[rows], self.batch[rows], self.cores[rows], self.seconds[rows])


class Cells(NamedTuple):
    """What was measured alike.

    Attributes:
        points: one row of each cell, [c].
        log: median of the logs of seconds, [c].
        number: how many rows, [c].
        of_row: the cell of each row, [n].
    """

    points: Rows
    log: Floats
    number: Floats
    of_row: Integers


def cells(rows: Rows) -> Cells:
    """Rows of the same variant, class, batch size and cores, together."""
    keys = np.stack([rows.variant, rows.server, rows.batch, rows.cores], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    of_row = inverse.reshape(-1)
    parts = np.split(np.log(rows.seconds)[np.argsort(of_row, kind="stable")], np.cumsum(np.bincount(of_row))[:-1])
    log = np.array([np.median(part) for part in parts])
    return Cells(rows.take(first), log, np.bincount(of_row).astype(np.float64), of_row)


def thinned(rows: Rows, rng: np.random.Generator) -> Rows:
    """At most ``MOST_ALIKE`` rows of what was measured alike, drawn at random."""
    count = len(rows.seconds)
    if count <= MOST_ALIKE:
        return rows
    cell, order = cells(rows).of_row, rng.permutation(count)
    by_cell = order[np.argsort(cell[order], kind="stable")]
    first = np.searchsorted(cell[by_cell], cell[by_cell])
    return rows.take(np.sort(by_cell[np.arange(count) - first < MOST_ALIKE]))
