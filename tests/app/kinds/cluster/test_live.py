import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.cluster.advance import advance
from app.kinds.cluster.decide import Advice, Change
from app.kinds.cluster.decide import decide as decided_by
from app.kinds.cluster.kind import KIND
from app.kinds.cluster.layout import ClusterState, Layout, begin, pack, unpack
from app.kinds.cluster.placement import Rule
from app.kinds.cluster.report import ClusterReport
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import completing, equal_share, fifo, goodput, optimus, srtf, tiresias
from app.kinds.contract.inputs import Contradiction, InvalidInput
from tests.app.kinds.cluster.situations import unmeasured

LAYOUT = Layout(
    ClusterSpec.model_validate(
        {
            "name": "training",
            "kind": "cluster",
            "nodes": [{"name": "a", "count": 3, "gpus": 4}, {"name": "b", "count": 1, "gpus": 2}],
            "queues": [{"name": "urgent"}, {"name": "rest", "ageing_seconds": 600}],
        }
    )
)
PRIORITY = LAYOUT.rules["priority"]
RULES = [
    PRIORITY,
    completing([4.0, 1.0], [np.inf, 600.0]),
    equal_share,
    fifo,
    goodput,
    optimus,
    srtf,
    tiresias,
]


def report_to(state: ClusterState, **report: Any) -> ClusterState:
    return advance(LAYOUT, state, msgspec.convert(report, ClusterReport))


def decide(layout: Layout, state: ClusterState, rule: Rule) -> tuple[ClusterState, list[Change]]:
    return decided_by(layout, state, Advice(rule, unmeasured(layout, state)))


def started(*gpus: int, at: float = 0.0) -> ClusterState:
    jobs = [{"job": f"j{number}", "gpus": count} for number, count in enumerate(gpus)]
    return decide(LAYOUT, report_to(begin(LAYOUT), at=at, submitted=jobs), PRIORITY)[0]


def measured(**reported: float) -> dict[str, Any]:
    return {"at": 70, "progressed": [{"job": "j0", "iteration": 1, **reported}]}


def request(**reported: int) -> dict[str, Any]:
    return {"at": 70, "submitted": [{"job": "k", **reported}]}


def test_a_job_starts_and_who_is_less_urgent_gives_up_its_gpus() -> None:
    state = started(8, 6)
    assert state.jobs.gpus.tolist() == [8, 6]
    state = report_to(state, at=60, submitted=[{"job": "now", "gpus": 4, "queue": "urgent"}])
    state, changes = decide(LAYOUT, state, PRIORITY)
    assert [(one.job, one.code) for one in changes] == [("j1", "preempted"), ("now", "started")]
    assert changes[0].text == "release 6 GPUs; 4 to now"
    assert changes[1].text == "start on 4 GPUs immediately; 4 from j1"
    assert [one.trades for one in changes] == [{"now": 4}, {"j1": 4}]
    assert sum(changes[1].nodes.values()) == 4
    assert state.jobs.gpus.tolist() == [8, 0, 4]


def test_who_loses_a_node_goes_on_elsewhere_or_waits() -> None:
    state = started(4, 2)
    [node] = np.flatnonzero(state.jobs.allocation[0])
    state, changes = decide(LAYOUT, report_to(state, at=60, nodes=[{"node": f"a-{node}", "gpus": 0}]), PRIORITY)
    assert [(one.job, one.code, one.text) for one in changes] == [
        ("j0", "moved", "4 GPUs on other nodes; a node was lost")
    ]
    assert state.jobs.restarts.tolist() == [2, 1]


def test_a_whole_report_is_as_the_differences() -> None:
    state = started(4, 2)
    by_parts = report_to(state, at=60, ended=[{"job": "j0"}], submitted=[{"job": "k", "gpus": 1}])
    jobs = [{"job": "k", "gpus": 1}, {"job": "j1", "gpus": 2}]
    assert pack(report_to(state, at=60, whole=True, submitted=jobs)) == pack(by_parts)


@pytest.mark.parametrize(
    ("report", "error", "pointer", "message"),
    [
        ({"at": 50}, Contradiction, "/at", "at least 60"),
        ({"at": 70, "ended": [{"job": "x"}]}, Contradiction, "/ended/0/job", "a job of the run"),
        ({"at": 70, "submitted": [{"job": "j0", "gpus": 1}]}, Contradiction, "/submitted/0/job", "a new name"),
        (
            {"at": 70, "whole": True, "submitted": [{"job": "k", "gpus": 1}] * 2},
            Contradiction,
            "/submitted/1/job",
            "a new name",
        ),
        ({"at": 70, "submitted": [{"job": "k", "gpus": 15}]}, InvalidInput, "/submitted/0/gpus", "1 to 14"),
        ({"at": 70, "submitted": [{"job": "k", "gpus": 1, "at": 71}]}, InvalidInput, "/submitted/0/at", "at most 70"),
        (
            {"at": 70, "submitted": [{"job": "k", "gpus": 1, "queue": "q"}]},
            InvalidInput,
            "/submitted/0/queue",
            "known: urgent, rest",
        ),
        ({"at": 70, "nodes": [{"node": "a-3", "gpus": 4}]}, InvalidInput, "/nodes/0/node", "a-0 to a-2, b-0 to b-0"),
        ({"at": 70, "nodes": [{"node": "b-0", "gpus": 3}]}, InvalidInput, "/nodes/0/gpus", "0 to 2"),
        (
            {"at": 70, "progressed": [{"job": "x", "iteration": 1}]},
            Contradiction,
            "/progressed/0/job",
            "a job of the run",
        ),
        (measured(gpus=64), InvalidInput, "/progressed/0/gpus", "1 to 14, the GPUs of all nodes"),
        (measured(gpus=8, nodes=1), InvalidInput, "/progressed/0/nodes", "2 to 4"),
        (measured(gpus=2, nodes=3), InvalidInput, "/progressed/0/nodes", "1 to 2"),
        (measured(nodes=99), InvalidInput, "/progressed/0/nodes", "1 to 4"),
        (measured(seconds=3_611), InvalidInput, "/progressed/0/seconds", "at most 3610"),
        (request(gpus=4, minimum=4, maximum=2), InvalidInput, "/submitted/0/minimum", "1 to 2"),
        (request(gpus=4, minimum=100), InvalidInput, "/submitted/0/minimum", "1 to 4"),
        (request(gpus=4, maximum=2), InvalidInput, "/submitted/0/maximum", "at least 4"),
        ({"at": 70, "nodes": [{"node": "a-0", "gpus": 0}] * 2}, InvalidInput, "/nodes/1/node", "named once"),
        ({"at": 70, "ended": [{"job": "j0"}] * 2}, InvalidInput, "/ended/1/job", "named once"),
    ],
)
def test_what_cannot_be_is_refused(report: Any, error: type[InvalidInput], pointer: str, message: str) -> None:
    with pytest.raises(error) as caught:
        report_to(started(4, at=60), **report)
    assert caught.value.errors[0].pointer == pointer
    assert message in caught.value.errors[0].message


@pytest.mark.parametrize("seconds", [1e-12, 1e9 + 1, 1e16])
def test_seconds_that_no_sample_can_have_are_refused(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        KIND.engine.decode(json.dumps(measured(seconds=seconds)).encode())


def test_a_job_that_was_there_before_the_run_may_tell_of_longer_steps() -> None:
    one = {"job": "old", "iteration": 7, "seconds": 30, "gpus": 8, "nodes": 2}
    state = report_to(begin(LAYOUT), at=1, submitted=[{"job": "old", "gpus": 8}], progressed=[one])
    assert state.records.iteration.tolist() == [7]


def test_what_is_told_of_a_job_stays_known_until_it_is_told_otherwise() -> None:
    state = started(4, 2)
    state = report_to(state, at=60, progressed=[{"job": "j1", "iteration": 2, "loss": 0.5, "batch": 64}])
    state = report_to(state, at=70, progressed=[{"job": "j1", "iteration": 3}], submitted=[{"job": "k", "gpus": 1}])
    known = state.records
    assert (known.iteration.tolist(), known.batch.tolist(), known.paced_on.tolist()) == (
        [0, 3, 0],
        [0, 64, 0],
        [0, 2, 0],
    )
    np.testing.assert_array_equal(known.pace, [np.nan, 1 / 10, np.nan])
    np.testing.assert_array_equal(known.value, [np.nan, 0.5, np.nan])
    state, _ = decide(
        LAYOUT, report_to(state, at=80, submitted=[{"job": "now", "gpus": 14, "queue": "urgent"}]), RULES[0]
    )
    assert state.jobs.gpus.tolist() == [0, 0, 0, 14]
    assert state.records.iteration.tolist() == [0, 3, 0, 0]  # what was preempted has lost nothing


def test_a_job_may_tell_of_its_last_progress_as_it_ends() -> None:
    last = [{"job": "j0", "iteration": 9, "loss": 0.1}, {"job": "j1", "iteration": 2}]
    state = report_to(started(4, 2), at=60, progressed=last, ended=[{"job": "j0"}])
    assert (state.names, state.records.iteration.tolist()) == (("j1",), [2])


@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("rule", RULES)
@given(st.integers(0, 2**32 - 1))
def test_capacity_and_limits_hold_after_every_report_and_states_survive_storage(rule: Rule, seed: int) -> None:
    numbers, state, now = np.random.default_rng(seed), begin(LAYOUT), 0.0
    for step in range(12):
        now += float(numbers.integers(0, 400))
        count = int(numbers.integers(0, 3))
        gpus = [int(numbers.integers(1, 9)) for _ in range(count)]
        queues = [["urgent", "rest", None][int(numbers.integers(0, 3))] for _ in range(count)]
        jobs = [
            {"job": f"{step}-{n}", "gpus": g, "queue": q} for n, (g, q) in enumerate(zip(gpus, queues, strict=True))
        ]
        ended = [{"job": name} for name in state.names if numbers.random() < 0.2]
        gone = {one["job"] for one in ended}
        on = [{"job": name, "iteration": step, "loss": 1 / step} for name in state.names if step and name not in gone]
        node = int(numbers.integers(0, 4))
        nodes = [{"node": LAYOUT.nodes[node], "gpus": int(numbers.integers(0, LAYOUT.capacity[node] + 1))}]
        state = report_to(
            state, at=now, submitted=jobs, ended=ended, progressed=on, nodes=nodes if numbers.random() < 0.5 else []
        )
        stored = unpack(json.loads(json.dumps(pack(state))))
        state, changes = decide(LAYOUT, state, rule)
        again, same = decide(LAYOUT, stored, rule)
        assert (pack(again), same) == (pack(state), changes)
        assert (state.jobs.allocation.sum(axis=0) <= state.capacity).all()
        runs = state.jobs.gpus > 0
        assert (state.jobs.gpus[runs] >= state.jobs.minimum[runs]).all()
        assert (state.jobs.gpus <= state.jobs.maximum).all()
        for one in changes:
            assert one.text
            assert sum(one.nodes.values()) == state.jobs.gpus[state.names.index(one.job)]
