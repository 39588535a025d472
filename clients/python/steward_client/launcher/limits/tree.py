"""Processes and their descendants, read from ``/proc`` (Linux only); processes that have ended are skipped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
ENDED = (ProcessLookupError, FileNotFoundError)


def alive(pid: int) -> bool:
    """Whether a process with this id exists, including a zombie."""
    return (PROC / str(pid)).exists()


def threads(pid: int) -> list[int]:
    """Ids of a process's threads; empty if it has ended."""
    try:
        return [int(name) for name in os.listdir(PROC / str(pid) / "task")]  # noqa: PTH208 - names alone are wanted
    except ENDED:
        return []


def descendants(root: int) -> list[int]:
    """Ids of all descendants of process ``root``, parents before their children; empty if it has ended."""
    counts: list[int] = []
    ahead = [root]
    while ahead:
        parent = ahead.pop()
        children = [child for thread in threads(parent) for child in _children(parent, thread)]
        counts += children
        ahead += children
    return counts


def _children(pid: int, thread: int) -> Iterator[int]:
    with suppress(*ENDED):
        yield from map(int, (PROC / str(pid) / "task" / str(thread) / "children").read_bytes().split())


def cpu_seconds(pid: int) -> float:
    """User and system CPU time that a process has used, in seconds.

    Raises:
        ProcessLookupError: it has ended.
    """
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    return (int(fields[11]) + int(fields[12])) / TICKS


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists; raises PermissionError for another user's."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def pin(pids: Iterable[int], cpus: Iterable[int]) -> None:
    """Restrict all threads of these processes to the cores ``cpus``; raises OSError if none of these is available."""
    chosen = set(cpus)
    for pid in pids:
        for thread in threads(pid):
            with suppress(*ENDED):
                os.sched_setaffinity(thread, chosen)


def session(leader: int) -> list[int]:
    """Ids of all processes in the session of process ``leader``; empty if there are none."""
    session = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(*ENDED, PermissionError):
                if os.getsid(int(entry.name)) == leader:
                    session.append(int(entry.name))
    return session
