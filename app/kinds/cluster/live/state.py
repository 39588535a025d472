"""A run's state: jobs by name, and the GPUs that are there. It never changes in place."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster import experience
from app.kinds.cluster import jobs as table
from app.kinds.cluster.experience import Experience
from app.kinds.cluster.jobs import Integers, Jobs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live import learning, records
from app.kinds.cluster.live.learning import Learning
from app.kinds.cluster.live.records import Records
from app.kinds.cluster.live.report import EncodedSubmitted

RUN_BYTES, JOB_BYTES = 2_000, 800
"""Of what holds them, about; a job's nodes beside that."""


class ClusterState(NamedTuple):
    """A cluster between two reports.

    Attributes:
        now: of the last report; 0 before the first.
        names: of the jobs, in the order of ``jobs``.
        jobs: that are there, on the nodes that were decided last.
        capacity: GPUs of each node, [N].
        records: what launchers have reported of the jobs.
        learning: their curves, and what convergence has made of them; nothing where the spec has no convergence.
        experience: what jobs of each application have shown, those that ended included.
        off: logarithms of the seconds that jobs took until they finished over those that were expected; the last ones.
        off_starts: the same of the seconds until jobs that waited started.
    """

    now: float
    names: tuple[str, ...]
    jobs: Jobs
    capacity: Integers
    records: Records
    learning: Learning
    experience: Experience = MappingProxyType({})
    off: tuple[float, ...] = ()
    off_starts: tuple[float, ...] = ()


def begin(layout: Layout) -> ClusterState:
    """A run that has reported nothing: no job, and every node."""
    return ClusterState(0.0, (), table.none(len(layout.nodes)), layout.capacity, records.none(), learning.none())


def weight(state: ClusterState) -> int:
    """About how many bytes a state takes in memory."""
    jobs = len(state.names) * (JOB_BYTES + 8 * len(state.capacity))
    return RUN_BYTES + jobs + experience.weight(state.experience) + 32 * (len(state.off) + len(state.off_starts))


def pack(state: ClusterState) -> list[Any]:
    """A state as plain lists, for JSON: nodes of jobs as triples of job, node and GPUs, what is not finite as null."""
    columns = {name: _plain(column) for name, column in state.jobs._asdict().items() if name != "held"}
    job, node = np.nonzero(state.jobs.held)
    held = [job.tolist(), node.tolist(), state.jobs.held[job, node].tolist()]
    told = [_plain(column) for column in state.records]
    return [
        state.now,
        list(state.names),
        [*columns.values()],
        held,
        state.capacity.tolist(),
        told,
        learning.pack(state.learning),
        experience.pack(state.experience),
        list(state.off),
        list(state.off_starts),
    ]


def _plain(column: np.ndarray[Any, Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype != np.float64 or np.isfinite(column).all():
        return values
    return [value if finite else None for value, finite in zip(values, np.isfinite(column).tolist(), strict=True)]


def unpack(stored: list[Any]) -> ClusterState:
    """The state whose ``pack`` went through JSON."""
    now, names, columns, held, capacity, told, learned, *shown = stored
    jobs = table.none(len(capacity))
    there = np.zeros((len(names), len(capacity)), np.int64)
    there[held[0], held[1]] = held[2]
    given = dict(zip([name for name in Jobs._fields if name != "held"], columns, strict=True))
    made = {name: _column(values, getattr(jobs, name).dtype, table.NEVER) for name, values in given.items()}
    new = records.of([EncodedSubmitted(name, 1) for name in names])  # columns that a state from before hasn't
    known = [_column(values, column.dtype, records.UNKNOWN) for values, column in zip(told, new, strict=False)]
    return ClusterState(
        float(now),
        tuple(names),
        Jobs(held=there, **made),
        np.array(capacity, np.int64),
        Records._make([*known, *new[len(known) :]]),
        learning.unpack(learned, len(names)),
        experience.unpack(shown[0]) if shown else {},
        tuple(shown[1]) if shown else (),
        tuple(shown[2]) if len(shown) > 2 else (),
    )


def _column(values: list[Any], kind: np.dtype[Any], missing: float) -> np.ndarray[Any, Any]:
    """A column whose nulls stand for ``missing``."""
    filled = [missing if value is None else value for value in values] if None in values else values
    return np.array(filled, kind)
