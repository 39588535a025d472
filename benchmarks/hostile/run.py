"""Sends mutated files, and counts what becomes of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import psutil

from benchmarks.hostile.formats import FAILED, Format
from benchmarks.hostile.mutations import BOMB_BYTES, mutated

SHOWN = 5


@dataclass
class Found:
    """What became of one format's files.

    Attributes:
        outcomes: how often each.
        failures: way, place in the order, and what was told, of the first that failed.
        slowest: milliseconds per kB, and the way and place of what took them.
        grown: bytes that the process has more than before.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, int, str]] = field(default_factory=list)
    slowest: tuple[float, str, int] = (0.0, "", 0)
    grown: int = 0


def cases(form: Format, number: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Mutations of a format's files: the first ones are of each file in turn."""
    rng = Random(f"{form.name} {seed}")
    for case in range(number):
        yield mutated(form.seeds[case % len(form.seeds)], rng, form.ways)


def tried(form: Format, number: int, seed: int = 0) -> Found:
    """Send so many mutations."""
    found, process = Found(), psutil.Process()
    before = process.memory_info().rss
    for place, (way, content) in enumerate(cases(form, number, seed)):
        began = time.process_time()
        outcome, told = form.take(content)
        spent = 1000 * (time.process_time() - began)
        size = BOMB_BYTES if way == "bomb" else len(content)
        found.slowest = max(found.slowest, (spent / max(size / 1000, 1.0), way, place))
        found.outcomes[outcome] += 1
        if outcome == FAILED and len(found.failures) < SHOWN:
            found.failures.append((way, place, told))
    found.grown = process.memory_info().rss - before
    return found
