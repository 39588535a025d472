"""What other rules would have done over a run: whoever decided is found to have decided the same, others are not; and
what a page tells of a run of which reports are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from app.kinds.contract.kind import Kind
from app.kinds.contract.views import Hindsight, RunHistory
from app.kinds.registry import KINDS
from tests.contracts import test_kind as kit


def over(values: Kind, spec: dict[str, Any], reports: Sequence[Mapping[str, Any]]) -> Hindsight:
    """A run of those reports, looked back at."""
    example = values.example._replace(spec={**values.example.spec, **spec}, reports=reports)
    kind = dataclasses.replace(values, example=example)
    on = kit.compiled(kind)
    assert kind.views is not None
    hindsight: Hindsight = kind.views.hindsight(on, kit.TestViews().shown(kind, on, len(reports)))
    return hindsight


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
    result = over(KINDS["workflow"], {"backfilling": "rls"}, KINDS["workflow"].example.reports)
    assert (result.figures, "rls" in result.explanation) == ([], True)


def test_a_cluster_tells_who_would_have_given_as_many_gpus() -> None:
    same, run = over(KINDS["cluster"], {}, KINDS["cluster"].example.reports).figures
    shares = {name: share for name, share, *_ in same.rows}
    assert shares["soonest"] == 1
    assert shares["priority"] < 1
    assert {"decided", "soonest", "priority"} <= {row[0] for row in run.rows}


def begun_late() -> tuple[Kind, Any, RunHistory]:
    """A run of iterations 4 to 11, the first two of which took three times as long."""
    example = KINDS["iterative"].example
    loss = {"name": "loss", "unit": "", "scope": "run", "target": 100.0, "goal": "at_most"}
    spec = {**example.spec, "metrics": [*example.spec["metrics"], loss]}
    reports = [
        {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": taken, "loss": 1.0}}
        for gpus, taken in zip((2, 4, 4, 4, 4, 6, 6, 6), (30.0, 30.0, *[10.0] * 6), strict=True)
    ]
    kind = dataclasses.replace(KINDS["iterative"], example=example._replace(spec=spec, reports=reports))
    on = kit.compiled(kind)
    shown = kit.TestViews().shown(kind, on, len(reports))
    steps = [one._replace(iteration=one.iteration + 4) for one in shown.steps]
    return kind, on, shown._replace(start={**shown.start, "first_iteration": 4}, iterations=12, steps=steps)


def test_sums_are_of_the_iterations_that_the_run_had_and_reach_what_it_took() -> None:
    kind, on, whole = begun_late()
    assert kind.views is not None

    def elapsed(history: RunHistory) -> list[tuple[int, float]]:
        assert kind.views is not None
        figure = kind.views.comparison(on, history)[0]
        return [(row[1], round(row[2], 6)) for row in figure.rows if row[0] == "measured"]

    assert elapsed(whole) == [(4 + n, 30.0 * min(n + 1, 2) + 10 * max(n - 1, 0)) for n in range(8)]
    assert elapsed(whole._replace(state=None, steps=whole.steps[1::2], every=2))[-1] == (11, 120.0)
    without = elapsed(whole._replace(steps=whole.steps[2:]))  # the reports of the first two were deleted
    assert (without[0], without[-1]) == ((6, 45.0), (11, 120.0))
    loss = kind.views.comparison(on, whole)[1]
    assert (loss.title, loss.columns[2]) == ("loss: total", "loss: total")


def test_a_change_has_the_reason_of_its_decision_or_none() -> None:
    kind, on, whole = begun_late()
    assert kind.views is not None

    def changes(history: RunHistory) -> list[dict[str, Any]]:
        assert kind.views is not None
        layers = kind.views.run(on, history)[0].spec["layer"]
        return [row for one in layers if one["mark"]["style"] == "change" for row in one["data"]["values"]]

    assert [(one["change"], bool(one["reason"])) for one in changes(whole)] == [
        ("2 → 4 GPUs", True),
        ("4 → 6 GPUs", True),
    ]
    (only,) = changes(whole._replace(steps=whole.steps[1::2], every=2))
    assert (only["change"], only["reason"]) == ("4 → 6 GPUs by iteration 9", "")
