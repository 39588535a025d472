"""One attempt at a job, as the log and a span tell of it, under the trace of whoever asked for the job."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.jobs.lease import Lease
from app.telemetry.logs import FIELDS
from app.telemetry.trace import Trace, began, working

logger = logging.getLogger(__name__)

BROKEN = "broken"


@dataclass
class Step:
    """An attempt that goes on.

    Attributes:
        outcome: what became of it: done, cancelled, failed, released or lost; `broken` until it is said.
    """

    outcome: str = BROKEN


@contextmanager
def step(lease: Lease, *, traces: bool) -> Iterator[Step]:
    """Tell of an attempt at its beginning and its end; lines between bear its ids."""
    trace, began_at, done = began(lease.traceparent), time.time(), Step()
    told = {"job": lease.job_id, "type": lease.type, "tenant": lease.tenant, "attempt": lease.attempts}
    with working(trace, lease.job_id):
        begun = {**told, "fence": lease.fence, "step": "begun"}
        logger.info("job %s: attempt %d, fence %d", lease.job_id, lease.attempts, lease.fence, extra={FIELDS: begun})
        try:
            yield done
        finally:
            seconds = time.time() - began_at
            ended = {**told, "step": done.outcome, "seconds": round(seconds, 3)}
            logger.info("job %s: %s after %.1f s", lease.job_id, done.outcome, seconds, extra={FIELDS: ended})
            if traces:
                _span(lease, trace, began_at + seconds, seconds, done.outcome)


def _span(lease: Lease, trace: Trace, ended: float, seconds: float, outcome: str) -> None:
    from app.telemetry.spans import SpanKind, of_this_process

    told: dict[str, str | int | float] = {
        "steward.job": lease.job_id,
        "steward.tenant": lease.tenant,
        "steward.attempt": lease.attempts,
        "steward.outcome": outcome,
    }
    spans = of_this_process(os.getpid())
    failed = outcome in ("failed", "lost", BROKEN)
    spans.add(f"job {lease.type}", trace, ended, seconds, told, kind=SpanKind.CONSUMER, failed=failed)
    spans.flush()
