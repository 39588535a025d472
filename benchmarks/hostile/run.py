"""Sends mutated files, and counts what becomes of them."""

from __future__ import annotations

import gc
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import psutil

from app.samples.body import returning
from benchmarks.hostile.formats import FAILED, Format
from benchmarks.hostile.mutations import BOMB_BYTES, mutated

SHOWN = 5


@dataclass
class Found:
    """What became of one format's files.

    Attributes:
        outcomes: how often each.
        failures: way, place in the order, and what was told, of the first that failed.
        slowest: milliseconds of processor time per kB, and the way and place of what took them.
        longest: seconds by the clock, of whichever file.
        grown: bytes that the process has more at the end than halfway.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, int, str]] = field(default_factory=list)
    slowest: tuple[float, str, int] = (0.0, "", 0)
    longest: float = 0.0
    grown: int = 0

    def send(self, form: Format, content: bytes, way: str, place: int) -> None:
        """See what becomes of a file. One that seems the slowest is sent again, and its lesser time counts."""
        began = time.monotonic()
        outcome, reported, spent = _timed(form, content)
        self.longest = max(self.longest, time.monotonic() - began)
        self.outcomes[outcome] += 1
        if outcome == FAILED and len(self.failures) < SHOWN:
            self.failures.append((way, place, reported))
        kilobytes = max((BOMB_BYTES if way == "bomb" else len(content)) / 1000, 1.0)
        if spent / kilobytes > self.slowest[0]:
            again = [_timed(form, content)[2] for _ in form.seeds]  # all, for reports take turns at what they meet
            spent = min(spent, *again)
            self.slowest = max(self.slowest, (spent / kilobytes, way, place))


def cases(form: Format, number: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Mutations of a format's files: the first ones are of each file in turn."""
    rng = Random(f"{form.name} {seed}")
    for case in range(number):
        yield mutated(form.seeds[case % len(form.seeds)], rng, form.ways)


def tried(form: Format, number: int, seed: int = 0) -> Found:
    """Send so many mutations, after sound files, which load what is loaded once."""
    result, halfway = Found(), 0
    for sound in form.seeds:
        form.take(sound)
    for place, (way, content) in enumerate(cases(form, number, seed)):
        if place == number // 2:
            halfway = _held()
        result.send(form, content, way, place)
    result.grown = _held() - halfway
    return result


def _timed(form: Format, content: bytes) -> tuple[str, str, float]:
    """What becomes of a file, and the milliseconds that processors spent on it, those of programs called included."""
    began = _spent()
    outcome, reported = form.take(content)
    return outcome, reported, 1000 * (_spent() - began)


def _spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _held() -> int:
    """Bytes that are this process's own, without what its allocator keeps for later."""
    returning(gc.collect)
    return int(psutil.Process().memory_full_info().uss)
