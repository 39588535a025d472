"""Profile by short jobs: the command is started once for each allocation, side by side, and ended once it is measured.

They are jobs of their own, as the tasks of a scheduler's array all have one size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from itertools import repeat

from steward_client.launcher.actuators.contract import ActuatorError
from steward_client.launcher.watched import Watched

from .beside import beside
from .profile import LENGTH, Profile, Segment

Allocation = Mapping[str, float]


def measure_apart(
    commands: Sequence[tuple[Watched, Allocation]], length: int = LENGTH
) -> Iterator[tuple[Watched, Segment | str]]:
    """Start each command with its allocation, all at once; yield each in order with what was measured, or why nothing.

    Args:
        commands: the commands, not started yet, with their allocations.
        length: iterations to measure of each, from its first whose start is known; then it is ended.
    """
    jobs: list[Future[Segment | str]] = [beside(partial(_measure, *one, length)) for one in commands]
    try:
        for (watched, _), job in zip(commands, jobs, strict=True):
            yield watched, job.result()
    finally:  # all of them have ended, unless this was interrupted
        for (watched, _), job in zip(commands, jobs, strict=True):
            if not job.done():
                with suppress(ActuatorError):
                    watched.actuator.stop()
        for job in jobs:
            with suppress(Exception):
                job.result()


def _measure(watched: Watched, allocation: Allocation, length: int) -> Segment | str:
    found = list[Segment]()

    def keep(whole: Segment) -> bool:
        found.append(whole)
        return False  # one is enough

    with closing(watched.actuator):
        try:
            Profile(watched, repeat(allocation), keep, length).measure()
        except ActuatorError as error:
            return str(error)
    return found[0] if found else watched.failure if watched.status else "no iteration of it was recognised"
