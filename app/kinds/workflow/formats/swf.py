"""Reader of the Standard Workload Format."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import count_text, exact
from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.reading import (
    LISTED,
    MOST_SKIPPED,
    Edges,
    Reading,
    Skipping,
    Source,
    Where,
    blocks,
    cycle_issue,
    doubtful_units,
    field_of,
    line_of,
    refuse,
    share_lacking,
)
from app.kinds.workflow.trace import Trace

# Lines of the Standard Workload Format as a table of numbers, each validated by itself.


COLUMNS = (
    "job", "submit", "wait", "runtime", "allocated", "cpu", "used_memory", "processors", "estimate", "memory",
    "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
WIDTH = len(COLUMNS)
JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, _, USED_MEMORY, REQUESTED, ESTIMATE, MEMORY, STATUS, USER = range(12)
PRECEDING = 16
PARTIAL = (2, 3, 4)
"""Status of lines on a part of a job that was swapped out; the whole job has its own line."""
_HEADER = re.compile(rb"^;[ \t]*+(MaxProcs|MaxNodes|Computer|UnixStartTime)[ \t]*+:(.*)", re.MULTILINE)
"""Header comments that are used."""
_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c"))
_COMMENT, _COMMA, _NEWLINE = b";,\n"

GIVEN = "job {:.0f} has been given"
LARGEST = 1e15
"""Largest absolute value in a log; whole numbers are exact up to it."""
NOT_A_LOG = "is JSON, not a log in Standard Workload Format; `steward import wfformat` reads workflows in WfFormat"
"""Message for JSON input."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Table(NamedTuple):
    """n rows of a log, as in the file.

    Attributes:
        cells: values of the columns named in ``COLUMNS``, [n, 18].
        line: line number of each row, [n].
        header: used comments of the form ``Name: value``.
        wide: number of lines with more than 18 columns, and line number of the first of them.
    """

    cells: Floats
    line: Indices
    header: dict[str, str]
    wide: tuple[int, int]

    def where(self, row: int, field: str) -> str:
        """Return the pointer to a field of a row, such as ``/lines/12/runtime``."""
        return f"/lines/{int(self.line[row])}/{field}"

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Table:
        """Return the rows selected by mask or indices."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        return self._replace(cells=self.cells[rows], line=self.line[rows])


def read_table(source: Source, skipping: Skipping | None = None) -> Table:
    """Read all rows of a source, a block of lines at a time; with ``skipping``, unreadable lines are left out.

    Raises:
        InvalidInput: the source is JSON, or a line has too few columns or a value that isn't a finite number.
        OSError: the file can't be read.
    """
    header: dict[str, str] = {}
    cells, numbers = _Rows(np.zeros((0, WIDTH))), _Rows(np.zeros(0, np.int64))
    wide = first_wide = before = 0
    for block in blocks(source):
        if before == 0 and block.lstrip()[:1] in (b"{", b"["):
            refuse([FieldIssue("", NOT_A_LOG, None)])
        words = _Words(block)
        if words.comments:
            for name, value in _HEADER.findall(block):
                header.setdefault(name.decode(), value.strip().decode("latin-1"))
        if len(words.rows) and (table := _numbers(words)) is None:
            issues = _unreadable(words, before, LISTED if skipping is None else len(words.rows) * WIDTH)
            if skipping is None:
                refuse(issues)
            else:
                _leave_out(words, before, issues, skipping)
                table = _numbers(words) if len(words.rows) else None
        if len(words.rows):
            cells.append(np.zeros((0, WIDTH)) if table is None else table)
            numbers.append(words.rows + (before + 1))
            if len(over := words.rows[words.widths > WIDTH]):
                wide, first_wide = wide + len(over), first_wide or int(over[0]) + before + 1
        before += words.lines
    return Table(cells.to_array(), numbers.to_array(), header, (wide, first_wide))


class _Rows:
    """An array that grows at its end in place, so that it is never in memory twice."""

    def __init__(self, empty: NDArray[Any]) -> None:
        self._all = empty
        self._used = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Append ``rows``, n numbers [n] or n rows of them [n, columns]."""
        end = self._used + len(rows)
        if end > len(self._all):
            self._all.resize((end + end // 2, *self._all.shape[1:]), refcheck=False)
        self._all[self._used : end] = rows
        self._used = end

    def to_array(self) -> NDArray[Any]:
        """Return all n rows, [n] or [n, columns]; nothing can be appended afterwards."""
        self._all.resize((self._used, *self._all.shape[1:]), refcheck=False)
        return self._all


class _Words:
    """Positions of words in a block of lines, of which n have words and are no comments.

    Attributes:
        text: the block as bytes, with a final line end.
        ends: position of the end of each word, [words].
        line_ends: position of the end of each line, [lines].
        lines: number of lines.
        comments: whether any line begins with ``;``.
        rows: indices of the n lines, [n].
        first, widths: index of the first word, and number of words, of each of the n lines, [n].
    """

    def __init__(self, block: bytes) -> None:
        self.text = np.frombuffer(block + b"\n", np.uint8)
        space = _SPACE[self.text]
        edges = np.flatnonzero(np.diff(space, prepend=True))
        begins, self.ends = edges[::2], edges[1::2]
        self.line_ends = np.flatnonzero(self.text == _NEWLINE)
        self.lines = len(self.line_ends)
        following = np.searchsorted(begins, self.line_ends)
        first = np.concatenate([[0], following[:-1]])
        filled = np.flatnonzero(following > first)
        comment = self.text[begins[first[filled]]] == _COMMENT
        self.comments = bool(comment.any())
        self.rows = filled[~comment]
        self.first, self.widths = first[self.rows], (following - first)[self.rows]

    def line(self, row: int) -> bytes:
        """Return the text of the line at a position in ``rows``."""
        at = int(self.rows[row])
        return self.text[int(self.line_ends[at - 1]) + 1 if at else 0 : int(self.line_ends[at])].tobytes()

    def separated(self) -> bytes:
        """Return the first 18 words of every row, separated by commas, as one text."""
        words = self.first[:, None] + np.arange(WIDTH)
        text = self.text.copy()
        text[self.ends[words]] = _COMMA
        edge = np.zeros(len(text) + 1, np.int8)
        edge[np.where(self.rows > 0, self.line_ends[self.rows - 1] + 1, 0)] += 1
        edge[self.ends[words[:, -1]] + 1] -= 1
        return text[np.cumsum(edge[:-1], dtype=np.int8).astype(bool)].tobytes()[:-1]


def _numbers(words: _Words) -> Floats | None:
    """Return n rows as numbers, [n, 18]; None if a row has too few columns or a value that isn't a finite number."""
    table = np.zeros(0)
    if words.widths.min() >= WIDTH:
        try:
            table = np.fromstring(words.separated(), np.float64, sep=",")
        except (ValueError, DeprecationWarning):  # there is a word that is no number
            table = np.zeros(0)
    if len(table) != len(words.rows) * WIDTH or not (np.abs(table) <= LARGEST).all():
        return None
    return table.reshape(-1, WIDTH)


def _leave_out(words: _Words, before: int, issues: list[FieldIssue], skipping: Skipping) -> None:
    """Remove rows with issues from ``words`` in place, and record the first issue of each; ``before``: lines before the
    block."""
    first: dict[int, FieldIssue] = {}
    for issue in issues:
        first.setdefault(line_of(issue), issue)
    for line, issue in first.items():
        skipping.add(line, field_of(issue), issue.message.partition(", has")[0])
    sound = ~np.isin(words.rows + (before + 1), list(first))
    words.rows, words.first, words.widths = words.rows[sound], words.first[sound], words.widths[sound]


def _unreadable(words: _Words, before: int, most: int) -> list[FieldIssue]:
    issues: list[FieldIssue] = []
    for row, at in enumerate(words.rows.tolist()):
        cells, number = words.line(row).split(None, WIDTH)[:WIDTH], at + before + 1
        if len(cells) < WIDTH:
            message = f"must have {WIDTH} columns, has {len(cells)}"
            issues.append(FieldIssue(f"/lines/{number}", message, b" ".join(cells)[:80].decode("utf-8", "replace")))
        else:
            issues += _no_numbers(cells, number)
        if len(issues) >= most:
            break
    return issues


def _no_numbers(cells: list[bytes], line: int) -> list[FieldIssue]:
    message = f"must be a finite number of at most {exact(LARGEST)}"
    return [
        FieldIssue(f"/lines/{line}/{name}", message, cell[:80].decode("utf-8", "replace"))
        for name, cell in zip(COLUMNS, cells, strict=True)
        if not _is_number(cell)
    ]


def _is_number(cell: bytes) -> bool:
    """Whether ``cell`` is a finite number; Python's digit grouping (``1_000``) isn't."""
    try:
        return abs(float(cell)) <= LARGEST and b"_" not in cell
    except ValueError:
        return False


def sound(table: Table, skipping: Skipping) -> Table:
    """Return the rows with valid values, of duplicate job numbers the first; record the others in ``skipping``. Raises
    InvalidInput if there are more than ``MOST_SKIPPED`` invalid lines."""
    while issues := faults(table, MOST_SKIPPED + 1):
        first: dict[int, FieldIssue] = {}
        for issue in issues:
            first.setdefault(line_of(issue), issue)
        for line, issue in first.items():
            twice = issue.message.startswith(GIVEN.format(issue.value or 0.0))
            skipping.add(line, field_of(issue), "has been given on an earlier line" if twice else issue.message)
        table = table.take(~np.isin(table.line, list(first)))
    return table


def faults(table: Table, most: int = LISTED) -> list[FieldIssue]:
    """Return issues of invalid values, by line, at most ``most`` per column; else issues of duplicate job numbers."""
    cells = table.cells
    unknown = cells == -1
    bad = {
        "job": (cells[:, JOB] < 0) | (cells[:, JOB] % 1 != 0),
        "submit": cells[:, SUBMIT] < 0,
        "runtime": (cells[:, RUNTIME] < 0) & ~unknown[:, RUNTIME],
        "allocated": _no_count(cells[:, ALLOCATED]),
        "processors": _no_count(cells[:, REQUESTED]),
        "estimate": (cells[:, ESTIMATE] < 0) & ~unknown[:, ESTIMATE],
    }
    accepted = {
        "job": "must be a whole number from 0",
        "submit": "must be a number of seconds from 0",
        "runtime": "must be a number of seconds from 0, or -1 where it is unknown",
        "estimate": "must be a number of seconds from 0, or -1 where it is unknown",
    }
    issues = []
    for field, rows in bad.items():
        message = accepted.get(field, "must be a whole number from 0, or -1 where it is unknown")
        for row in np.flatnonzero(rows)[:most].tolist():
            value = float(cells[row, COLUMNS.index(field)])
            issues.append((row, FieldIssue(table.where(row, field), message, value)))
    return [issue for _, issue in sorted(issues, key=lambda result: result[0])] or _twice(table, most)


def _no_count(values: Floats) -> NDArray[np.bool_]:
    return (values != -1) & ((values < 0) | (values % 1 != 0))


def _twice(table: Table, most: int) -> list[FieldIssue]:
    """Return at most ``most`` issues of job numbers on more than one line, except lines about parts of jobs."""
    whole = np.flatnonzero(~np.isin(table.cells[:, STATUS], PARTIAL))
    jobs = table.cells[whole, JOB]
    order = np.argsort(jobs, kind="stable")
    repeats = np.flatnonzero(np.diff(jobs[order]) == 0)
    issues = []
    for at in repeats[:most].tolist():
        first, again = int(whole[order[at]]), int(whole[order[at + 1]])
        job = float(table.cells[first, JOB])
        message = f"{GIVEN.format(job)} on line {int(table.line[first])} already"
        issues.append(FieldIssue(table.where(again, "job"), message, job))
    return issues


# Standard Workload Format: batch jobs, one per line of 18 numbers, −1 if unknown.
#
# Chapin et al., *Benchmarks and Standards for the Evaluation of Parallel Job Schedulers*, JSSPP 1999; version 2.2.
# Lines that begin with ``;`` are comments, those of the header ``; Name: value``.


KIBI = 1024.0
OUT_OF_ORDER = "submit times must ascend"
NOT_THERE = "must be the number of a job with a run time and processors in this log"


def read_swf(
    source: Source, *, clip: bool = False, sort: bool = False, preceding: bool = False, skip_bad: bool = False
) -> Reading:
    """Read a batch log, plain or gzip. Processors are those requested, else allocated; estimates are requested times;
    memory (kilobytes per processor in the file) is that requested, else used, of all processors. Jobs without a run
    time or processors, and lines about parts of jobs, are dropped and counted in warnings.

    Args:
        source: path, or lines.
        clip: cut run times to the estimate, as systems do that end such jobs.
        sort: sort jobs by submission and number; otherwise a wrong order is an error.
        preceding: use the preceding job (column 17) as a parent; otherwise it is ignored, as recorded submit times
            mostly follow from it already.
        skip_bad: leave out invalid lines, and jobs whose preceding job is missing; otherwise these are errors. Wrong
            order stays an error without ``sort``.

    Raises:
        InvalidInput: with line numbers: unreadable values, negative run times, duplicate job numbers, submit times out
            of order, unknown or cyclic preceding jobs, or no job.
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
    whole = _sort_by_submission(whole, warnings, sort=sort)
    if preceding and skipping is not None:
        whole = _drop_orphans(whole, skipping)
    trace = _trace(whole)
    if preceding:
        trace = _with_parents(trace, whole)
    trace = _clip_runtimes(trace, whole.where, warnings, clip=clip)
    warnings += doubtful_units(trace, whole.where)
    machine = int(_number(whole.header.get("MaxProcs")) or _number(whole.header.get("MaxNodes")) or 0)
    warnings += _too_large(trace, machine, whole.where)
    tasks = trace.tasks
    followers = 0 if preceding else int((whole.cells[:, PRECEDING] > 0).sum())
    lacks = (
        *share_lacking(
            int(np.isnan(trace.estimate).sum()), tasks, "job", "an estimate", "their exact run times are planned with"
        ),
        *share_lacking(int(np.isnan(trace.memory).sum()), tasks, "job", "memory", "memory does not limit them"),
        *share_lacking(int((trace.user < 0).sum()), tasks, "job", "a user", "limits per user do not touch them"),
        *((f"{count_text(followers, 'job')} with a preceding job: not taken as a parent",) if followers else ()),
        *(() if trace.origin else ("the header has no UnixStartTime: submit times count from an unknown date",)),
    )
    name = whole.header.get("Computer", "")
    return Reading(
        trace,
        whole.where,
        lacks,
        tuple(warnings),
        name,
        (machine,) if machine else (),
        dropped,
        skipping.skipped_lines if skipping else (),
    )


def _wide_warning(table: Table) -> list[FieldIssue]:
    count, first = table.wide
    if not count:
        return []
    message = f"{count_text(count, 'line')} with more than {WIDTH} columns: the rest is ignored"
    return [FieldIssue(f"/lines/{first}", message, None)]


def _usable(table: Table, warnings: list[FieldIssue]) -> tuple[Table, int]:
    """Return the rows of whole jobs with a run time and processors, and the number of other rows; add warnings on
    these."""
    cells = table.cells
    partial = np.isin(cells[:, STATUS], PARTIAL)
    no_runtime = ~partial & (cells[:, RUNTIME] <= 0)
    no_processors = ~partial & ~no_runtime & (_processors(cells) <= 0)
    for rows, field, what in (
        (partial, "status", "about parts of jobs (status 2 to 4)"),
        (no_runtime, "runtime", "of jobs without a run time"),
        (no_processors, "processors", "of jobs without processors"),
    ):
        if indices := np.flatnonzero(rows).tolist():
            message = f"{count_text(len(indices), 'line')} {what} left out; this is the first"
            warnings.append(
                FieldIssue(table.where(indices[0], field), message, float(cells[indices[0], COLUMNS.index(field)]))
            )
    keep = ~(partial | no_runtime | no_processors)
    return table.take(keep), int((~keep).sum())


def _processors(cells: Floats) -> Floats:
    """Return the processors requested, else allocated, of n rows ``cells`` (columns of SWF), [n]; 0 or −1: unknown."""
    return np.where(cells[:, REQUESTED] > 0, cells[:, REQUESTED], cells[:, ALLOCATED])


def _sort_by_submission(table: Table, warnings: list[FieldIssue], *, sort: bool) -> Table:
    submit = table.cells[:, SUBMIT]
    falls = np.flatnonzero(np.diff(submit) < 0) + 1
    if not len(falls):
        return table
    row = int(falls[0])
    before = f"line {int(table.line[row - 1])} was submitted later, at {exact(submit[row - 1])} s"
    issue = FieldIssue(table.where(row, "submit"), f"{OUT_OF_ORDER}, but {before}", float(submit[row]))
    if not sort:
        refuse([issue])
    message = f"{count_text(len(falls), 'job')} out of order of submission, sorted; this is the first: {before}"
    warnings.append(issue._replace(message=message))
    return table.take(np.lexsort((table.cells[:, JOB], submit)))


def _trace(table: Table) -> Trace:
    cells, count = table.cells, len(table.line)
    processors = _processors(cells).astype(np.int64)
    memory = np.where(cells[:, MEMORY] > 0, cells[:, MEMORY], cells[:, USED_MEMORY])
    # Names of users in order of their first job, and the position of each of n jobs' user, [n]; −1: unknown
    values = cells[:, USER]
    names, first, index = np.unique(values, return_index=True, return_inverse=True)
    known = [int(at) for at in np.argsort(first) if names[at] >= 0]
    place = np.full(len(names), -1)
    place[known] = np.arange(len(known))
    users, user = (tuple(f"{names[at]:.0f}" for at in known), place[index])
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


def _with_parents(trace: Trace, table: Table) -> Trace:
    """Return ``trace`` with preceding jobs as parents. Raises InvalidInput if a preceding job is not in the log, or
    there is a cycle."""
    index = {name: task for task, name in enumerate(trace.names)}
    parents = table.cells[:, PRECEDING]
    rows = np.flatnonzero(parents > 0).tolist()
    results = [index.get(f"{parents[row]:.0f}", -1) for row in rows]
    unknown = [row for row, parent in zip(rows, results, strict=True) if parent < 0]
    refuse([FieldIssue(table.where(row, "preceding"), NOT_THERE, float(parents[row])) for row in unknown[:LISTED]])
    start = np.concatenate([[0], np.cumsum(parents > 0)]).astype(np.int64)
    edges = Edges(start, np.array(results, np.int64))
    refuse(cycle_issue(trace.names, edges, lambda task, _: table.where(task, "preceding")))
    return trace._replace(parent_start=start, parents=edges.parents, data=np.zeros(len(results)))


def _drop_orphans(table: Table, skipping: Skipping) -> Table:
    """Return the rows without jobs whose preceding job is missing, repeated until none is; record these in
    ``skipping``."""
    while True:
        parents = table.cells[:, PRECEDING]
        lost = (parents > 0) & ~np.isin(parents, table.cells[:, JOB])
        if not lost.any():
            return table
        for line in table.line[lost].tolist():
            skipping.add(line, "preceding", NOT_THERE)
        table = table.take(~lost)


def _clip_runtimes(trace: Trace, where: Where, warnings: list[FieldIssue], *, clip: bool) -> Trace:
    over = np.flatnonzero(trace.runtime > trace.estimate)
    if not len(over):
        return trace
    first = int(over[0])
    done = "cut down to it" if clip else "kept as they are"
    message = f"{count_text(len(over), 'run time')} above the estimate, {done}; this is the first"
    warnings.append(FieldIssue(where(first, "runtime"), message, float(trace.runtime[first])))
    return trace._replace(runtime=np.fmin(trace.runtime, trace.estimate)) if clip else trace


def _too_large(trace: Trace, machine: int, where: Where) -> list[FieldIssue]:
    """Return a warning if jobs are larger than the machine of the header; that header may be wrong."""
    over = np.flatnonzero(trace.processors > machine) if machine else np.zeros(0, np.int64)
    if not len(over):
        return []
    message = f"{count_text(len(over), 'job')} larger than the {machine:,} processors of the header; this is the first"
    return [FieldIssue(where(int(over[0]), "processors"), message, int(trace.processors[over[0]]))]


def _number(text: str | None) -> float | None:
    """Return the positive number at the start of a header's value; None if there is none."""
    match = re.match(r"\d+(\.\d+)?", text or "")
    return float(match[0]) or None if match else None
