"""Drift streams: each user's requests per second, and each variant's seconds per batch.

Requests are counted over a control interval, or ``LONG`` of them if the load wanders, so that a burst of minutes is one
or two counts. Seconds are compared with the model, within the disagreement of its members; both have a further
tolerance of ``TOLERATED``, below which no agent would be retrained."""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from app.kinds.contract.engine import Performance, Residual, Residuals, count_residual, ratio_residual
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import VARIATION, ServiceModel, usual_rate
from app.kinds.inference.report import InferenceReport, Ledger

TOLERATED = 1.1
WANDERING, USUAL, LONG = 0.02, 0.5, 30  # the last two give no notice on ordinary days, by three days of a public load
REACHED = "response_quality"
SECONDS_OF, ARRIVALS_OF = "seconds.", "arrivals."
LEAST_SPREAD = 0.05  # of the log of a batch's seconds: clocks and networks add noise
_NOTHING = (0.0, 0, 0.0, 0.0)
LARGEST_LOG = 3.0  # clips ratios at twenty, so that one batch isn't decisive


class Watch:
    """Source of evidence of drift for a workload: compares reports with the domain model.

    ``streams`` is the number of streams, one per user's request rate and one per variant's seconds."""

    def __init__(self, layout: Layout, model: ServiceModel) -> None:
        self._layout, self._model = layout, model
        centre = model.log_seconds.mean(axis=0)
        off = np.abs(model.log_seconds - centre).max(axis=0) + log(TOLERATED)
        above = np.log(model.seconds()) - centre  # the mean's log over the median's
        self._of_batch = np.stack([centre, above, off], axis=-1).tolist()
        self._spread = np.maximum(model.spread, LEAST_SPREAD).tolist()
        self._sizes = layout.spec.batches
        self._names = [f"{SECONDS_OF}{variant}" for variant in layout.variants]
        self._load_names = [f"{ARRIVALS_OF}{user}" for user in layout.users]
        self._loads = [_load(model, user) for user in range(len(layout.users))]
        intervals = LONG if any(load.wanders for load in self._loads) else 1
        self._window = intervals * layout.spec.control_seconds
        self.streams = len(self._names) + len(self._load_names)

    def residuals(self, ledger: Ledger, report: InferenceReport) -> Residuals:
        """Return the evidence of drift from a report that is already applied to ``ledger``.

        Arrivals are evidence once counted over a whole window; ``ledger`` then begins a new count."""
        seconds = self._seconds(ledger, report) if ledger.ended else []
        if ledger.now - ledger.counted_from >= self._window:
            seconds += self._arrivals(ledger)
        return Residuals(self.streams, seconds, Performance(REACHED, ledger.worth, ledger.judged))

    def _seconds(self, ledger: Ledger, report: InferenceReport) -> list[Residual]:
        sums = dict[int, tuple[float, int, float, float]]()
        for (place, batch), batch_end in zip(ledger.ended, report.finished, strict=True):
            own = batch_end.variant is None or batch_end.variant == self._layout.variants[batch.variant]
            if not own or batch.until <= batch.started or batch_end.at <= batch.started:
                continue
            of_variant = self._of_batch[ledger.fleet.of[place]][batch.variant]
            centre, above, off = of_variant[bisect_left(self._sizes, len(batch.at))]
            if batch_end.seconds is None:
                one = log((batch_end.at - batch.started) / (batch.until - batch.started)) + above
            else:
                one = log(batch_end.seconds) - centre
            one = min(max(one, -LARGEST_LOG), LARGEST_LOG)
            logs, number, ratio, tolerated = sums.get(batch.variant, _NOTHING)
            sums[batch.variant] = logs + one, number + 1, ratio + exp(one), tolerated + off
        return [
            ratio_residual(self._names[variant], logs, number, self._spread[variant], off / number, ratio)
            for variant, (logs, number, ratio, off) in sums.items()
        ]

    def _arrivals(self, ledger: Ledger) -> list[Residual]:
        since, counts = ledger.take_counts()
        if ledger.midnight is None:
            return []
        seconds, arrivals = ledger.now - since, []
        intervals = max(seconds // self._layout.spec.control_seconds, 1.0)
        at = ledger.midnight + (since + ledger.now) / 2
        for user, count in enumerate(counts):
            expected = float(usual_rate(self._model.rate[user], at)) * seconds
            if expected > 0:
                load = self._loads[user]
                variation = max(load.variation / intervals, load.brief) if load.wanders else load.variation
                arrivals.append(count_residual(self._load_names[user], count, expected, variation, load.tolerated))
        return arrivals


class Load(NamedTuple):
    """Variability of a user's request rate.

    Attributes:
        variation: squared coefficient of variation of the rate between control intervals.
        brief: part of ``variation`` that a forecast from the interval before can't explain.
        tolerated: factor by which the mean may be off without drift: ``TOLERATED`` · exp(``USUAL`` · √(``variation`` −
            ``brief``)), with two constants of this module.
    """

    variation: float
    brief: float
    tolerated: float

    @property
    def wanders(self) -> bool:
        """Whether the rate stays above or below its profile for long without drift."""
        return self.variation - self.brief > WANDERING


def _load(model: ServiceModel, user: int) -> Load:
    variation = float(model.variation[user])
    brief = min(float(model.forecast[user, 0, VARIATION]), variation) if len(model.forecast) else variation
    return Load(variation, brief, TOLERATED * exp(USUAL * sqrt(variation - brief)))
