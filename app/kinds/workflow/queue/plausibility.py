"""What looks wrong in a report that can be taken nevertheless: values that seem to be told in another unit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.check import LATEST_ORIGIN, LONG_MEDIAN, SHOWN
from app.kinds.workflow.queue.report import QueueReport
from app.kinds.workflow.queue.state import State

FEWEST = 5  # values that say something of a unit
DAY = 86_400.0


def implausible(state: State, report: QueueReport) -> list[FieldIssue]:
    """Warnings, each with the values that look so; ``state`` is that after the report."""
    found = []
    if report.now > LATEST_ORIGIN:
        found.append(
            FieldIssue("/now", "is in the far future: is it in milliseconds? Seconds are expected", report.now)
        )
    estimates = np.array([task.estimate for task in report.queued if task.estimate is not None])
    if len(estimates) >= FEWEST and (median := float(np.median(estimates))) > LONG_MEDIAN:
        message = (
            f"half of the {len(estimates):,} estimates are above {median:,.0f} s ({median / DAY:,.1f} days): are they "
            "in milliseconds? The longest are given"
        )
        found.append(FieldIssue("/queued", message, np.sort(estimates)[: -SHOWN - 1 : -1].tolist()))
    return found + _against_estimates(state, report)


def _against_estimates(state: State, report: QueueReport) -> list[FieldIssue]:
    """Estimates are upper limits in most systems: run times far above them are told in another unit."""
    ratios, shown = _ratios(state, report.running, report.now)
    if len(ratios) < FEWEST or (median := float(np.median(ratios))) <= 10:
        return []
    message = (
        f"running tasks have run for {median:,.4g} times their estimates already (median): are the estimates in "
        "minutes or hours? Tasks are given"
    )
    return [FieldIssue("/running", message, shown[:SHOWN])]


def _ratios(state: State, running: Sequence[Any], now: float) -> tuple[list[float], list[str]]:
    queue, ratios, shown = state.queue, [], []
    for task in running:
        row = queue.row.get(task.id, -1)
        if row >= 0 and queue.estimate[row] > 0 and queue.start[row] >= 0:
            ratios.append((now - float(queue.start[row])) / float(queue.estimate[row]))
            shown.append(task.id)
    return ratios, shown
