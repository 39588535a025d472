"""What a report says for and against a drift: how far what was measured is from what the domain model expects.

A kind tells it by streams, each a quantity that may drift by itself: a user's load, a variant's seconds. Of every
stream it gives e-values, one for each of ``FACTORS``: how much likelier what came is if the quantity is that factor
beyond what the model tolerates, than at the bound of it. Their expectation is at most 1 as long as the model holds, by
whatever it tolerates; what is made of them over time, ``app.drift.detector``, needs no more of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, log1p
from typing import NamedTuple

FACTORS = (1.2, 2.0, 1 / 1.2, 1 / 2.0)
"""By which quantities may have drifted beyond what is tolerated: up, and down."""
_LOGS = tuple(log(factor) for factor in FACTORS)
_LITTLE_UP, _MUCH_UP, _LITTLE_DOWN, _MUCH_DOWN = _LOGS
LEAST_VARIATION = 1e-9


Chain = Sequence[Mapping[str, float]]
"""Drifts, oldest first: of each the factors by stream, what is measured now over what was expected."""


class Residual(NamedTuple):
    """What a report says of one stream.

    Attributes:
        stream: its name, as users read it.
        evidence: natural logs of the e-values, in the order of ``FACTORS``.
        measured, expected: of which the drift's factor is the ratio, once both are summed over reports.
    """

    stream: str
    evidence: tuple[float, float, float, float]
    measured: float
    expected: float


class Reached(NamedTuple):
    """What a report says of how good the decisions before it were, as users count it.

    Attributes:
        outcome: name of what is counted, the more the better; of an outcome that agents' reports tell.
        total, number: the sum, and of how many, maybe none: their ratio over many reports is compared.
    """

    outcome: str
    total: float
    number: float


class Residuals(NamedTuple):
    """What a report says of streams.

    Attributes:
        streams: how many there are, be they spoken of here or not.
        found: of those that the report says something of.
        reached: None where the kind never says anything of that.
    """

    streams: int
    found: Sequence[Residual]
    reached: Reached | None = None


def counted(stream: str, count: float, expected: float, variation: float, tolerated: float) -> Residual:
    """Evidence of a count whose rate varies: negative binomial, Poisson where it does not.

    Args:
        expected: its mean under the model, above 0.
        variation: squared coefficient of variation of the rate.
        tolerated: factor by which the mean may be off, either way, at least 1.
    """
    spread = max(variation, LEAST_VARIATION)

    def of(factor: float, logs: float) -> float:
        bound = expected * (tolerated if factor > 1 else 1 / tolerated)
        wider = log1p((factor - 1) * bound * spread / (1 + bound * spread))
        return count * (logs - wider) - wider / spread

    little_up, much_up, little_down, much_down = map(of, FACTORS, _LOGS)
    return Residual(stream, (little_up, much_up, little_down, much_down), count, expected)


def measured(stream: str, logs: float, number: int, spread: float, tolerated: float, ratio: float) -> Residual:
    """Evidence of logarithms of what was measured over what was expected: normal.

    Args:
        logs: their sum.
        number: how many there are.
        spread: standard deviation of each, above 0.
        tolerated: natural log of the factor by which all may be off together, either way, at least 0.
        ratio: sum of what was measured over what was expected.
    """
    precision, up, down, half = 1 / (spread * spread), logs - number * tolerated, logs + number * tolerated, number / 2
    evidence = (
        precision * _LITTLE_UP * (up - half * _LITTLE_UP),
        precision * _MUCH_UP * (up - half * _MUCH_UP),
        precision * _LITTLE_DOWN * (down - half * _LITTLE_DOWN),
        precision * _MUCH_DOWN * (down - half * _MUCH_DOWN),
    )
    return Residual(stream, evidence, ratio, float(number))
