"""What pages tell of who had how many GPUs, from all reports of a run or from some."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.kinds.cluster.views import REST, gpus_by_job, released
from app.kinds.contract.views import RunHistory, Step


def step(at: int, free: int, *changes: tuple[str, int, int], ceiling: int | None = None, **report: Any) -> Step:
    result = [{"job": job, "before": had, "gpus": has, "ceiling": ceiling, "text": ""} for job, had, has in changes]
    return Step(at, {"at": float(at), **report}, {"changes": result, "free": free}, datetime(2026, 1, 1, tzinfo=UTC))


def test_some_reports_of_many_tell_what_is_in_use_and_of_whom_that_is_known() -> None:
    steps = [
        step(0, 4, ("a", 0, 4), submitted=[{"job": "a"}]),
        step(5, 2, progressed=[{"job": "a"}]),  # somebody has two whose start is left out
        step(10, 6, ("b", 4, 2)),  # the end of a is left out: it isn't told of any more
    ]
    reported = gpus_by_job(RunHistory({}, {}, None, 15, steps, every=5), whole=8.0)
    assert reported == [(0.0, {"a": 4.0}), (5.0, {"a": 4.0, REST: 2.0}), (10.0, {"b": 2.0})]


def test_what_convergence_gave_back_is_known_by_the_limit() -> None:
    steps = [step(0, 0, ("a", 4, 1), ceiling=1), step(1, 0, ("b", 4, 2)), step(2, 0, ("c", 2, 1), ceiling=1)]
    assert released(steps) == [(0.0, 3.0), (1.0, 3.0), (2.0, 4.0)]
    assert released(steps[1:2]) == []
