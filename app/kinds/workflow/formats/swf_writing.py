"""Traces written in Standard Workload Format, and what of them the format has no place for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.formats.reading import counted
from app.kinds.workflow.formats.swf import KIBI
from app.kinds.workflow.trace import Trace

UNKNOWN = "-1"
COMPLETED = "1"


def write_swf(
    trace: Trace, *, name: str = "", machine: int | None = None, wait: NDArray[np.float64] | None = None
) -> Iterator[str]:
    """Lines of a batch log, with their ends; reading them gives the trace again, but for what ``swf_omits`` tells.

    Args:
        name: of the machine, for the header.
        machine: its processors, for the header.
        wait: seconds that each job waited under some schedule, [N]; unknown when None.
    """
    yield from _header(trace, name, machine)
    memory = trace.memory / KIBI / trace.processors
    columns = (
        _numbers(trace.names) or [str(task + 1) for task in range(trace.tasks)],
        _texts(trace.submit),
        _texts(wait) if wait is not None else [UNKNOWN] * trace.tasks,
        _texts(trace.runtime),
        list(map(str, trace.processors.tolist())),
        _texts(memory),
        _texts(trace.estimate),
        _users(trace),
        _preceding(trace) or [UNKNOWN] * trace.tasks,
    )
    for job, submit, waited, runtime, processors, kibibytes, estimate, user, preceding in zip(*columns, strict=True):
        measured = f"{job} {submit} {waited} {runtime} {processors} {UNKNOWN} {kibibytes}"
        requested = f"{processors} {estimate} {kibibytes} {COMPLETED} {user}"
        yield f"{measured} {requested} {UNKNOWN} {UNKNOWN} {UNKNOWN} {UNKNOWN} {preceding} {UNKNOWN}\n"


def swf_omits(trace: Trace) -> tuple[str, ...]:
    """Sentences on what Standard Workload Format can't hold of a trace."""
    silent = int(np.isnan(trace.runtime).sum())
    edges = len(trace.parents)
    said = (
        (_numbers(trace.names) is None, "names of tasks: jobs are numbered from 1"),
        (_numbers(trace.users) is None, "names of users: they are numbered from 1"),
        (silent > 0, f"{counted(silent, 'task')} without a run time: readers leave them out"),
        (edges > 0 and _preceding(trace) is None, f"{counted(edges, 'edge')}: a job has at most one preceding job"),
        (bool((trace.data > 0).any()), "the bytes that go along edges"),
        (not np.isnan(trace.deadline).all(), "deadlines"),
        (bool((trace.group >= 0).any()), "which workflow a task belongs to"),
    )
    return tuple(sentence for holds, sentence in said if holds)


def _header(trace: Trace, name: str, machine: int | None) -> Iterator[str]:
    yield "; Version: 2.2\n"
    for sentence in swf_omits(trace):
        yield f"; Note: left out: {sentence}\n"
    if name:
        yield f"; Computer: {' '.join(name.split())}\n"
    yield f"; MaxJobs: {trace.tasks}\n; MaxRecords: {trace.tasks}\n"
    if trace.origin:
        yield f"; UnixStartTime: {_text(trace.origin)}\n"
    if machine:
        yield f"; MaxProcs: {machine}\n"


def _texts(values: NDArray[np.float64]) -> list[str]:
    return [_text(value) for value in values.tolist()]


def _text(value: float) -> str:
    """The shortest text that reads back as the same number; −1 where it is not one."""
    return UNKNOWN if math.isnan(value) else repr(value).removesuffix(".0")


def _numbers(names: Sequence[str]) -> list[str] | None:
    """Names that are whole numbers from 0 already; None when one is not."""
    good = all(
        name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 16 for name in names
    )
    return list(names) if good else None


def _users(trace: Trace) -> list[str]:
    names = _numbers(trace.users) or [str(user + 1) for user in range(len(trace.users))]
    return [names[user] if user >= 0 else UNKNOWN for user in trace.user.tolist()]


def _preceding(trace: Trace) -> list[str] | None:
    """Number of each task's only parent; None when one has several, or there is no parent at all."""
    degree = np.diff(trace.parent_start)
    if not len(trace.parents) or degree.max() > 1:
        return None
    names = _numbers(trace.names) or [str(task + 1) for task in range(trace.tasks)]
    parents = iter(trace.parents.tolist())
    found = [names[next(parents)] if has else UNKNOWN for has in degree.tolist()]
    return None if "0" in found else found  # 0 means no job in this column
