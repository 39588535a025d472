"""Common parts of readers of trace files: sources, checks, notation of nodes, and skipped lines."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from app.charts.text import count_text, exact
from app.kinds.contract.inputs import FieldIssue, InvalidInput, Skipped
from app.kinds.workflow.queue import Nodes
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import Trace

LISTED = 20
"""Most errors reported per file."""


Where = Callable[[int, str], str]
"""Pointer to a field (``runtime``, ``submit``, ``memory``, ``processors``, ``parents``) of a task, by its index."""


class Reading(NamedTuple):
    """A trace as read, with notes about the file.

    Attributes:
        trace: tasks of the file.
        where: function that returns the pointer to a task's field in the file.
        lacks: sentences on missing information and its consequence.
        warnings: repaired, dropped or suspicious values: pointer to the first or worst (``/lines/12/runtime``),
            message, value.
        name: name given in the file; may be empty.
        machines: processors of each recorded machine; empty: unknown.
        dropped: number of tasks in the file that are not in the trace; each reason has a warning.
        skipped: invalid lines left out on request, not counted in ``dropped``.
    """

    trace: Trace
    where: Where
    lacks: tuple[str, ...] = ()
    warnings: tuple[FieldIssue, ...] = ()
    name: str = ""
    machines: tuple[int, ...] = ()
    dropped: int = 0
    skipped: tuple[Skipped, ...] = ()


def refuse(issues: Sequence[FieldIssue]) -> None:
    """Raise InvalidInput with the first ``LISTED`` issues, in order; do nothing if there are none."""
    if issues:
        raise InvalidInput(issues[:LISTED])


def share_lacking(missing: int, tasks: int, noun: str, thing: str, consequence: str) -> tuple[str, ...]:
    """Return a sentence on the ``thing`` that all or some tasks lack, with its consequence; empty if none does."""
    if not missing:
        return ()
    who = f"no {noun} has {thing}" if missing == tasks else f"{count_text(missing, noun)} of {tasks:,} without {thing}"
    return (f"{who}: {consequence}",)


# Checks of any trace: cycles, tasks larger than all nodes, suspicious units.


DAY = 86_400.0
LONG_MEDIAN = 2 * DAY
"""Median run time in seconds above which milliseconds are suspected."""
LONG_SPAN = 30 * 365 * DAY
LATEST_ORIGIN = 1e11
"""Seconds since 1970 in the year 5138; milliseconds since 1970 exceed it since 1973."""
SMALL_MEMORY = 1e6
SHOWN = 3


class Edges(NamedTuple):
    """Parents of N tasks as compressed sparse rows with E edges, task i's ``parents[start[i]:start[i + 1]]``.

    Attributes:
        start: first edge of each task, [N + 1].
        parents: task indices, [E].
    """

    start: NDArray[np.int64]
    parents: NDArray[np.int64]


def cycle(edges: Edges) -> list[int]:
    """Return the tasks of one cycle from its lowest index, each a parent of the next; empty if there is no cycle."""
    count = len(edges.start) - 1
    if not len(edges.parents):
        return []
    left = set(range(count)) - set(order(edges))
    if not left:
        return []
    start, parents = edges.start.tolist(), edges.parents.tolist()
    visited: dict[int, int] = {}
    path: list[int] = []
    task = min(left)
    while task not in visited:
        visited[task] = len(path)
        path.append(task)
        task = next(parent for parent in parents[start[task] : start[task + 1]] if parent in left)
    result = path[visited[task] :][::-1]
    first = result.index(min(result))
    return result[first:] + result[:first]


def order(edges: Edges) -> list[int]:
    """Return the tasks in topological order, without those that have a cycle among their ancestors. Kahn's algorithm
    (1962), linear in tasks and edges."""
    count = len(edges.start) - 1
    waits = np.diff(edges.start).tolist()
    child = np.repeat(np.arange(count), np.diff(edges.start))
    by_parent = np.argsort(edges.parents, kind="stable")
    children = child[by_parent].tolist()
    first = np.searchsorted(edges.parents[by_parent], np.arange(count + 1)).tolist()
    order = [task for task in range(count) if waits[task] == 0]
    for task in order:  # which grows meanwhile
        for other in children[first[task] : first[task + 1]]:
            waits[other] -= 1
            if waits[other] == 0:
                order.append(other)
    return order


def cycle_issue(names: Sequence[str], edges: Edges, where: Where) -> list[FieldIssue]:
    """Return an issue that names the tasks of a cycle; none if there is no cycle."""
    tasks = cycle(edges)
    if not tasks:
        return []
    shown = tasks if len(tasks) <= LISTED else [*tasks[: LISTED - 1], tasks[-1]]
    words = [names[task] for task in [*shown, tasks[0]]]
    if len(tasks) > LISTED:
        words.insert(LISTED - 1, f"… {len(tasks) - LISTED} more …")
    message = f"the tasks wait for each other in a cycle: {' → '.join(words)}"
    return [FieldIssue(where(tasks[0], "parents"), message, names[tasks[-1]])]


def trace_where(trace: Trace) -> Where:
    """Return a function for pointers into a trace without a file: ``/tasks/<name>/<field>``."""
    return lambda task, field: f"/tasks/{trace.names[task]}/{field}"


def misfits(trace: Trace, nodes: Nodes, where: Where | None = None) -> list[FieldIssue]:
    """Return issues of up to ``LISTED`` tasks that fit no node by processors, or by processors and memory."""
    at = where or trace_where(trace)
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)
    shapes = np.unique(np.stack([nodes.processors, nodes.memory]), axis=1)  # equal nodes are looked at once
    fits = np.zeros(trace.tasks, bool)
    for processors, size in shapes.T:
        fits |= (trace.processors <= processors) & (memory <= size)
    largest = int(nodes.processors.max(initial=0))
    issues = []
    for task in np.flatnonzero(~fits)[:LISTED].tolist():
        wanted = int(trace.processors[task])
        if wanted > largest:
            message = f"must be at most {largest:,}, the processors of the largest node"
            issues.append(FieldIssue(at(task, "processors"), message, wanted))
        else:
            room = nodes.memory[nodes.processors >= wanted].max() / 1e9
            message = f"must be at most {exact(room)} GB, the memory of the largest node with {wanted} processors"
            issues.append(FieldIssue(at(task, "memory"), message, float(memory[task])))
    return issues


def doubtful_units(trace: Trace, where: Where) -> list[FieldIssue]:
    """Return warnings on values that seem to be in another unit than seconds or bytes."""
    return [
        *_long_run_times(trace, where),
        *_against_estimates(trace, where),
        *_short_run_times(trace, where),
        *_long_span(trace, where),
        *_small_memory(trace, where),
    ]


def _long_run_times(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.runtime > 0)
    if not len(known) or (median := float(np.median(trace.runtime[known]))) <= LONG_MEDIAN:
        return []
    worst = known[np.argsort(-trace.runtime[known], kind="stable")[:SHOWN]]
    message = (
        f"half of the {count_text(len(known), 'run time')} are above {median:,.0f} s ({median / DAY:,.1f} days): are "
        "they in milliseconds? The longest are given"
    )
    return [FieldIssue(where(int(worst[0]), "runtime"), message, trace.runtime[worst].tolist())]


def _against_estimates(trace: Trace, where: Where) -> list[FieldIssue]:
    """Return a warning if run times and estimates differ by orders of magnitude, which suggests different units."""
    both = np.flatnonzero((trace.runtime > 0) & (trace.estimate > 0))
    if len(both) < SHOWN:
        return []
    with np.errstate(over="ignore"):
        ratio = trace.runtime[both] / trace.estimate[both]
    median = float(np.median(ratio))
    if 1e-4 <= median <= 10:
        return []
    shown = both[np.argsort(ratio, kind="stable")[:: -1 if median > 1 else 1][:SHOWN]]
    unit = "run times in milliseconds, or estimates in minutes or hours" if median > 1 else "estimates in milliseconds"
    message = f"run times are {median:,.4g} times their estimates (median): are these {unit}?"
    return [FieldIssue(where(int(shown[0]), "runtime"), message, trace.runtime[shown].tolist())]


def _short_run_times(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.runtime > 0)
    if len(known) < 10 or (longest := float(trace.runtime[known].max())) >= 1:
        return []
    shown = known[:SHOWN]
    message = f"all run times are below a second, the longest is {longest:.3g}: are they in hours or days?"
    return [FieldIssue(where(int(shown[0]), "runtime"), message, trace.runtime[shown].tolist())]


def _long_span(trace: Trace, where: Where) -> list[FieldIssue]:
    if not trace.tasks:
        return []
    span = float(trace.submit[-1] - trace.submit[0])
    latest = trace.origin + float(trace.submit[-1])
    if span <= LONG_SPAN and latest <= LATEST_ORIGIN:
        return []
    text = f"span {span / DAY / 365:,.0f} years" if span > LONG_SPAN else "lie far in the future"
    message = f"submit times {text}: are they in milliseconds? First and last are given"
    return [FieldIssue(where(trace.tasks - 1, "submit"), message, [float(trace.submit[0]), float(trace.submit[-1])])]


def _small_memory(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.memory > 0)
    if not len(known) or (median := float(np.median(trace.memory[known]))) >= SMALL_MEMORY:
        return []
    shown = known[np.argsort(trace.memory[known], kind="stable")[:SHOWN]]
    message = f"half of the tasks use less than {median:,.0f} bytes of memory: is it told in kilobytes?"
    return [FieldIssue(where(int(shown[0]), "memory"), message, trace.memory[shown].tolist())]


# Compact notation of nodes: ``4x16@1.0:0.48,2x8@2`` is four nodes of 16 processors at speed 1 for 0.48 per hour, and
# two more.


FORM = "count x processors @ speed : price per hour, as in 4x16@1.0:0.48; speed (1) and price (0) may be left out"
_NODES = re.compile(r"(\d+)x(\d+)(?:@([\d.eE+-]+))?(?::([\d.eE+-]+))?")


def nodes_written(
    text: str,
    bandwidth_mbps: float | None = None,
    startup_seconds: float = 0.0,
    billing_seconds: float = 1.0,
    rented: bool = False,
) -> tuple[NodeType, ...]:
    """Parse node types from the notation ``FORM``; ``rented`` ones are paid for only while needed. Times are seconds.

    Raises:
        ValueError: ``text`` doesn't have the form, or a number is out of range.
    """
    types = []
    for number, part in enumerate(text.split(",")):
        match = _NODES.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"nodes must be {FORM}; several such, with commas between: {part.strip()!r} is none")
        count, processors, speed, price = match.groups()
        own = {"processors": processors, "speed": speed or 1, "price_per_hour": price or 0}
        own |= {"name": f"n{number}", "minimum": 0 if rented else int(count), "maximum": count}
        own |= {
            "billing_seconds": billing_seconds,
            "startup_seconds": startup_seconds,
            "bandwidth_mbps": bandwidth_mbps,
        }
        types.append(_node(part.strip(), own))
    return tuple(types)


def _node(part: str, fields: dict[str, Any]) -> NodeType:
    try:
        return NodeType.model_validate(fields, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"nodes: {part!r}: {where}: {first['msg']}, not {first['input']!r}") from error


# Skipped lines of a log: number, positions and reasons.


OTHER = "other reasons"
MOST_SKIPPED = 100_000


class Skipping:
    """Counts lines that a reader leaves out, and keeps the first ``LISTED`` line numbers of each reason."""

    def __init__(self) -> None:
        self.count = 0
        self._found: dict[tuple[str, str], tuple[int, list[int]]] = {}

    def add(self, line: int, field: str, reason: str) -> None:
        """Count a skipped line under its reason; further reasons after the first ``LISTED`` are combined. Raises
        InvalidInput if there are more than ``MOST_SKIPPED`` lines."""
        if self.count == MOST_SKIPPED:
            message = f"would be the {MOST_SKIPPED + 1:,}th line to be left out: is this a log in this format?"
            refuse([FieldIssue(f"/lines/{line}/{field}".rstrip("/"), message, None)])
        self.count += 1
        key = (field, reason)
        if key not in self._found and len(self._found) >= LISTED:
            key = ("", OTHER)
        count, lines = self._found.setdefault(key, (0, []))
        self._found[key] = (count + 1, lines)
        if len(lines) < LISTED:
            lines.append(line)

    @property
    def skipped_lines(self) -> tuple[Skipped, ...]:
        """Skipped lines by column and reason, the most frequent first."""
        every = [Skipped(field, reason, count, tuple(lines)) for (field, reason), (count, lines) in self._found.items()]
        return tuple(sorted(every, key=lambda one: -one.count))


def field_of(issue: FieldIssue) -> str:
    """Return the column that an issue of a line points to; empty: the whole line."""
    return "/".join(issue.pointer.split("/")[3:])


def line_of(issue: FieldIssue) -> int:
    """Return the line number that an issue points to; raise IndexError or ValueError if it points to no line."""
    return int(issue.pointer.split("/")[2])


# Sources of traces: files or lines, plain or gzip, read in pieces.


Source = str | PathLike[str] | Iterable[bytes] | Iterable[str]
"""Path of a file, plain or gzip, or its content as bytes or text: whole lines, or pieces for formats not read by lines.
"""
GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 16


def lines(source: Source) -> Iterator[bytes]:
    """Yield the lines of a source, or the blocks it consists of.

    Raises:
        InvalidInput: the gzip data is damaged.
        OSError: the file can't be read.
    """
    if not isinstance(source, (str, PathLike)):
        yield from (line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line for line in source)
        return
    with _opened(source) as stream:
        yield from stream


def blocks(source: Source) -> Iterator[bytes]:
    """Yield blocks of whole lines, about ``PIECE`` bytes each, without the last line end. Raises InvalidInput if gzip
    data is damaged, and OSError if the file can't be read."""
    chunks: list[bytes] = []
    size = 0
    for line in lines(source):
        chunks.append(line.removesuffix(b"\n"))
        size += len(line) + 1
        if size >= PIECE:
            yield b"\n".join(chunks)
            chunks, size = [], 0
    if chunks:
        yield b"\n".join(chunks)


def pieces(source: Source) -> Iterator[bytes]:
    """Yield the bytes of a file, ``PIECE`` at a time, or the content as given. Raises InvalidInput if gzip data is
    damaged, and OSError if the file can't be read."""
    if not isinstance(source, (str, PathLike)):
        yield from lines(source)
        return
    with _opened(source) as stream:
        while piece := stream.read(PIECE):
            yield piece


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    with Path(path).open("rb") as raw:
        zipped = raw.peek(2)[:2] == GZIP_MAGIC
        try:
            if not zipped:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unzipped, io.BufferedReader(unzipped, PIECE) as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidInput([FieldIssue("", f"the gzip file is broken: {error}", str(path))]) from error
