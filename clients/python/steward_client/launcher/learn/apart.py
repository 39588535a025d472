"""Profile by short jobs: the command is started once for each allocation, side by side, and ended once it is measured.

They are jobs of their own, as the tasks of a scheduler's array all have one size."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, as_completed, wait
from contextlib import closing
from functools import partial
from itertools import repeat
from threading import Event

from steward_client.launcher.actuators.contract import ActuatorError
from steward_client.launcher.interrupts import Stopped, defer_interrupts, ignore_signals
from steward_client.launcher.watched import Watched

from .beside import beside
from .profile import LENGTH, Profile, Segment

Allocation = Mapping[str, float]


def measure_apart(
    commands: Sequence[tuple[Watched, Allocation]], length: int = LENGTH
) -> Generator[tuple[Watched, Segment | str], None, None]:
    """Start each command with its allocation, all at once; yield each, as it ends, with what was measured, or why not.

    If the iterator is closed or interrupted, it first ends all commands. Main thread only.

    Args:
        commands: the commands, not started yet, with their allocations.
        length: iterations to measure of each, from its first whose start is known; then it is ended.
    """
    over = Event()
    jobs = dict[Future[Segment | str], Watched]()
    try:
        with defer_interrupts():
            for watched, allocation in commands:
                jobs[beside(partial(_measure, watched, allocation, length, over))] = watched
        for job in as_completed(jobs):
            yield jobs[job], job.result()
    finally:
        over.set()
        with ignore_signals():  # else a job that is just being submitted would run on
            wait(jobs)


def _measure(watched: Watched, allocation: Allocation, length: int, over: Event) -> Segment | str:
    segments = list[Segment]()

    def keep(whole: Segment) -> bool:
        segments.append(whole)
        return False  # one is enough

    def look() -> None:
        if over.is_set():
            raise Stopped("the measuring was ended")

    watched.between = look  # each is ended by its own thread: actuators aren't made for two
    with closing(watched.actuator):
        try:
            look()
            Profile(watched, repeat(allocation), keep, length).measure()
        except (ActuatorError, Stopped) as error:  # also a cap of one of them, which leaves the others alone
            return str(error)
    return segments[0] if segments else watched.failure if watched.status else "no iteration of it was recognised"
