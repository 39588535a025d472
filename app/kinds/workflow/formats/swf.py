"""The Standard Workload Format: batch jobs, one per line of 18 numbers, −1 where something is unknown.

Chapin et al., *Benchmarks and Standards for the Evaluation of Parallel Job Schedulers*, JSSPP 1999; version 2.2. Lines
that begin with ``;`` are comments, those of the header ``; Name: value``.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.check import Edges, cycle_issue, doubtful_units
from app.kinds.workflow.formats.reading import LISTED, Reading, Where, counted, refuse, share_lacking
from app.kinds.workflow.formats.skipping import Skipping
from app.kinds.workflow.formats.source import Source
from app.kinds.workflow.formats.swf_table import (
    ALLOCATED,
    COLUMNS,
    ESTIMATE,
    JOB,
    MEMORY,
    PARTIAL,
    PRECEDING,
    REQUESTED,
    RUNTIME,
    STATUS,
    SUBMIT,
    USED_MEMORY,
    USER,
    WIDTH,
    Floats,
    Table,
    faults,
    read_table,
    sound,
)
from app.kinds.workflow.trace import Trace

KIBI = 1024.0
OUT_OF_ORDER = "submit times must ascend"
NOT_THERE = "must be the number of a job with a run time and processors in this log"


def read_swf(
    source: Source, *, clip: bool = False, sort: bool = False, preceding: bool = False, skip_bad: bool = False
) -> Reading:
    """Read a batch log, plain or gzip.

    Processors are those that were requested, else those allocated; estimates are requested times; memory (kilobytes
    per processor in the file) is what was requested, else what was used, of all processors together. Jobs without a
    run time or processors are left out, and so are lines about parts of jobs; each is counted in a warning.

    Args:
        source: path, or lines.
        clip: cut run times above the estimate down to it, as a system does that ends such jobs.
        sort: bring jobs into order of submission, then of job numbers, where they are not; otherwise that is an error.
        preceding: take the preceding job (column 17) as a parent; otherwise it is ignored, as recorded submit times
            mostly follow it already.
        skip_bad: leave out lines that can't be read or can't be right, and jobs whose preceding job is not there if
            that is taken; otherwise each is an error. Submit times out of order are one still: see ``sort``.

    Raises:
        InvalidInput: with the lines: what can't be read, negative run times, job numbers given twice, submit times out
            of order, unknown preceding jobs, cycles of them, no job at all.
        OSError: the file can't be read.
    """
    skipping = Skipping() if skip_bad else None
    table = read_table(source, skipping)
    if skipping is None:
        refuse(faults(table))
    else:
        table = sound(table, skipping)
    warnings = [*_wide_warning(table)]
    whole, dropped = _usable(table, warnings)
    if not len(whole.line):
        refuse([FieldIssue("", "holds no job with a run time and processors", len(table.line))])
    whole = _ordered(whole, warnings, sort=sort)
    if preceding and skipping is not None:
        whole = _preceded(whole, skipping)
    trace = _trace(whole)
    if preceding:
        trace = _with_parents(trace, whole)
    trace = _clipped(trace, whole.where, warnings, clip=clip)
    warnings += doubtful_units(trace, whole.where)
    machine = int(_number(whole.header.get("MaxProcs")) or _number(whole.header.get("MaxNodes")) or 0)
    warnings += _too_large(trace, machine, whole.where)
    lacks = _lacks(trace, whole, preceding=preceding)
    name = whole.header.get("Computer", "")
    return Reading(
        trace,
        whole.where,
        lacks,
        tuple(warnings),
        name,
        (machine,) if machine else (),
        dropped,
        skipping.found if skipping else (),
    )


def _wide_warning(table: Table) -> list[FieldIssue]:
    count, first = table.wide
    if not count:
        return []
    message = f"{counted(count, 'line')} with more than {WIDTH} columns: the rest is ignored"
    return [FieldIssue(f"/lines/{first}", message, None)]


def _usable(table: Table, warnings: list[FieldIssue]) -> tuple[Table, int]:
    """The rows that are whole jobs with a run time and processors, and how many others there were."""
    cells = table.cells
    partial = np.isin(cells[:, STATUS], PARTIAL)
    no_runtime = ~partial & (cells[:, RUNTIME] <= 0)
    no_processors = ~partial & ~no_runtime & (_processors(cells) <= 0)
    for rows, field, what in (
        (partial, "status", "about parts of jobs (status 2 to 4)"),
        (no_runtime, "runtime", "of jobs without a run time"),
        (no_processors, "processors", "of jobs without processors"),
    ):
        if found := np.flatnonzero(rows).tolist():
            message = f"{counted(len(found), 'line')} {what} left out; this is the first"
            warnings.append(
                FieldIssue(table.where(found[0], field), message, float(cells[found[0], COLUMNS.index(field)]))
            )
    keep = ~(partial | no_runtime | no_processors)
    return table.take(keep), int((~keep).sum())


def _processors(cells: Floats) -> Floats:
    """Requested, else allocated, [n]; at most 0 where neither is known."""
    return np.where(cells[:, REQUESTED] > 0, cells[:, REQUESTED], cells[:, ALLOCATED])


def _ordered(table: Table, warnings: list[FieldIssue], *, sort: bool) -> Table:
    submit = table.cells[:, SUBMIT]
    falls = np.flatnonzero(np.diff(submit) < 0) + 1
    if not len(falls):
        return table
    row = int(falls[0])
    before = f"line {int(table.line[row - 1])} was submitted later, at {submit[row - 1]:g} s"
    issue = FieldIssue(table.where(row, "submit"), f"{OUT_OF_ORDER}, but {before}", float(submit[row]))
    if not sort:
        refuse([issue])
    message = f"{counted(len(falls), 'job')} out of order of submission, sorted; this is the first: {before}"
    warnings.append(issue._replace(message=message))
    return table.take(np.lexsort((table.cells[:, JOB], submit)))


def _trace(table: Table) -> Trace:
    cells, count = table.cells, len(table.line)
    processors = _processors(cells).astype(np.int64)
    memory = np.where(cells[:, MEMORY] > 0, cells[:, MEMORY], cells[:, USED_MEMORY])
    users, user = _users(cells[:, USER])
    return Trace(
        names=tuple(map(str, cells[:, JOB].astype(np.int64).tolist())),
        submit=np.ascontiguousarray(cells[:, SUBMIT]),
        runtime=np.ascontiguousarray(cells[:, RUNTIME]),
        estimate=np.where(cells[:, ESTIMATE] > 0, cells[:, ESTIMATE], np.nan),
        processors=processors,
        memory=np.where(memory > 0, np.rint(memory * KIBI * processors), np.nan),
        user=user,
        deadline=np.full(count, np.nan),
        group=np.full(count, -1),
        parent_start=np.zeros(count + 1, np.int64),
        parents=np.zeros(0, np.int64),
        data=np.zeros(0),
        users=users,
        origin=_number(table.header.get("UnixStartTime")) or 0.0,
    )


def _users(given: Floats) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Users in order of their first job, and each job's, [n]."""
    names, first, index = np.unique(given, return_index=True, return_inverse=True)
    known = [int(at) for at in np.argsort(first) if names[at] >= 0]
    place = np.full(len(names), -1)
    place[known] = np.arange(len(known))
    return tuple(f"{names[at]:.0f}" for at in known), place[index]


def _with_parents(trace: Trace, table: Table) -> Trace:
    """Preceding jobs as parents.

    Raises:
        InvalidInput: one that is not in the log, or a cycle of them.
    """
    index = {name: task for task, name in enumerate(trace.names)}
    given = table.cells[:, PRECEDING]
    rows = np.flatnonzero(given > 0).tolist()
    found = [index.get(f"{given[row]:.0f}", -1) for row in rows]
    unknown = [row for row, parent in zip(rows, found, strict=True) if parent < 0]
    refuse([FieldIssue(table.where(row, "preceding"), NOT_THERE, float(given[row])) for row in unknown[:LISTED]])
    start = np.concatenate([[0], np.cumsum(given > 0)]).astype(np.int64)
    edges = Edges(start, np.array(found, np.int64))
    refuse(cycle_issue(trace.names, edges, lambda task, _: table.where(task, "preceding")))
    return trace._replace(parent_start=start, parents=edges.parents, data=np.zeros(len(found)))


def _preceded(table: Table, skipping: Skipping) -> Table:
    """The jobs whose preceding job is there; without one, others may have lost theirs."""
    while True:
        given = table.cells[:, PRECEDING]
        lost = (given > 0) & ~np.isin(given, table.cells[:, JOB])
        if not lost.any():
            return table
        for line in table.line[lost].tolist():
            skipping.add(line, "preceding", NOT_THERE)
        table = table.take(~lost)


def _clipped(trace: Trace, where: Where, warnings: list[FieldIssue], *, clip: bool) -> Trace:
    over = np.flatnonzero(trace.runtime > trace.estimate)
    if not len(over):
        return trace
    first = int(over[0])
    done = "cut down to it" if clip else "kept as they are"
    message = f"{counted(len(over), 'run time')} above the estimate, {done}; this is the first"
    warnings.append(FieldIssue(where(first, "runtime"), message, float(trace.runtime[first])))
    return trace._replace(runtime=np.fmin(trace.runtime, trace.estimate)) if clip else trace


def _too_large(trace: Trace, machine: int, where: Where) -> list[FieldIssue]:
    """Jobs larger than the machine that the header tells of: a warning, as it may be wrong."""
    over = np.flatnonzero(trace.processors > machine) if machine else np.zeros(0, np.int64)
    if not len(over):
        return []
    message = f"{counted(len(over), 'job')} larger than the {machine:,} processors of the header; this is the first"
    return [FieldIssue(where(int(over[0]), "processors"), message, int(trace.processors[over[0]]))]


def _number(text: str | None) -> float | None:
    """A positive number at the start of a header's value."""
    match = re.match(r"\d+(\.\d+)?", text or "")
    return float(match[0]) or None if match else None


def _lacks(trace: Trace, table: Table, *, preceding: bool) -> tuple[str, ...]:
    tasks = trace.tasks
    followers = 0 if preceding else int((table.cells[:, PRECEDING] > 0).sum())
    return (
        *share_lacking(
            int(np.isnan(trace.estimate).sum()), tasks, "job", "an estimate", "their exact run times are planned with"
        ),
        *share_lacking(int(np.isnan(trace.memory).sum()), tasks, "job", "memory", "memory does not limit them"),
        *share_lacking(int((trace.user < 0).sum()), tasks, "job", "a user", "limits per user do not touch them"),
        *((f"{counted(followers, 'job')} with a preceding job: not taken as a parent",) if followers else ()),
        *(() if trace.origin else ("the header has no UnixStartTime: submit times count from an unknown date",)),
    )
