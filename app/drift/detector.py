"""The sequential test for drift, and its metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import exp, log
from typing import Any, Literal, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app.charts.text import number
from app.drift.realised import Block, counted
from app.kinds.contract.engine import FACTORS, Residual, Residuals
from app.kinds.contract.inputs import timestamp

REPORTS = 1_000_000
"""Between two false alarms of one run, on average and at least."""
LARGEST = 4.0
_LARGEST_LOG = log(LARGEST)
MOST_NOTICES = 50
CALM = 2.0
"""Statistic up to which a drift hasn't begun."""


class Stream(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What is kept of a stream between two reports.

    Attributes:
        statistics: by factor, in the order of ``FACTORS``.
        since: the iteration at which a drift would have begun.
        measured, expected: sums over the reports since then.
        noticed: whether it has been.
    """

    statistics: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    since: int = 0
    measured: float = 0.0
    expected: float = 0.0
    noticed: bool = False


class Notice(msgspec.Struct, frozen=True):
    """A drift that was noticed.

    Attributes:
        stream: what has drifted.
        direction: of it.
        factor: what was measured since it began over what the model expects.
        iteration: of the report.
        since: the iteration at which it began, about.
        at: time of the report, RFC 3339.
        statistic: of the test, which has reached ``threshold``.
        model: version of the domain model that was left.
        text: the same for people.
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
    """What is kept of a run's streams, all under one version of the domain model, its notices, oldest first, and what
    was reached by who answered.
    """

    model: int | None = None
    streams: dict[str, Stream] = {}
    notices: tuple[Notice, ...] = ()
    blocks: tuple[Block, ...] = ()


NOTHING = Drift()
_FRESH = Stream()


class Report(NamedTuple):
    """Of which report residuals are, under which domain model, and which agent answered before it."""

    iteration: int
    model: int | None
    now: datetime
    agent: int | None = None


def observed(kept: Drift, residuals: Residuals, report: Report, reports: float = REPORTS) -> Drift:
    """What is kept after a report; its own notices are those that ``kept`` has not.

    Args:
        reports: between two false alarms.
    """
    if kept.model != report.model:
        kept = Drift(report.model, {}, kept.notices, kept.blocks)
    reached, blocks = residuals.reached, kept.blocks
    if reached is not None:
        blocks = counted(blocks, report.agent, reached, report.iteration)
    if not residuals.found:
        return kept if blocks is kept.blocks else Drift(kept.model, kept.streams, kept.notices, blocks)
    streams, threshold, notices = dict(kept.streams), reports * residuals.streams, list[Notice]()
    for residual in residuals.found:
        before = streams.get(residual.stream, _FRESH)
        if before.noticed:
            continue
        after, statistic = _advanced(before, residual, report.iteration)
        if statistic >= threshold:
            notices.append(_notice(after, residual, report, statistic, threshold))
            after = msgspec.structs.replace(after, noticed=True)
        streams[residual.stream] = after
    told = (*kept.notices, *notices)[-MOST_NOTICES:] if notices else kept.notices
    return Drift(report.model, streams, told, blocks)


def _advanced(before: Stream, residual: Residual, iteration: int) -> tuple[Stream, float]:
    """A stream after a residual, and the mean of its statistics; every report of every run asks for it."""
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


def _notice(stream: Stream, residual: Residual, report: Report, statistic: float, threshold: float) -> Notice:
    strongest = max(range(len(FACTORS)), key=lambda i: stream.statistics[i])
    factor = stream.measured / stream.expected
    return Notice(
        stream=residual.stream,
        direction="up" if FACTORS[strongest] > 1 else "down",
        factor=factor,
        iteration=report.iteration,
        since=stream.since,
        at=timestamp(report.now),
        statistic=statistic,
        threshold=threshold,
        model=report.model,
        text=f"{residual.stream}: {number(factor)} times what domain model {report.model} expects, "
        f"since about iteration {stream.since}",
    )


def new_notices(before: Drift, after: Drift) -> Sequence[Notice]:
    """Those that ``after`` has and ``before`` has not."""
    if after.notices is before.notices:
        return ()
    known = set(before.notices)
    return [notice for notice in after.notices if notice not in known]


def restored(stored: dict[str, Any] | None) -> Drift:
    """What a run's row keeps."""
    return NOTHING if stored is None else msgspec.convert(stored, Drift)


def encoded(kept: Drift) -> bytes:
    """As a run's row keeps it, JSON."""
    return b"null" if kept is NOTHING else msgspec.json.encode(kept)


# How many drifts were noticed in this process: plain numbers, which the registry asks for when it is read.


LABELS = ("workload", "stream", "direction")


class DriftMeter:
    """Counts notices of each tenant by workload, stream and direction; on one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def count(self, tenant: str, workload: str, notice: Notice) -> None:
        """Count one notice, which is on disk."""
        self._counts[tenant, workload, notice.stream, notice.direction] += 1

    def of(self, tenant: str) -> CollectorRegistry:
        """What was counted so far of a tenant's workloads: their names are nobody else's business."""
        drifts = CounterMetricFamily("steward_drifts", "Drifts noticed.", labels=LABELS)
        for (whose, *labels), count in list(self._counts.items()):
            if whose == tenant:
                drifts.add_metric(labels, count)
        registry = CollectorRegistry()
        registry.register(_Counted(drifts))
        return registry


class _Counted(Collector):
    """A metric as it was counted."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        """The one metric that this collector was made with."""
        return [self._metric]
