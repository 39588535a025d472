"""What is shown of a schedule is what happened in it, however many tasks there are."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from app.kinds.workflow.queue import nodes_of, pool
from app.kinds.workflow.spec import NodeType
from tests.workers.kinds.workflow.evaluation.schedules import drawn, in_turn, jobs
from workers.kinds.workflow.evaluation import pictures
from workers.kinds.workflow.evaluation.pictures import BINS, MOST_NODES, MOST_TASKS, distribution, over_time, picture
from workers.kinds.workflow.simulator.simulate import Schedule, slowdowns


def test_utilisation_and_queue_by_hand() -> None:
    """A runs 0–10 on 2 of 4 processors; B, which needs all, waits 0–10 and runs to 20; C waits 5–20, runs to 30."""
    trace = jobs([0, 0, 5], [10, 10, 10], [2, 4, 1])
    schedule = Schedule(np.array([0.0, 10, 20]), np.array([10.0, 20, 30]), np.zeros(3, np.int64))
    result = over_time(trace, pool(4), schedule, np.array([0.0, 5, 10, 20, 30]))
    assert result["utilisation"] == [0.5, 0.5, 1.0, 0.25]
    assert result["queue"] == [1.0, 2.0, 1.0, 0.0]
    assert result["longest"] == [1, 2, 1, 0]


def test_nothing_gets_lost_between_the_bins() -> None:
    trace = drawn(300, 1)
    schedule = in_turn(trace, 16)
    reported = picture("fcfs", trace, pool(16), schedule)
    time = np.array(reported["over_time"]["time"])
    busy = (np.array(reported["over_time"]["utilisation"]) * np.diff(time)).sum() * 16
    waited = (np.array(reported["over_time"]["queue"]) * np.diff(time)).sum()
    assert len(time) == BINS + 1
    assert busy == pytest.approx((trace.runtime * trace.processors).sum(), rel=1e-3)
    assert waited == pytest.approx((schedule.start - trace.submit).sum(), rel=1e-3)
    assert json.loads(json.dumps(reported, allow_nan=False)) == reported


def test_the_distribution_ends_at_the_largest() -> None:
    trace = drawn(200, 2)
    values = slowdowns(trace, in_turn(trace, 16))
    result = distribution(values)
    assert result["value"][-1] == pytest.approx(values.max(), abs=1e-3)
    assert result["share"][-1] == 1
    assert result["value"] == sorted(result["value"])
    half = result["share"].index(0.5)
    assert result["value"][half] == pytest.approx(np.median(values), abs=1e-3)


@pytest.mark.parametrize("count", [50, 1500])
def test_no_processor_is_drawn_twice_at_a_time(count: int) -> None:
    trace = drawn(count, 3, pause=40.0)
    schedule = in_turn(trace, 16)
    gantt = picture("fcfs", trace, pool(16), schedule)["gantt"]
    assert gantt["whole"] == (count == 50)
    assert len({bar["task"] for bar in gantt["bars"]}) <= MOST_TASKS
    by_lane: dict[int, list[tuple[float, float]]] = {}
    for bar in gantt["bars"]:
        assert gantt["from"] <= bar["start"] < bar["end"] <= gantt["to"] + 1e-3
        for lane in range(bar["lane"], bar["lane"] + bar["lanes"]):
            by_lane.setdefault(lane, []).append((bar["start"], bar["end"]))
    assert set(by_lane) <= set(range(16))
    for spans in by_lane.values():
        spans.sort()
        assert all(before[1] <= after[0] + 2e-3 for before, after in itertools.pairwise(spans))
    if gantt["whole"]:
        lanes = {name: sum(bar["lanes"] for bar in gantt["bars"] if bar["task"] == name) for name in trace.names}
        assert list(lanes.values()) == trace.processors.tolist()


def test_of_many_tasks_the_stretch_that_waited_longest_is_shown() -> None:
    quiet = jobs([100.0 * i for i in range(600)], [10.0] * 600, [1] * 600)
    crowd = quiet._replace(submit=np.where((quiet.submit >= 30_000) & (quiet.submit < 40_000), 30_000, quiet.submit))
    gantt = picture("fcfs", crowd, pool(1), in_turn(crowd, 1))["gantt"]
    assert gantt["from"] <= 30_000
    assert gantt["to"] >= 31_000


def test_of_tasks_in_many_pieces_as_many_are_shown_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = drawn(50, 3, pause=40.0)
    schedule = in_turn(trace, 16)
    whole = picture("fcfs", trace, pool(16), schedule)["gantt"]
    monkeypatch.setattr(pictures, "MOST_BARS", 20)
    gantt = picture("fcfs", trace, pool(16), schedule)["gantt"]
    assert (whole["whole"], gantt["whole"], gantt["to"]) == (True, False, whole["bars"][20]["start"])
    assert 0 < len(gantt["bars"]) <= 20
    assert all(bar["start"] < bar["end"] <= gantt["to"] for bar in gantt["bars"])
    assert [bar["task"] for bar in gantt["bars"]] == [bar["task"] for bar in whole["bars"][: len(gantt["bars"])]]


def test_of_many_nodes_the_busiest_are_shown_by_name() -> None:
    nodes = nodes_of((NodeType(name="small", processors=2, maximum=100),))
    trace = jobs([0.0] * 100, [float(i + 1) for i in range(100)], [2] * 100)
    schedule = Schedule(np.zeros(100), trace.runtime.copy(), np.arange(100))
    names = [f"small-{i}" for i in range(100)]
    gantt = picture("heft", trace, nodes, schedule, labels=names)["gantt"]
    assert [node["name"] for node in gantt["nodes"]] == names[-MOST_NODES:]
    assert [node["first"] for node in gantt["nodes"]] == list(range(0, 2 * MOST_NODES, 2))
    assert not gantt["whole"]
