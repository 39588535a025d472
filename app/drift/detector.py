"""Sequential test for drift, with a bounded rate of false alarms, and its metric."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import exp, log
from typing import Any, Literal, NamedTuple

import msgspec

from app.charts.text import number
from app.drift.realised import Block, count_report
from app.kinds.contract.engine import FACTORS, Residual, Residuals
from app.kinds.contract.inputs import timestamp

REPORTS = 1_000_000
"""Lower bound on the mean number of reports between two false alarms of one run."""
LARGEST = 4.0
_LARGEST_LOG = log(LARGEST)
MOST_NOTICES = 50
CALM = 2.0
"""Value of the statistic up to which no drift has begun."""


class Stream(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """State of the test of one stream of residuals.

    Attributes:
        statistics: test statistic of each tested ratio of measured over expected values (``FACTORS``).
        since: iteration at which a present drift would have begun.
        measured, expected: sums over the reports since then, in the stream's unit.
        noticed: whether a notice was given.
    """

    statistics: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    since: int = 0
    measured: float = 0.0
    expected: float = 0.0
    noticed: bool = False


class Notice(msgspec.Struct, frozen=True):
    """A detected drift.

    Attributes:
        stream: name of the drifted quantity.
        direction: whether measurements are above (up) or below (down) the predictions.
        factor: ratio of measured to expected values since the drift began.
        iteration: iteration of the report that detected it.
        since: estimated iteration at which it began.
        at: time of the report, RFC 3339.
        statistic: value of the test statistic, at least ``threshold``.
        model: version of the domain model that the measurements contradict; None: none.
        text: description for people.
    """

    stream: str
    direction: Literal["up", "down"]
    factor: float
    iteration: int
    since: int
    at: str
    statistic: float
    threshold: float
    model: int | None
    text: str


class Drift(msgspec.Struct, frozen=True):
    """State of a run's drift test: version of the domain model, ``streams`` by name, ``notices`` (oldest first) and
    ``blocks``, sums of the reports' outcomes."""

    model: int | None = None
    streams: dict[str, Stream] = {}
    notices: tuple[Notice, ...] = ()
    blocks: tuple[Block, ...] = ()


NOTHING = Drift()
_FRESH = Stream()


class Report(NamedTuple):
    """Context of some residuals: iteration, domain model's version (None: none), time, and deciding agent's version."""

    iteration: int
    model: int | None
    now: datetime
    agent: int | None = None


def observe_residuals(drift: Drift, residuals: Residuals, report: Report, reports: float = REPORTS) -> Drift:
    """State of the test after a report; new notices are those that ``drift`` lacks.

    Args:
        drift: state before the report.
        residuals: deviations of measurements from the model's predictions, by stream.
        report: the report's context.
        reports: mean number of reports between two false alarms.
    """
    if drift.model != report.model:
        drift = Drift(report.model, {}, drift.notices, drift.blocks)
    reached, blocks = residuals.reached, drift.blocks
    if reached is not None:
        blocks = count_report(blocks, report.agent, reached, report.iteration)
    if not residuals.by_stream:
        return drift if blocks is drift.blocks else Drift(drift.model, drift.streams, drift.notices, blocks)
    streams, threshold, notices = dict(drift.streams), reports * residuals.streams, list[Notice]()
    for residual in residuals.by_stream:
        before = streams.get(residual.stream, _FRESH)
        if before.noticed:
            continue
        after, statistic = _advance_stream(before, residual, report.iteration)
        if statistic >= threshold:
            strongest = max(range(len(FACTORS)), key=lambda i: after.statistics[i])
            factor = after.measured / after.expected
            notices.append(
                Notice(
                    stream=residual.stream,
                    direction="up" if FACTORS[strongest] > 1 else "down",
                    factor=factor,
                    iteration=report.iteration,
                    since=after.since,
                    at=timestamp(report.now),
                    statistic=statistic,
                    threshold=threshold,
                    model=report.model,
                    text=f"{residual.stream}: {number(factor)} times what domain model {report.model} expects, "
                    f"since about iteration {after.since}",
                )
            )
            after = msgspec.structs.replace(after, noticed=True)
        streams[residual.stream] = after
    all_notices = (*drift.notices, *notices)[-MOST_NOTICES:] if notices else drift.notices
    return Drift(report.model, streams, all_notices, blocks)


def _advance_stream(before: Stream, residual: Residual, iteration: int) -> tuple[Stream, float]:
    """A stream after a residual, and the mean of its statistics; called for every report.

    Each statistic R becomes (R + 1) · min(e, 4); e is the residual's e-value (likelihood ratio) for a ratio of drift.
    """
    (a, b, c, d), (w, x, y, z) = before.statistics, residual.evidence
    a = (a + 1.0) * (exp(w) if w < _LARGEST_LOG else LARGEST)
    b = (b + 1.0) * (exp(x) if x < _LARGEST_LOG else LARGEST)
    c = (c + 1.0) * (exp(y) if y < _LARGEST_LOG else LARGEST)
    d = (d + 1.0) * (exp(z) if z < _LARGEST_LOG else LARGEST)
    statistic = (a + b + c + d) / 4.0
    if statistic <= CALM:
        return Stream((a, b, c, d), iteration, residual.measured, residual.expected), statistic
    sums = before.measured + residual.measured, before.expected + residual.expected
    return Stream((a, b, c, d), before.since, *sums), statistic


def new_notices(before: Drift, after: Drift) -> Sequence[Notice]:
    """Notices in ``after`` that ``before`` lacks."""
    if after.notices is before.notices:
        return ()
    known = set(before.notices)
    return [notice for notice in after.notices if notice not in known]


def restore_drift(stored: dict[str, Any] | None) -> Drift:
    """State of the test from a run's row, None: a new one; raises msgspec.ValidationError if the row is invalid."""
    return NOTHING if stored is None else msgspec.convert(stored, Drift)


def encode_drift(drift: Drift) -> bytes:
    """State of the test as JSON for a run's row; ``null`` for the state before the first report."""
    return b"null" if drift is NOTHING else msgspec.json.encode(drift)
