"""Realised outcomes: means over blocks of reports, by the agent that decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import NamedTuple

import msgspec

from app.agents.evidence import standard_errors
from app.agents.schemas import GainInterval
from app.kinds.contract.engine import Performance

BLOCK = 50
"""Reports per block, so many that successive blocks are nearly independent."""
MOST_BLOCKS = 24


class Block(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Sums of an outcome over successive reports of a run while one agent decided.

    ``agent``: its version, None: a heuristic. ``first``: first iteration.
    ``total`` and ``number`` are sums of the outcome and of its number of summands; the mean is their ratio.
    """

    agent: int | None
    outcome: str
    reports: int
    total: float
    number: float
    first: int


def count_report(
    blocks: tuple[Block, ...], agent: int | None, reached: Performance, iteration: int
) -> tuple[Block, ...]:
    """A run's blocks, oldest first, after one more report of ``iteration``; at most 24 are kept.

    ``reached``: the report's outcome. ``agent``: version of the deciding agent, None: a heuristic.
    """
    last = blocks[-1] if blocks else None
    if last is None or (last.agent, last.outcome) != (agent, reached.outcome) or last.reports == BLOCK:
        fresh = Block(agent, reached.outcome, 1, reached.total, reached.number, iteration)
        return (*blocks[-MOST_BLOCKS + 1 :], fresh)
    more = last.total + reached.total, last.number + reached.number
    return (*blocks[:-1], Block(agent, reached.outcome, last.reports + 1, *more, last.first))


def means(blocks: Iterable[Block], agent: int | None, since: int = 0) -> list[float]:
    """Mean outcome of each full block of an agent in a run, of those that begin at iteration ``since`` or later.

    Its first block is left out, which still depends on decisions of its predecessor.
    """
    own = [block for block in blocks if block.agent == agent]
    whole = [block for block in own[1:] if block.reports == BLOCK and block.number > 0]
    return [block.total / block.number for block in whole if block.first >= since]


class Comparison(NamedTuple):
    """Means of two sets of blocks, in the outcome's unit, and their difference with its 95 % confidence interval."""

    before: float
    after: float
    difference: GainInterval


def compare_blocks(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare two sets of block means by Welch's interval, with the degrees of freedom of the smaller set.

    Raises:
        StatisticsError: a set has fewer than two blocks.
    """
    error = sqrt(variance(before) / len(before) + variance(after) / len(after))
    half = standard_errors(min(len(before), len(after)) - 1) * error
    difference = fmean(after) - fmean(before)
    gain = GainInterval(mean=difference, low=difference - half, high=difference + half)
    return Comparison(fmean(before), fmean(after), gain)
