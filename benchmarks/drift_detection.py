"""How often drifts are noticed that there are not, and how soon those that there are.

``python -m benchmarks.drift_detection`` — streams as kind ``inference`` makes them: seconds of four batches a report
(spread 10 %), the same with pauses that the model knows nothing of (one report in a hundred takes five times as long),
and requests of a control interval (100 expected, Poisson, or with a rate that varies by 22 %).

False alarms are counted while the model holds, and while all is off by what is tolerated, a factor of 1.1. Delays are
reports from a shift, after ``BEFORE`` reports without one, to its notice; who hasn't noticed it after ``LONGEST``
counts as that. The peer is a z test of the mean of the last ``WINDOW`` reports against the model and what it tolerates:
a test of two windows, one of which is the model's. Its threshold is the one that, on seeds of its own, is met as often
as the statement allows at the bound of what is tolerated. Steward's is calibrated by nothing: its rate is guaranteed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from math import log, sqrt
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from app.drift.detector import NOTHING, Report, observe_residuals
from app.kinds.contract.engine import Residual, Residuals, count_residual, ratio_residual

Row = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEDS, CALM, LONGEST, WINDOW, BEFORE = 200, 1_000, 400, 10, 50
STATED = 10_000  # reports between two false alarms that both tests are set to
SPREAD, BATCHES, EXPECTED, TOLERATED = 0.1, 4, 100.0, 1.1
SHIFTS = (1.25, 1.5, 2.0)
PAUSE = 5.0


class Stream(NamedTuple):
    """What is drawn, and the variance of its relative error in one report as the model has it.

    Attributes:
        draw: a report's residual, given the factor by which the world is off.
        variance: of measured over expected.
    """

    name: str
    draw: Callable[[np.random.Generator, float], Residual]
    variance: float


def seconds(rng: np.random.Generator, factor: float) -> Residual:
    """Of four batches."""
    logs = rng.normal(log(factor), SPREAD, BATCHES)
    return ratio_residual("x", float(logs.sum()), BATCHES, SPREAD, log(TOLERATED), float(np.exp(logs).sum()))


def hiccups(rng: np.random.Generator, factor: float) -> Residual:
    """Of four batches, which a pause makes five times as long in one report of a hundred."""
    return seconds(rng, factor * (PAUSE if rng.random() < 0.01 else 1.0))


def load(variation: float) -> Callable[[np.random.Generator, float], Residual]:
    """Of one control interval."""

    def draw(rng: np.random.Generator, factor: float) -> Residual:
        rate = factor * EXPECTED * (rng.gamma(1 / variation, variation) if variation else 1.0)
        return count_residual("x", float(rng.poisson(rate)), EXPECTED, variation, TOLERATED)

    return draw


STREAMS = (
    Stream("seconds", seconds, SPREAD**2 / BATCHES),
    Stream("seconds, pauses", hiccups, SPREAD**2 / BATCHES),
    Stream("load, Poisson", load(0.0), 1 / EXPECTED),
    Stream("load, varying", load(0.05), 1 / EXPECTED + 0.05),
)


def ours(residuals: Iterator[Residual], most: int) -> int | None:
    """The report at which a drift is noticed."""
    selection = NOTHING
    for number in range(most):
        selection = observe_residuals(selection, Residuals(1, [next(residuals)]), Report(number, 1, NOW), STATED)
        if selection.notices:
            return number
    return None


def scores(residuals: Iterator[Residual], variance: float, most: int) -> Iterator[float]:
    """The peer's statistic after each report: standard errors of the window's mean beyond what is tolerated."""
    window: deque[float] = deque(maxlen=WINDOW)
    for _ in range(most):
        one = next(residuals)
        window.append(one.measured / one.expected)
        mean, error = fmean(window), sqrt(variance / WINDOW)
        full = len(window) == WINDOW
        yield max((mean - TOLERATED) / (error * TOLERATED), (1 / TOLERATED - mean) / error) if full else -np.inf


def threshold(stream: Stream) -> float:
    """The peer's, met once in ``STATED`` reports at the bound of what is tolerated, on seeds of its own."""
    highest = [max(scores(drawn(stream, 10_000 + seed, TOLERATED), stream.variance, CALM)) for seed in range(SEEDS)]
    return float(np.quantile(highest, 1 - CALM / STATED))


def drawn(stream: Stream, seed: int, factor: float, before: int = 0) -> Iterator[Residual]:
    """Reports of one seed, the first of which are as the model has it."""
    rng = np.random.default_rng(seed)
    for number in count():
        yield stream.draw(rng, factor if number >= before else 1.0)


def theirs(stream: Stream, limit: float, residuals: Iterator[Residual], most: int) -> int | None:
    """The report at which the peer notices a drift."""
    result = scores(residuals, stream.variance, most)
    return next((number for number, score in enumerate(result) if score >= limit), None)


def results() -> list[Row]:
    """Rows for all streams."""
    return [row for stream in STREAMS for row in _of(stream)]


def _of(stream: Stream) -> list[Row]:
    limit, rows = threshold(stream._replace(draw=seconds) if stream.draw is hiccups else stream), list[Row]()
    for factor in (1.0, TOLERATED):
        own = sum(ours(drawn(stream, seed, factor), CALM) is not None for seed in range(SEEDS))
        peer = sum(theirs(stream, limit, drawn(stream, seed, factor), CALM) is not None for seed in range(SEEDS))
        allowed, per = 1_000 / STATED, 1_000 / (SEEDS * CALM)
        goal = f"≤ {allowed:g} on average"
        rows.append(
            _row(f"{stream.name}: false alarms, all × {factor:g}", own * per, "per 1,000 reports", peer * per, goal)
        )
    for factor in SHIFTS:
        for each in (factor, 1 / factor):
            most = BEFORE + LONGEST
            own_delays = [ours(drawn(stream, seed, each, BEFORE), most) for seed in range(SEEDS)]
            peers = [theirs(stream, limit, drawn(stream, seed, each, BEFORE), most) for seed in range(SEEDS)]
            name = f"{stream.name}: delay, × {each:.2g} (noticed {_share(own_delays):.0%}, peer {_share(peers):.0%})"
            rows.append(_row(name, _middle(own_delays), "reports, median", _middle(peers), None))
    return rows


def _share(delays: list[int | None]) -> float:
    return sum(one is not None for one in delays) / len(delays)


def _middle(delays: list[int | None]) -> float:
    """In reports, from the first that was off; those that never noticed count as the longest."""
    return float(median(LONGEST if one is None else one + 1 - BEFORE for one in delays))


def _row(name: str, value: float, unit: str, peer: float, goal: str | None) -> Row:
    ratio = value / peer if peer else None
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": "z test",
        "peer_value": peer,
        "ratio": ratio,
        "goal": goal,
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("drift_detection", results())
