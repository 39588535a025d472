"""What is sent to a search for plans, and what comes back: arrays in safetensors, with a JSON header.

Seconds are after the moment of the decision. Tasks that have ended, or run, come first: they are *fixed*.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, written

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
WORTHWHILE = 0.01  # share of the time of HEFT's starts by which a plan must be shorter to be followed


@dataclass(frozen=True, eq=False)
class Remaining:
    """What is left of a queue, N tasks of which the first ``fixed`` run or have ended, on M nodes.

    Attributes:
        parent_start, parents: the edges, as of ``ranks.graph``, [N + 1] and [E].
        data: bytes along each edge, [E].
        cost: seconds of each task on each node, infinite where it may not run; of fixed ones 0 on their own, [N, M].
        processors: of each task; 0 of those that have ended, [N].
        end: seconds, of fixed tasks, [fixed].
        node: where fixed tasks run or ran, and the plan so far has the others (−1: it doesn't have them), [N].
        order: tasks in the order of the plan so far, fixed ones first; those that it doesn't have come last, [N].
        slots: processors of each node, [M].
        available: seconds, from which a node takes tasks, [M].
        pace: seconds that a byte takes to or from another node, [M].
    """

    parent_start: Indices
    parents: Indices
    data: Floats
    cost: Floats
    processors: Indices
    end: Floats
    node: Indices
    order: Indices
    slots: Indices
    available: Floats
    pace: Floats

    @property
    def fixed(self) -> int:
        """How many tasks run or have ended."""
        return len(self.end)


@dataclass(frozen=True, eq=False)
class Found:
    """A searched plan, or what HEFT will do where the search can't better that.

    Attributes:
        order: all tasks, every one after its parents, fixed ones first, [N].
        node: where each runs, [N].
        start, end: seconds, [N].
        heft: seconds until the last end by HEFT's own plan.
        base: the same if tasks are started by HEFT as they get ready.
        better: whether it is a plan, shorter than ``base`` by more than ``WORTHWHILE``.
        took: seconds of the search.
    """

    order: Indices
    node: Indices
    start: Floats
    end: Floats
    heft: float
    base: float
    better: bool
    took: float


def encoded(message: Remaining | Found) -> bytes:
    """Either as bytes."""
    arrays = {name: value for name, value in vars(message).items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in vars(message).items() if name not in arrays}
    return written(arrays, {"numbers": json.dumps(numbers)})


def decoded(data: bytes) -> dict[str, Any]:
    """The fields of what ``encoded`` wrote.

    Raises:
        ValueError: it is no such message.
    """
    numbers: dict[str, float] = json.loads(read_header(data)["numbers"])
    return {**safetensors_numpy.load(data), **numbers}
