"""A run's reports as a trace: tasks that have ended, with what was told of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.kinds.workflow.queue import Layout, from_reports
from app.kinds.workflow.spec import Spec

Report = dict[str, Any]
LAYOUT = Layout(
    Spec.model_validate(
        {
            "name": "cloud",
            "kind": "workflow",
            "nodes": [
                {"name": "slow", "processors": 4, "maximum": 2},
                {"name": "fast", "processors": 4, "speed": 2, "maximum": 1},
            ],
        }
    )
)
REPORTS: list[Report] = [
    {
        "now": 10,
        "queued": [
            {"id": "b", "processors": 2, "submit": 6, "estimate": 50, "user": "eve", "workflow": "w", "memory_gb": 1,
             "parents": [{"task": "a", "bytes": 100}]},
            {"id": "c", "processors": 1, "deadline": 500, "user": "bob"},
            {"id": "gone", "processors": 1},
        ],
        "running": [{"id": "a", "processors": 4, "submit": 5, "node": "slow-0", "start": 8, "user": "eve",
                     "workflow": "w"}],
    },
    {"now": 30, "delta": True, "finished": [{"id": "a", "end": 28}],
     "running": [{"id": "b", "node": "slow-1", "start": 29}]},
    {"now": 40, "delta": True, "queued": [{"id": "b"}], "withdrawn": ["gone"]},  # its node failed
    {"now": 60, "delta": True, "running": [{"id": "b", "node": "fast-0", "start": 45}]},
    {"now": 90, "delta": True,
     "finished": [{"id": "b", "end": 65}, {"id": "c", "node": "slow-0", "start": 70, "end": 80}]},
    {"now": 95, "delta": True, "queued": [{"id": "never ends", "processors": 1}]},
]  # fmt: skip


def test_tasks_that_ended_are_a_trace() -> None:
    log = from_reports(LAYOUT, REPORTS)
    assert log is not None
    trace = log.trace
    assert trace.names == ("a", "b", "c")
    assert (trace.origin, trace.submit.tolist()) == (5, [0, 1, 5])
    assert trace.runtime.tolist() == [20, 40, 10]  # b ran twice: the second time for 20 s at speed 2
    assert log.start.tolist() == [3, 40, 65]
    assert [LAYOUT.names[node] for node in log.node] == ["slow-0", "fast-0", "slow-0"]
    assert trace.processors.tolist() == [4, 2, 1]
    np.testing.assert_array_equal(trace.estimate, [np.nan, 50, np.nan])
    np.testing.assert_array_equal(trace.memory, [np.nan, 1e9, np.nan])
    np.testing.assert_array_equal(trace.deadline, [np.nan, np.nan, 495])
    assert trace.users == ("eve", "bob")
    assert trace.user.tolist() == [0, 0, 1]
    assert trace.group.tolist() == [0, 0, -1]
    assert trace.parent_start.tolist() == [0, 0, 1, 1]
    assert (trace.parents.tolist(), trace.data.tolist()) == ([0], [100])


def test_a_run_in_which_nothing_ended_leaves_nothing() -> None:
    assert from_reports(LAYOUT, REPORTS[:1]) is None
    assert from_reports(LAYOUT, []) is None


def test_an_identifier_that_is_used_again_is_another_task() -> None:
    def running(start: float) -> Report:
        return {"now": start, "running": [{"id": "a", "processors": 1, "node": "slow-0", "start": start}]}

    def ended(end: float) -> Report:
        return {"now": end, "delta": True, "finished": [{"id": "a", "end": end}]}

    log = from_reports(LAYOUT, [running(1), ended(2), running(5), ended(8)])
    assert log is not None
    assert len(set(log.trace.names)) == 2
    assert log.trace.runtime.tolist() == [1, 3]


def test_a_graph_that_runs_every_day_has_edges_within_its_day_alone() -> None:
    def day(begin: float) -> list[Report]:
        queued = [{"id": "b", "processors": 1, "parents": ["a"]}, {"id": "a", "processors": 1}]
        return [
            {"now": begin, "delta": True, "queued": queued},
            {
                "now": begin + 2,
                "delta": True,
                "finished": [{"id": "a", "node": "slow-0", "start": begin, "end": begin + 2}],
            },
            {
                "now": begin + 5,
                "delta": True,
                "finished": [{"id": "b", "node": "slow-0", "start": begin + 2, "end": begin + 5}],
            },
        ]

    log = from_reports(LAYOUT, [*day(0), *day(100), *day(200)])
    assert log is not None
    trace = log.trace
    ends = dict(zip(trace.names, (log.start + trace.runtime).tolist(), strict=True))
    assert ends == {"b": 5, "a": 2, "b~2": 105, "a~2": 102, "b~3": 205, "a~3": 202}
    edges = {
        name: [trace.names[p] for p in trace.parents[trace.parent_start[i] : trace.parent_start[i + 1]]]
        for i, name in enumerate(trace.names)
    }
    assert edges == {"b": ["a"], "a": [], "b~2": ["a~2"], "a~2": [], "b~3": ["a~3"], "a~3": []}


def test_a_task_that_is_named_as_another_would_be_keeps_its_name() -> None:
    def ran(name: str, begin: float) -> Report:
        return {"now": begin, "running": [{"id": name, "processors": 1, "node": "slow-0", "start": begin}]}

    def ended(name: str, end: float) -> Report:
        return {"now": end, "delta": True, "finished": [{"id": name, "end": end}]}

    reported = [("a", 0), ("a~2", 10), ("a", 20), ("a", 30)]
    log = from_reports(LAYOUT, [one for name, at in reported for one in (ran(name, at), ended(name, at + 1))])
    assert log is not None
    assert log.trace.names == ("a", "a~2", "a~3", "a~4")


def test_tasks_that_failed_are_left_out_until_they_are_run_again_and_finish() -> None:
    failed = {"id": "b", "end": 65, "state": "failed"}
    other = {"id": "c", "node": "slow-0", "start": 70, "end": 80}
    reports = [*REPORTS[:4], {"now": 90, "delta": True, "finished": [failed, other]}]
    log = from_reports(LAYOUT, reports)
    assert log is not None
    assert log.trace.names == ("a", "c")
    again = {"id": "b", "processors": 2, "submit": 91, "node": "fast-0", "start": 92}
    reports += [{"now": 93, "delta": True, "running": [again]}]
    reports += [{"now": 99, "delta": True, "finished": [{"id": "b", "end": 97, "state": "finished"}]}]
    log = from_reports(LAYOUT, reports)
    assert log is not None
    assert log.trace.names == ("a", "c", "b")
    assert log.trace.runtime.tolist() == [20, 10, 10]
    assert (
        from_reports(LAYOUT, [*REPORTS[:1], {"now": 30, "finished": [{"id": "a", "end": 28, "state": "failed"}]}])
        is None
    )
