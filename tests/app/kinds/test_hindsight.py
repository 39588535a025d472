"""What other rules would have done over a run: whoever decided is found to have decided the same, others are not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from app.kinds.contract.kind import Kind
from app.kinds.contract.views import Hindsight
from app.kinds.registry import KINDS
from tests.contracts import test_kind as kit


def over(given: Kind, spec: dict[str, Any], reports: Sequence[Mapping[str, Any]]) -> Hindsight:
    """A run of those reports, looked back at."""
    example = given.example._replace(spec={**given.example.spec, **spec}, reports=reports)
    kind = dataclasses.replace(given, example=example)
    on = kit.compiled(kind)
    assert kind.views is not None
    found: Hindsight = kind.views.hindsight(on, kit.TestViews().shown(kind, on, len(reports)))
    return found


def test_a_queue_tells_who_would_have_started_the_same() -> None:
    spec = {"nodes": [{**KINDS["workflow"].example.spec["nodes"][0], "maximum": 1}], "strategy": "sjf"}
    tasks = [{"id": f"t{i}", "processors": 16, "estimate": 1000.0 - 100 * i} for i in range(4)]
    reports = [
        {"now": 0, "queued": tasks},
        {"now": 100, "delta": True, "running": [{"id": "t3", "node": "large-0", "start": 95}]},
        {"now": 900, "delta": True, "finished": [{"id": "t3", "end": 890}]},
    ]
    same, starts = over(KINDS["workflow"], spec, reports).figures
    shares = {name: share for name, share, *_ in same.rows}
    assert shares["sjf"] == 1
    assert shares["fcfs"] < 1
    assert {"decided", "sjf", "fcfs"} <= {row[0] for row in starts.rows}


def test_a_queue_with_promises_says_why_it_cannot_tell() -> None:
    told = over(KINDS["workflow"], {"backfilling": "rls"}, KINDS["workflow"].example.reports)
    assert (told.figures, "rls" in told.explanation) == ([], True)


def test_a_cluster_tells_who_would_have_given_as_many_gpus() -> None:
    same, run = over(KINDS["cluster"], {}, KINDS["cluster"].example.reports).figures
    shares = {name: share for name, share, *_ in same.rows}
    assert shares["soonest"] == 1
    assert shares["priority"] < 1
    assert {"decided", "soonest", "priority"} <= {row[0] for row in run.rows}
