"""What a trace comes to, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from app.charts.text import number
from app.kinds.workflow.formats.reading import Reading, counted
from app.kinds.workflow.samples.schemas import Spread, TraceRead
from app.kinds.workflow.samples.trace_summary import summary


def words(reading: Reading) -> Iterator[str]:
    """Lines for people: how many tasks, of what size, over what time, on what."""
    found = summary(reading.trace)
    yield _tasks(found, reading)
    yield _time(found, reading)
    if found.run_time_seconds is not None:
        yield f"run time    {_spread(found.run_time_seconds, ' s')}"
    if found.processors is not None:
        yield f"processors  {_spread(found.processors, '')}"
    if found.edges:
        yield f"edges       {found.edges:,} with {found.edge_bytes / 1e9:,.3f} GB; critical path {_seconds(found)}"
    yield from _load(found, reading)


def _tasks(found: TraceRead, reading: Reading) -> str:
    noun = "task" if found.workflows else "job"
    users = f" of {counted(found.users, 'user')}" if found.users else ""
    dropped = reading.dropped + sum(one.count for one in reading.skipped)
    left_out = f"; {dropped:,} left out" if dropped else ""
    return f"{counted(found.tasks, noun)}{users}{left_out}"


def _time(found: TraceRead, reading: Reading) -> str:
    trace = reading.trace
    since = ""
    if trace.origin and trace.tasks and abs(trace.origin + trace.submit[-1]) < 2e11:
        first = datetime.fromtimestamp(trace.origin + float(trace.submit[0]), UTC)
        since = f" from {first:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"submitted   over {found.span_seconds / 86_400:,.1f} days{since}"
        if found.span_seconds
        else "submitted   at once"
    )


def _spread(spread: Spread, unit: str) -> str:
    parts = {"median": spread.median, "mean": spread.mean, "largest": spread.largest}
    return ", ".join(f"{name} {number(value, 6)}{unit}" for name, value in parts.items())


def _seconds(found: TraceRead) -> str:
    return f"{found.critical_path_seconds or 0.0:,.1f} s of {found.processor_seconds:,.1f} processor seconds"


def _load(found: TraceRead, reading: Reading) -> Iterator[str]:
    """What the tasks ask of the recorded machines, where that is told."""
    total = sum(reading.machines)
    if not total:
        return
    machines = f"{counted(len(reading.machines), 'machine')} with {counted(total, 'processor')}"
    load = f"; load {found.processor_seconds / (found.span_seconds * total):.1%}" if found.span_seconds else ""
    yield f"recorded on {machines}{load}"
