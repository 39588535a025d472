"""Streams that may drift: each user's requests per second, and the seconds of each variant's batches.

Requests are counted over control intervals. Seconds are compared with the belief, which tolerates what its own models
differ by; both tolerate ``TOLERATED`` beside that, for what no agent would be trained anew.
"""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log, sqrt

import numpy as np

from app.kinds.contract.drift import Reached, Residual, Residuals, counted, measured
from app.kinds.inference.forecast import VARIATION, usual_rate
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.queue.ledger import Ledger
from app.kinds.inference.queue.report import EncodedReport

TOLERATED = 1.1
REACHED = "response_quality"
SECONDS_OF, ARRIVALS_OF = "seconds.", "arrivals."
LEAST_SPREAD = 0.05  # of the log of a batch's seconds: clocks and networks have a say in what is measured
LARGEST_LOG = 3.0  # a batch that took twenty times as long tells no more than that


class Watch:
    """What a domain model says of a workload's streams; ``streams`` is how many there are."""

    def __init__(self, layout: Layout, model: ServiceModel) -> None:
        self._layout, self._model = layout, model
        centre = model.log_seconds.mean(axis=0)
        off = np.abs(model.log_seconds - centre).max(axis=0) + log(TOLERATED)
        above = np.log(model.seconds()) - centre  # the mean's log over the median's
        self._of_batch = np.stack([centre, above, off], axis=-1).tolist()
        self._spread = np.maximum(model.spread, LEAST_SPREAD).tolist()
        self._sizes = layout.spec.batches
        self._names = [f"{SECONDS_OF}{variant}" for variant in layout.variants]
        self._load = [f"{ARRIVALS_OF}{user}" for user in layout.users]
        self._wander = [_wander(model, user) for user in range(len(layout.users))]
        self.streams = len(self._names) + len(self._load)

    def residuals(self, ledger: Ledger, report: EncodedReport) -> Residuals:
        """What a report says, which the book has taken; a control interval that is over begins anew."""
        found = self._seconds(ledger, report) if ledger.ended else []
        if ledger.now - ledger.counted_from >= self._layout.spec.control_seconds:
            found += self._arrivals(ledger)
        return Residuals(self.streams, found, Reached(REACHED, ledger.worth, ledger.judged))

    def _seconds(self, ledger: Ledger, report: EncodedReport) -> list[Residual]:
        sums = dict[int, list[float]]()
        for (place, batch), told in zip(ledger.ended, report.finished, strict=True):
            own = told.variant is None or told.variant == self._layout.variants[batch.variant]
            if not own or batch.until <= batch.started or told.at <= batch.started:
                continue
            of_variant = self._of_batch[ledger.fleet.of[place]][batch.variant]
            centre, above, off = of_variant[bisect_left(self._sizes, len(batch.at))]
            if told.seconds is None:
                one = log((told.at - batch.started) / (batch.until - batch.started)) + above
            else:
                one = log(told.seconds) - centre
            one = min(max(one, -LARGEST_LOG), LARGEST_LOG)
            total = sums.setdefault(batch.variant, [0.0, 0.0, 0.0, 0.0])
            for i, value in enumerate((one, 1.0, exp(one), off)):
                total[i] += value
        return [
            measured(self._names[variant], logs, int(number), self._spread[variant], off / number, ratio)
            for variant, (logs, number, ratio, off) in sums.items()
        ]

    def _arrivals(self, ledger: Ledger) -> list[Residual]:
        since, counts = ledger.counted()
        if ledger.midnight is None:
            return []
        seconds, found = ledger.now - since, []
        at = ledger.midnight + (since + ledger.now) / 2
        for user, count in enumerate(counts):
            expected = float(usual_rate(self._model.rate[user], at)) * seconds
            if expected > 0:
                variation, tolerated = self._wander[user]
                found.append(counted(self._load[user], count, expected, variation, tolerated))
        return found


def _wander(model: ServiceModel, user: int) -> tuple[float, float]:
    """Of a user's rate: its variation from one control interval to the next, and the factor that is tolerated.

    What a forecast from the interval before explains of the variation is slow: a load that wanders has not drifted
    while it is within a standard deviation of that.
    """
    variation = float(model.variation[user])
    near = float(model.forecast[user, 0, VARIATION]) if len(model.forecast) else variation
    return variation, TOLERATED * exp(sqrt(max(variation - near, 0.0)))
