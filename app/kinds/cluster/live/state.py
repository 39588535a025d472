"""A run's state: jobs by name, and the GPUs that are there. It never changes in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import Integers, Jobs
from app.kinds.cluster.layout import Layout


class ClusterState(NamedTuple):
    """A cluster between two reports.

    Attributes:
        now: of the last report; 0 before the first.
        names: of the jobs, in the order of ``jobs``.
        jobs: that are there, on the nodes that were decided last.
        capacity: GPUs of each node, [N].
    """

    now: float
    names: tuple[str, ...]
    jobs: Jobs
    capacity: Integers


def begin(layout: Layout) -> ClusterState:
    """A run that has reported nothing: no job, and every node."""
    return ClusterState(0.0, (), table.none(len(layout.nodes)), layout.capacity)


def pack(state: ClusterState) -> list[Any]:
    """A state as plain lists, for JSON; nodes of a job as pairs of position and GPUs, never demoted as null."""
    columns: dict[str, Any] = {name: column.tolist() for name, column in state.jobs._asdict().items()}
    columns["held"] = [[[node, count] for node, count in enumerate(row) if count] for row in columns["held"]]
    columns["demoted"] = [None if value == table.NEVER else value for value in columns["demoted"]]
    return [state.now, list(state.names), [*columns.values()], state.capacity.tolist()]


def unpack(stored: list[Any]) -> ClusterState:
    """The state whose ``pack`` went through JSON."""
    now, names, columns, capacity = stored
    empty, given = table.none(len(capacity)), dict(zip(Jobs._fields, columns, strict=True))
    held = np.zeros((len(names), len(capacity)), np.int64)
    for job, nodes in enumerate(given["held"]):
        for node, count in nodes:
            held[job, node] = count
    given["held"] = held
    given["demoted"] = [table.NEVER if value is None else value for value in given["demoted"]]
    made = (np.asarray(given[name], column.dtype) for name, column in empty._asdict().items())
    return ClusterState(float(now), tuple(names), Jobs._make(made), np.array(capacity, np.int64))
