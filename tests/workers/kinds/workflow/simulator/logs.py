"""Public batch logs, with the schedules that other simulators made of them."""

import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.pool import initial_play, play_rules

Floats = NDArray[np.float64]
MACHINES = {"KTH-SP2": 100, "SDSC-SP2": 128}


class Reference(NamedTuple):
    """A log as pyss played it, in order of submission, and the waits that came of it, [N]."""

    trace: Trace
    processors: int
    waits: Floats


@cache
def rows(path: Path) -> Floats:
    """The 18 columns of a log."""
    with gzip.open(path, "rt") as lines:
        return np.array([line.split() for line in lines if line.strip() and not line.startswith(";")], np.float64)


def lublin(shared_data: Path, first: int, count: int = 1024) -> Trace:
    """Jobs of the log that RLScheduler calls Lublin-1; it has no estimates."""
    table = rows(shared_data / "swf" / "lublin_256.swf.gz")[first : first + count]
    return _trace(table, np.full(count, np.nan))


def pyss(shared_data: Path, name: str) -> Reference:
    """A log, and the EASY schedule that pyss made of it."""
    table = rows(shared_data / "swf" / "pyss-schedules" / f"{name}.EASY.swf.gz")
    table = table[np.lexsort((table[:, 0], table[:, 1]))]
    return Reference(_trace(table, table[:, 8].copy()), MACHINES[name], table[:, 2])


def _trace(table: Floats, estimate: Floats) -> Trace:
    processors = table[:, 4].astype(np.int64)
    return independent_jobs(table[:, 1].copy(), table[:, 3].copy(), estimate, processors, np.full(len(table), -1))


def begun(trace: Trace, processors: int, mechanism: int, rule: int, fill: int, *, exact: bool = False) -> Floats:
    """When each job starts, [N]."""
    play = initial_play(trace, processors, planned=trace.runtime if exact else None)
    play_rules(play, mechanism, rule, fill)
    return play.start


def slowdown(trace: Trace, start: Floats) -> float:
    """Mean bounded slowdown."""
    wait = start - trace.submit
    return float(np.maximum(1, (wait + trace.runtime) / np.maximum(trace.runtime, 10)).mean())
