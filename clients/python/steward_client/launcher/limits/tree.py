"""Processes and their descendants, as ``/proc`` has them. Linux only; a process that has ended is nothing special."""

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
    """Whether there is such a process; one that has ended and was not waited for counts."""
    return (PROC / str(pid)).exists()


def threads(pid: int) -> list[int]:
    """Ids of a process's threads."""
    try:
        return [int(name) for name in os.listdir(PROC / str(pid) / "task")]  # noqa: PTH208 - names alone are wanted
    except ENDED:
        return []


def descendants(root: int) -> list[int]:
    """All processes that ``root`` has started, and those that they have, the oldest of a line first."""
    found: list[int] = []
    ahead = [root]
    while ahead:
        parent = ahead.pop()
        children = [child for thread in threads(parent) for child in _children(parent, thread)]
        found += children
        ahead += children
    return found


def _children(pid: int, thread: int) -> Iterator[int]:
    with suppress(*ENDED):
        yield from map(int, (PROC / str(pid) / "task" / str(thread) / "children").read_bytes().split())


def cpu_seconds(pid: int) -> float:
    """CPU time of a process's threads so far, in seconds.

    Raises:
        ProcessLookupError: it has ended.
    """
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    return (int(fields[11]) + int(fields[12])) / TICKS


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def pin(pids: Iterable[int], cpus: Iterable[int]) -> None:
    """Let all threads of these processes run on those cores alone."""
    chosen = set(cpus)
    for pid in pids:
        for thread in threads(pid):
            with suppress(*ENDED):
                os.sched_setaffinity(thread, chosen)


def session(leader: int) -> list[int]:
    """All processes of a session."""
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(*ENDED, PermissionError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found
