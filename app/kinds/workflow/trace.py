"""Traces of tasks as columns, and their serialisation."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors

Seconds = NDArray[np.float64]


class Trace(NamedTuple):
    """N tasks in order of submission, of U users; unknown values are NaN (times, bytes) or −1 (indices).

    Attributes:
        names: unique identifiers, [N].
        submit: seconds after the trace's origin, ascending, [N]; a task is ready when submitted and its parents have
            ended.
        runtime: seconds at speed 1, [N]; NaN: it has not run.
        estimate: seconds requested by the user, [N].
        processors: number of processors needed, [N].
        memory: memory needed in bytes, [N].
        user: index into ``users``, [N].
        deadline: seconds after the origin, [N].
        group: index of the workflow, [N]; −1: an independent job.
        parent_start: parents of task i are ``parents[parent_start[i]:parent_start[i + 1]]``, [N + 1].
        parents: task indices of the E edges, [E].
        data: bytes along each edge, [E].
        users: names of the users, [U].
        origin: seconds since 1970 of time 0; 0: unknown.
        predicted: seconds predicted by a run-time predictor, [N]; not stored. None: estimates are used.
    """

    names: tuple[str, ...]
    submit: Seconds
    runtime: Seconds
    estimate: Seconds
    processors: NDArray[np.int64]
    memory: NDArray[np.float64]
    user: NDArray[np.int64]
    deadline: Seconds
    group: NDArray[np.int64]
    parent_start: NDArray[np.int64]
    parents: NDArray[np.int64]
    data: NDArray[np.float64]
    users: tuple[str, ...] = ()
    origin: float = 0.0
    predicted: Seconds | None = None

    @property
    def tasks(self) -> int:
        """Number of tasks N."""
        return len(self.submit)

    @property
    def requested(self) -> Seconds:
        """Requested seconds of each of N tasks, [N]: the estimate, else the prediction, else the run time."""
        return np.where(
            np.isnan(self.estimate), self.runtime if self.predicted is None else self.predicted, self.estimate
        )

    @property
    def expected(self) -> Seconds:
        """Seconds that a scheduler plans each of N tasks with, [N]: the prediction, else ``requested``."""
        return self.requested if self.predicted is None else self.predicted

    def scaled(self, factor: Seconds | float) -> Trace:
        """Return the trace with run times, estimates and predictions multiplied by ``factor`` (a number, or one per
        task, [N])."""
        predicted = None if self.predicted is None else self.predicted * factor
        return self._replace(runtime=self.runtime * factor, estimate=self.estimate * factor, predicted=predicted)


def independent_jobs(
    submit: Seconds, runtime: Seconds, estimate: Seconds, processors: NDArray[np.int64], user: NDArray[np.int64]
) -> Trace:
    """Return the trace of N batch jobs without parents, in order of submission, named by index. Arguments are [N] each;
    times are seconds, ``user`` the index of the user (−1: unknown)."""
    count = len(submit)
    unknown = np.full(count, np.nan)
    return Trace(
        names=tuple(map(str, range(count))),
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        processors=processors,
        memory=unknown,
        user=user,
        deadline=unknown,
        group=np.full(count, -1),
        parent_start=np.zeros(count + 1, np.int64),
        parents=np.zeros(0, np.int64),
        data=np.zeros(0),
        users=tuple(map(str, range(int(user.max(initial=-1)) + 1))),
    )


def select_tasks(trace: Trace, rows: slice | NDArray[np.bool_]) -> Trace:
    """Return the trace of the tasks selected by ``rows``, a slice or a mask [N], in order, without their parents."""
    chosen = np.arange(trace.tasks)[rows]
    return trace._replace(
        names=tuple(trace.names[row] for row in chosen.tolist()),
        submit=trace.submit[rows],
        runtime=trace.runtime[rows],
        estimate=trace.estimate[rows],
        processors=trace.processors[rows],
        memory=trace.memory[rows],
        user=trace.user[rows],
        deadline=trace.deadline[rows],
        group=trace.group[rows],
        predicted=None if trace.predicted is None else trace.predicted[rows],
        parent_start=np.zeros(len(chosen) + 1, np.int64),
        parents=np.zeros(0, np.int64),
        data=np.zeros(0),
    )


# Serialisation of traces, as executions are stored.


LEVEL = 3
ARRAYS = tuple(name for name in Trace._fields if name not in ("names", "users", "origin", "predicted"))
SILENT = ("user", "group", "parents")
"""Index arrays that may be all unknown."""


def pack(trace: Trace) -> bytes:
    """Serialise a trace as safetensors; equal traces give equal bytes. Arrays without known values are left out; names
    that are whole numbers are stored as numbers."""
    arrays = {name: array for name in ARRAYS if _says(name, array := getattr(trace, name))}
    known: dict[str, Any] = {"tasks": trace.tasks, "users": trace.users, "origin": trace.origin}
    numbers = _numbers(trace.names)
    if numbers is None:
        known["names"] = trace.names
    else:
        arrays["names"] = numbers
    # one entry of metadata, for the order of several is not fixed
    return safetensors.save(arrays, {"trace": json.dumps(known, sort_keys=True)})


def compress(plain: bytes) -> bytes:
    """Compress bytes that ``pack`` returned, by zlib, for storage."""
    return zlib.compress(plain, LEVEL)


def unpack(stored: bytes) -> Trace:
    """Return the trace from bytes that ``pack`` and then ``compress`` returned.

    Raises:
        zlib.error, SafetensorError, ValueError, KeyError: the bytes are damaged.
    """
    plain = zlib.decompress(stored)
    arrays = safetensors.load(plain)
    header = json.loads(plain[8 : 8 + int.from_bytes(plain[:8], "little")])
    known = json.loads(header["__metadata__"]["trace"])
    numbers = arrays.pop("names", None)
    names = known["names"] if numbers is None else map(str, numbers.tolist())
    parts = {name: arrays[name] if name in arrays else _unknown_values(name, known["tasks"], arrays) for name in ARRAYS}
    return Trace(names=tuple(names), users=tuple(known["users"]), origin=known["origin"], **parts)


def _says(name: str, array: NDArray[Any]) -> bool:
    if array.dtype.kind == "f":
        return bool((~np.isnan(array)).any())
    return name not in SILENT or bool((array != -1).any())


def _numbers(names: tuple[str, ...]) -> NDArray[np.int64] | None:
    """Return names as integers that convert back to the same names, [N]; None if that isn't possible."""
    try:
        numbers = np.array([int(name) for name in names], np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if tuple(map(str, numbers.tolist())) == names else None


def _unknown_values(name: str, tasks: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array ``name`` of a trace with all values unknown: −1 [N], NaN [N] or [E], or no edges."""
    if name in ("user", "group"):
        return np.full(tasks, -1, np.int64)
    if name == "parents":
        return np.zeros(0, np.int64)
    return np.full(len(arrays.get("parents", ())) if name == "data" else tasks, np.nan)
