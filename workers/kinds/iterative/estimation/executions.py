"""Past executions as arrays, in the form in which the service stores them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from app.kinds.iterative.layout import Layout
from workers.estimators.base import Floats, Integers


@dataclass(frozen=True)
class Executions:
    """Executions of one workload: (name, data), data float64 [n, 1 + R + M + F].

    A row holds the iteration's number, the allocation, the metrics and the features, in the spec's order.
    """

    items: tuple[tuple[str, Floats], ...]

    @classmethod
    def from_blobs(cls, blobs: Iterable[tuple[str, bytes]], width: int) -> Self:
        """Read stored rows: (name, little-endian float64 bytes) with ``width`` = 1 + R + M + F columns.

        Raises:
            ValueError: a blob's length is no multiple of a row.
        """
        return cls(tuple((name, _rows(name, blob, width)) for name, blob in blobs))

    @property
    def names(self) -> list[str]:
        """Names of the executions, in order."""
        return [name for name, _ in self.items]

    def flat(self, layout: Layout) -> "Flat":
        """All rows of all executions under each other.

        Raises:
            ValueError: rows of another width than ``layout`` has.
        """
        resources, metrics, features = len(layout.resources), len(layout.metrics), len(layout.features)
        width = 1 + resources + metrics + features
        wrong = [name for name, data in self.items if data.ndim != 2 or data.shape[1] != width]
        if wrong:
            raise ValueError(f"execution {wrong[0]!r} must be [n, {width}]")
        data = np.concatenate([np.empty((0, width)), *(data for _, data in self.items)])
        groups = np.repeat(np.arange(len(self.items)), [len(data) for _, data in self.items]).astype(np.intp)
        _, allocation, measured, given = np.split(data, np.cumsum([1, resources, metrics]), axis=1)
        return Flat(groups, data[:, 0].astype(np.intp), allocation, measured, given, _changes(allocation, groups))


class Flat(NamedTuple):
    """Rows of all executions: execution [n], iteration [n], allocation [n, R], metrics [n, M], features [n, F], and
    which resources differ from the row before in the same execution, [n, R].
    """

    groups: Integers
    iterations: Integers
    allocations: Floats
    metrics: Floats
    features: Floats
    changed: Floats

    def take(self, rows: Integers) -> "Flat":
        """The rows at ``rows``."""
        return Flat(
            self.groups[rows],
            self.iterations[rows],
            self.allocations[rows],
            self.metrics[rows],
            self.features[rows],
            self.changed[rows],
        )

    @property
    def X(self) -> Floats:
        """Inputs of the families, [n, R + F]."""
        return np.hstack([self.allocations, self.features])


def _rows(name: str, blob: bytes, width: int) -> Floats:
    if len(blob) % (8 * width):
        raise ValueError(f"execution {name!r}: {len(blob)} bytes are no multiple of a row of {width} numbers")
    return np.frombuffer(blob, "<f8").reshape(-1, width).astype(np.float64)


def _changes(allocation: Floats, groups: Integers) -> Floats:
    changed = np.zeros(allocation.shape)
    if len(allocation):
        same = (groups[1:] == groups[:-1])[:, None]
        changed[1:] = (allocation[1:] != allocation[:-1]) & same
    return changed
