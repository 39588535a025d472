"""What agents reach while they answer: the mean of an outcome over blocks of reports, by who answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import NamedTuple

import msgspec

from app.agents.evidence import standard_errors
from app.agents.schemas import GainInterval
from app.kinds.contract.engine import Reached

BLOCK = 50
"""Reports of a block: so many that the next block hardly depends on it."""
MOST_BLOCKS = 24


class Block(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Reports of a run, from the iteration ``first`` on, while one agent answered.

    ``agent`` is its version, None for a heuristic; blocks of before ``first`` was stored have it as -1.
    """

    agent: int | None
    outcome: str
    reports: int
    total: float
    number: float
    first: int = -1


def counted(blocks: tuple[Block, ...], agent: int | None, reached: Reached, iteration: int) -> tuple[Block, ...]:
    """The blocks of a run, oldest first, with the report of an iteration; the oldest ones go."""
    last = blocks[-1] if blocks else None
    if last is None or (last.agent, last.outcome) != (agent, reached.outcome) or last.reports == BLOCK:
        fresh = Block(agent, reached.outcome, 1, reached.total, reached.number, iteration)
        return (*blocks[-MOST_BLOCKS + 1 :], fresh)
    more = last.total + reached.total, last.number + reached.number
    return (*blocks[:-1], Block(agent, reached.outcome, last.reports + 1, *more, last.first))


def means(blocks: Iterable[Block], agent: int | None, since: int = 0) -> list[float]:
    """Mean of each whole block of an agent in a run, from an iteration on, in which anything was counted.

    Without its first in the run, in which what its predecessor had decided was still being done.
    """
    own = [block for block in blocks if block.agent == agent]
    whole = [block for block in own[1:] if block.reports == BLOCK and block.number > 0]
    return [block.total / block.number for block in whole if block.first >= since]


class Comparison(NamedTuple):
    """Means of two sets of blocks, and the difference, after less before, with its 95 % interval."""

    before: float
    after: float
    difference: GainInterval


def compared(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Two blocks of each at least; Welch's interval, with the fewer blocks' degrees of freedom, which is the wider."""
    error = sqrt(variance(before) / len(before) + variance(after) / len(after))
    half = standard_errors(min(len(before), len(after)) - 1) * error
    difference = fmean(after) - fmean(before)
    told = GainInterval(mean=difference, low=difference - half, high=difference + half)
    return Comparison(fmean(before), fmean(after), told)
