"""The lines of a file in Standard Workload Format as a table of numbers, each checked by itself."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.reading import LISTED, refuse
from app.kinds.workflow.formats.skipping import MOST_SKIPPED, Skipping, field_of, line_of
from app.kinds.workflow.formats.source import Source, blocks

COLUMNS = (
    "job", "submit", "wait", "runtime", "allocated", "cpu", "used_memory", "processors", "estimate", "memory",
    "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
WIDTH = len(COLUMNS)
JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, _, USED_MEMORY, REQUESTED, ESTIMATE, MEMORY, STATUS, USER = range(12)
PRECEDING = 16
PARTIAL = (2, 3, 4)
"""Status of lines that repeat a part of a job which was swapped out; the whole job has a line of its own."""
_HEADER = re.compile(rb"^;[ \t]*+(MaxProcs|MaxNodes|Computer|UnixStartTime)[ \t]*+:(.*)", re.MULTILINE)
"""The comments that say something that is used."""
_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c"))
_COMMENT, _COMMA, _NEWLINE = b";,\n"

GIVEN = "job {:.0f} has been given"
LARGEST = 1e15
NOT_A_LOG = "is JSON, not a log in Standard Workload Format; `steward import wfformat` reads workflows in WfFormat"
"""No number of a log is larger: whole ones are exact up to there."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Table(NamedTuple):
    """Rows as they stand in the file.

    Attributes:
        cells: [n, 18].
        line: number of each row's line, [n].
        header: what the comments of the form ``Name: value`` say that are used.
        wide: how many lines have more than 18 columns, and the first of them.
    """

    cells: Floats
    line: Indices
    header: dict[str, str]
    wide: tuple[int, int]

    def where(self, row: int, field: str) -> str:
        """Pointer to a field of a row."""
        return f"/lines/{int(self.line[row])}/{field}"

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Table:
        """Some of the rows."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        return self._replace(cells=self.cells[rows], line=self.line[rows])


def read_table(source: Source, skipping: Skipping | None = None) -> Table:
    """All rows of a source. No line is an object of its own: a block of them is taken apart at once.

    With ``skipping`` lines that can't be read are left out.

    Raises:
        InvalidInput: JSON, a line with too few columns, or with what is not a finite number.
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
    return Table(cells.taken(), numbers.taken(), header, (wide, first_wide))


class _Rows:
    """An array that grows at its end. Its memory is moved, not copied, so that it is never there twice."""

    def __init__(self, empty: NDArray[Any]) -> None:
        self._all = empty
        self._used = 0

    def append(self, rows: NDArray[Any]) -> None:
        """More rows."""
        end = self._used + len(rows)
        if end > len(self._all):
            self._all.resize((end + end // 2, *self._all.shape[1:]), refcheck=False)
        self._all[self._used : end] = rows
        self._used = end

    def taken(self) -> NDArray[Any]:
        """All rows; nothing can be appended any more."""
        self._all.resize((self._used, *self._all.shape[1:]), refcheck=False)
        return self._all


class _Words:
    """Where the words of a block of lines stand.

    Attributes:
        text: the block as bytes, with an end to its last line.
        ends: where each word ends, [words].
        line_ends: where each line ends, [lines].
        lines: how many lines there are.
        comments: whether any of them begins with ``;``.
        rows: the lines that hold words and are no comment, counting from 0, [n].
        first, widths: their first word, and how many they have, [n].
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
        """The text of one of the rows."""
        at = int(self.rows[row])
        return self.text[int(self.line_ends[at - 1]) + 1 if at else 0 : int(self.line_ends[at])].tobytes()

    def separated(self) -> bytes:
        """The first 18 words of every row, with a comma after each but the last."""
        words = self.first[:, None] + np.arange(WIDTH)
        text = self.text.copy()
        text[self.ends[words]] = _COMMA
        edge = np.zeros(len(text) + 1, np.int8)
        edge[np.where(self.rows > 0, self.line_ends[self.rows - 1] + 1, 0)] += 1
        edge[self.ends[words[:, -1]] + 1] -= 1
        return text[np.cumsum(edge[:-1], dtype=np.int8).astype(bool)].tobytes()[:-1]


def _numbers(words: _Words) -> Floats | None:
    """Rows as numbers, [n, 18]; None where there are too few columns, or what is not a finite number."""
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
    """Drop the rows with issues, and write down each one's first."""
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
    message = f"must be a finite number of at most {LARGEST:g}"
    return [
        FieldIssue(f"/lines/{line}/{name}", message, cell[:80].decode("utf-8", "replace"))
        for name, cell in zip(COLUMNS, cells, strict=True)
        if not _is_number(cell)
    ]


def _is_number(cell: bytes) -> bool:
    """Python's digit grouping (``1_000``) isn't one."""
    try:
        return abs(float(cell)) <= LARGEST and b"_" not in cell
    except ValueError:
        return False


def sound(table: Table, skipping: Skipping) -> Table:
    """The rows whose values a job can have; of a job number that is given twice, the first."""
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
    """Values that no job can have, in order of lines; at most so many of each column."""
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
    return [issue for _, issue in sorted(issues, key=lambda found: found[0])] or _twice(table, most)


def _no_count(values: Floats) -> NDArray[np.bool_]:
    return (values != -1) & ((values < 0) | (values % 1 != 0))


def _twice(table: Table, most: int) -> list[FieldIssue]:
    """Job numbers that stand on more than one line, those about parts of jobs aside."""
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
