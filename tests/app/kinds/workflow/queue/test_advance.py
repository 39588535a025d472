"""From a state and a report to the next state: what is kept, and what is refused, field by field."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.inputs import Contradiction, InvalidInput
from app.kinds.fields import converted
from app.kinds.workflow import advance as module
from app.kinds.workflow.advance import advance, implausible
from app.kinds.workflow.queue import (
    FAILED,
    GIGA,
    MOST_USERS,
    STARTING,
    UP,
    WAITING,
    Layout,
    QueueReport,
    State,
    begin,
    pack,
)
from app.kinds.workflow.run_times import PastTask, blank, remember, table
from app.kinds.workflow.spec import Spec

Report = dict[str, Any]
LAYOUT = Layout(
    Spec.model_validate(
        {
            "name": "cloud",
            "kind": "workflow",
            "nodes": [
                {"name": "slow", "processors": 4, "memory_gb": 8, "minimum": 1, "maximum": 2},
                {"name": "fast", "processors": 2, "memory_gb": 16, "speed": 2, "maximum": 1},
            ],
        }
    )
)
SLOW, SLOWER, FAST = range(3)
WAITS: Report = {"id": "waits", "processors": 2, "submit": 3, "memory_gb": 1, "user": "eve", "workflow": "w"}
RUNS: Report = {"id": "runs", "processors": 2, "submit": 2, "memory_gb": 4, "user": "bob", "node": "slow-0", "start": 4}
QUEUE: list[Report] = [
    {"now": 10, "queued": [WAITS, {"id": "old", "processors": 1, "workflow": "w"}], "running": [RUNS]},
    {"now": 20, "delta": True, "finished": [{"id": "old", "start": 11, "node": "slow-0", "end": 15}]},
]


def after(*reports: Report) -> State:
    state = begin(LAYOUT)
    for report in reports:
        state = advance(LAYOUT, state, converted(report, QueueReport))
    return state


def delta(now: float = 30, **parts: Any) -> Report:
    return {"now": now, "delta": True, **parts}


def refused(error: type[InvalidInput], **report: Any) -> dict[str, str]:
    """Messages by pointer; nothing has become of the state."""
    state = after(*QUEUE)
    before = json.dumps(pack(state))
    with pytest.raises(error) as caught:
        advance(LAYOUT, state, converted(delta(**report), QueueReport))
    assert type(caught.value) is error
    assert json.dumps(pack(state)) == before
    return {issue.pointer: issue.message for issue in caught.value.errors}


def test_a_task_is_what_its_report_says_and_what_is_left_out_is_unknown() -> None:
    parents = ["old", {"task": "waits", "bytes": 7}]
    full = {**WAITS, "id": "full", "estimate": 60, "deadline": 99, "parents": parents, "submit": 30}
    queue = after(*QUEUE, delta(queued=[full, {"id": "bare", "processors": 1}])).queue
    assert queue.names == ["waits", "runs", "full", "bare"]
    assert queue.submit.tolist() == [3, 2, 30, 30]
    assert queue.processors.tolist() == [2, 2, 2, 1]
    assert queue.memory.tolist() == [GIGA, 4 * GIGA, GIGA, 0]
    assert queue.node.tolist() == [WAITING, SLOW, WAITING, WAITING]
    assert queue.users == ["eve", "bob", "eve", ""]
    assert queue.groups == ["w", "", "w", ""]
    assert (queue.estimate[2], queue.deadline[2], queue.start[1]) == (60, 99, 4)
    assert all(math.isnan(column[3]) for column in (queue.estimate, queue.deadline, queue.start))
    assert queue.inputs == [(), (), (("old", 0.0), ("waits", 7.0)), ()]


def test_a_queue_holds_a_bounded_number_of_tasks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TASKS", 3)
    more = [{"id": "one", "processors": 1}, {"id": "two", "processors": 1}]
    assert list(refused(InvalidInput, queued=more)) == ["/queued"]
    after(*QUEUE, delta(queued=more[:1]))
    after(*QUEUE, delta(queued=more, withdrawn=["waits"]))


def test_a_task_that_runs_when_it_is_first_named_was_submitted_by_its_start() -> None:
    queue = after(delta(running=[{"id": "a", "processors": 1, "node": "slow-0", "start": 12}])).queue
    assert (queue.submit[0], queue.start[0]) == (12, 12)


def test_what_has_ended_leaves_the_queue_and_is_remembered_for_its_workflow() -> None:
    state = after(*QUEUE)
    assert (state.now, state.before, state.done) == (20, 10, 1)
    assert state.queue.names == ["waits", "runs"]
    assert state.ended == {"old": (SLOW, "w")}
    gone = after(*QUEUE, delta(withdrawn=["waits"]))
    assert gone.ended == {}  # nothing of its workflow is left
    assert gone.queue.names == ["runs"]


def test_a_finished_parent_is_remembered_while_a_task_has_it() -> None:
    child = {"id": "child", "processors": 1, "parents": ["runs"]}
    state = after(*QUEUE, delta(queued=[child]), delta(40, finished=[{"id": "runs", "end": 35}]))
    assert state.ended["runs"] == (SLOW, "")
    assert after(*QUEUE, delta(finished=[{"id": "runs", "end": 25}])).ended.keys() == {"old"}


def test_the_last_tasks_of_a_user_are_kept_at_speed_1() -> None:
    tasks = [{"id": f"t{i}", "processors": 1, "user": "ann", "estimate": 8} for i in range(3)]
    ends = [{"id": f"t{i}", "node": "fast-0", "start": 40, "end": 41 + i} for i in range(3)]
    state = after(delta(queued=tasks), delta(50, finished=ends))
    assert state.history == {"ann": tuple(PastTask(2.0 * i, 8.0, 1) for i in (1, 2, 3))}  # seconds times the speed, 2
    assert state.done == 3


def test_a_task_that_failed_says_nothing_of_how_long_its_users_tasks_run() -> None:
    tasks = [{"id": f"t{i}", "processors": 1, "user": "ann", "estimate": 8} for i in range(2)]
    failed, finished = (
        {"id": f"t{i}", "node": "fast-0", "start": 40, "end": 41 + i, "state": state}
        for i, state in enumerate(("failed", "finished"))
    )
    state = after(delta(queued=tasks), delta(50, finished=[failed, finished]))
    assert state.history == {"ann": (PastTask(4.0, 8.0, 1),)}
    assert state.done == 2


def test_only_the_users_that_were_seen_last_are_kept() -> None:
    ended = converted(delta(finished=[{"id": "runs", "end": 25}]), QueueReport)
    for others, kept in ((MOST_USERS, False), (MOST_USERS - 1, True)):
        state = after(*QUEUE)._replace(history={f"u{i}": (PastTask(1.0, 2.0, 1),) for i in range(others)})
        found = advance(LAYOUT, state, ended).history
        assert len(found) == MOST_USERS
        assert ("u0" in found) == kept
        assert [task.seconds for task in found["bob"]] == [21.0]


def test_a_task_whose_node_failed_waits_again() -> None:
    queue = after(*QUEUE, delta(queued=[{"id": "runs"}])).queue
    assert (queue.node.tolist(), queue.names) == ([WAITING, WAITING], ["waits", "runs"])
    assert math.isnan(queue.start[1])


def test_a_whole_report_leaves_out_what_no_longer_waits() -> None:
    state = after(*QUEUE, {"now": 30, "running": [{"id": "runs"}], "queued": [{"id": "new", "processors": 1}]})
    assert state.queue.names == ["runs", "new"]


def test_nodes_are_up_while_they_are_rented_always_and_else_as_reported() -> None:
    def nodes(*values: Report, **report: Any) -> dict[int, tuple[int, float]]:
        return after(*QUEUE, delta(nodes=list(values), **report)).nodes

    assert after(*QUEUE).nodes == {SLOW: (UP, 0)}
    ordered = {"name": "slow-1", "state": "starting", "since": 25}
    assert nodes(ordered)[SLOWER] == (STARTING, 25)
    assert nodes({"name": "slow-1", "state": "starting"})[SLOWER] == (STARTING, 30)
    assert nodes({"name": "slow-0", "state": "failed"})[SLOW] == (FAILED, 0)
    twice = after(*QUEUE, delta(nodes=[ordered]), delta(40, nodes=[{"name": "slow-1", "state": "up"}]))
    assert twice.nodes[SLOWER] == (UP, 25)  # rented since it was ordered
    off = after(*QUEUE, delta(nodes=[ordered]), delta(40, nodes=[{"name": "slow-1", "state": "off"}]))
    assert SLOWER not in off.nodes
    again = after(
        *QUEUE,
        delta(nodes=[{"name": "slow-1", "state": "failed", "since": 25}]),
        delta(40, nodes=[{"name": "slow-1", "state": "up"}]),
    )
    assert again.nodes[SLOWER] == (UP, 40)  # a failed node is rented anew
    selection = delta(40, nodes=[{"name": "fast-0", "state": "up", "since": 35}])
    assert after(*QUEUE, delta(nodes=[ordered]), selection).nodes == {
        SLOW: (UP, 0),
        SLOWER: (STARTING, 25),
        FAST: (UP, 35),
    }
    whole = {**selection, "delta": False, "queued": [{"id": "waits"}], "running": [{"id": "runs"}]}
    assert after(*QUEUE, delta(nodes=[ordered]), whole).nodes == {SLOW: (UP, 0), FAST: (UP, 35)}


def test_a_node_on_which_a_task_starts_is_up() -> None:
    begun = delta(running=[{"id": "waits", "node": "fast-0", "start": 25}])
    assert after(*QUEUE, begun).nodes[FAST] == (UP, 25)
    ordered = delta(25, nodes=[{"name": "fast-0", "state": "starting", "since": 22}])
    assert after(*QUEUE, ordered, begun).nodes[FAST] == (UP, 22)


def test_a_committed_task_is_kept_in_view_until_it_runs_or_leaves() -> None:
    head = ("waits", 50.0, 1)
    state = after(*QUEUE)._replace(head=head)

    def next_head(**report: Any) -> Any:
        return advance(LAYOUT, state, converted(delta(**report), QueueReport)).head

    assert next_head() == head
    assert next_head(running=[{"id": "waits", "node": "slow-0", "start": 25}]) == ()
    assert next_head(withdrawn=["waits"]) == ()


@pytest.mark.parametrize(
    ("report", "pointer", "word"),
    [
        ({"queued": [{"id": "old", "processors": 1}]}, "/queued/0/id", "has finished already"),
        (
            {"running": [{"id": "old", "processors": 1, "node": "slow-0", "start": 25}]},
            "/running/0/id",
            "has finished already",
        ),
        ({"finished": [{"id": "old", "end": 25}]}, "/finished/0/id", "has finished already"),
        ({"finished": [{"id": "never", "end": 25}]}, "/finished/0/id", "is neither pending nor running"),
        ({"finished": [{"id": "waits", "end": 25}]}, "/finished/0/id", "has never started"),
        ({"queued": [{"id": "waits"}]}, "/queued/0/id", "is already queued"),
        ({"running": [{"id": "runs", "node": "slow-1"}]}, "/running/0/node", "must be slow-0, where it runs"),
        ({"withdrawn": ["old"]}, "/withdrawn/0", "is neither pending nor running"),
        ({"delta": False, "queued": [{"id": "waits"}]}, "/running", "leaves out tasks that were running"),
        (
            {"queued": [{"id": "child", "processors": 1, "parents": ["waits"]}], "withdrawn": ["waits"]},
            "/withdrawn",
            "waits for withdrawn tasks (waits): withdraw it too",
        ),
        ({"now": 19}, "/now", "must be at least 20"),
    ],
)
def test_what_contradicts_the_reports_before_is_refused(report: Report, pointer: str, word: str) -> None:
    problem = refused(Contradiction, **report)
    assert list(problem) == [pointer]
    assert word in problem[pointer]


@pytest.mark.parametrize(
    ("report", "pointer", "word"),
    [
        ({"queued": [{"id": "new"}]}, "/queued/0/processors", "is needed"),
        ({"queued": [{"id": "new", "processors": 5}]}, "/queued/0/processors", "must be at most 4"),
        ({"queued": [{"id": "new", "processors": 4, "memory_gb": 9}]}, "/queued/0/memory_gb", "must be at most 8"),
        (
            {"queued": [{"id": "new", "processors": 1, "submit": 31}]},
            "/queued/0/submit",
            "at most 30 (the time of the report)",
        ),
        ({"running": [{"id": "waits", "node": "slow-9", "start": 25}]}, "/running/0/node", "unknown node"),
        ({"running": [{"id": "waits", "start": 25}]}, "/running/0/node", "unknown node"),
        ({"running": [{"id": "runs", "node": "slow-9"}]}, "/running/0/node", "unknown node"),
        (
            {"running": [{"id": "new", "processors": 3, "node": "fast-0", "start": 25}]},
            "/running/0/node",
            "has 2 processors: too few",
        ),
        ({"running": [{"id": "waits", "node": "slow-1"}]}, "/running/0/start", "is needed"),
        (
            {"running": [{"id": "waits", "node": "slow-1", "start": 31}]},
            "/running/0/start",
            "at most 30 (the time of the report)",
        ),
        (
            {"running": [{"id": "waits", "node": "slow-1", "start": 2}]},
            "/running/0/start",
            "must be at least 3 (its submission)",
        ),
        ({"finished": [{"id": "runs", "end": 3}]}, "/finished/0/end", "must be at least 4 (its start)"),
        ({"finished": [{"id": "runs", "end": 31}]}, "/finished/0/end", "at most 30 (the time of the report)"),
        (
            {"finished": [{"id": "waits", "node": "slow-9", "start": 25, "end": 26}]},
            "/finished/0/node",
            "unknown node",
        ),
        (
            {"finished": [{"id": "waits", "node": "slow-0", "start": 2, "end": 26}]},
            "/finished/0/start",
            "must be at least 3 (its submission)",
        ),
        (
            {"finished": [{"id": "waits", "node": "slow-0", "start": 25, "end": 24}]},
            "/finished/0/end",
            "must be at least 25 (its start)",
        ),
        ({"nodes": [{"name": "slow-9", "state": "up"}]}, "/nodes/0/name", "unknown node"),
        ({"nodes": [{"name": "fast-0", "state": "up"}] * 2}, "/nodes/1/name", "is given twice"),
        (
            {"nodes": [{"name": "fast-0", "state": "up", "since": 31}]},
            "/nodes/0/since",
            "at most 30 (the time of the report)",
        ),
        ({"queued": [{"id": "a", "processors": 1, "parents": ["runs", "z"]}]}, "/queued/0/parents/1", "unknown task"),
        (
            {"running": [{**RUNS, "id": "b", "memory_gb": 1, "parents": ["z"]}]},
            "/running/0/parents/0",
            "unknown task",
        ),
        ({"withdrawn": ["waits", "waits"]}, "/withdrawn/1", "is given twice, also as /withdrawn/0"),
        ({"queued": [{"id": "runs"}], "withdrawn": ["runs"]}, "/withdrawn/0", "is given twice, also as /queued/0/id"),
        (
            {"running": [{"id": "waits", "node": "slow-0", "start": 25}, {**RUNS, "id": "b", "memory_gb": 1}]},
            "/running",
            "at most 4 processors on slow-0",
        ),
        (
            {"running": [{**RUNS, "id": "b", "processors": 1, "memory_gb": 5}]},
            "/running",
            "at most 8 GB of memory on slow-0",
        ),
    ],
)
def test_what_can_not_be_in_any_run_is_refused(report: Report, pointer: str, word: str) -> None:
    problem = refused(InvalidInput, **report)
    assert list(problem) == [pointer]
    assert word in problem[pointer]


@pytest.mark.parametrize(
    "report",
    [
        {"now": 20},
        {"queued": [{"id": "new", "processors": 4, "memory_gb": 8, "submit": 30}]},
        {"running": [{"id": "waits", "node": "slow-0", "start": 30}]},
        {"running": [{"id": "waits", "node": "fast-0", "start": 3}]},
        {"finished": [{"id": "runs", "end": 30}]},
        {"finished": [{"id": "runs", "end": 4}]},
        {"nodes": [{"name": "fast-0", "state": "up", "since": 30}]},
        {"running": [{**RUNS, "id": "b", "memory_gb": 4}]},  # four processors and 8 GB: all that slow-0 has
        {"queued": [{"id": "a", "processors": 1, "parents": ["b"]}, {"id": "b", "processors": 1}]},
        {"queued": [{"id": "runs"}], "running": [{"id": "waits", "node": "slow-0", "start": 25}]},
        {"withdrawn": ["waits", "runs"]},
        {"finished": [{"id": "runs", "end": 25}], "queued": [{"id": "a", "processors": 1, "parents": ["runs"]}]},
    ],
)
def test_what_is_just_possible_is_taken(report: Report) -> None:
    assert after(*QUEUE, delta(**report)).before == 20


def test_all_issues_of_a_report_are_named_at_once_and_few_of_many_lost_tasks() -> None:
    assert list(refused(InvalidInput, queued=[{"id": "a"}, {"id": "a"}])) == ["/queued/1/id"]  # no consequences of it
    found = refused(InvalidInput, queued=[{"id": "a"}, {"id": "b"}], nodes=[{"name": "x", "state": "up"}])
    assert sorted(found) == ["/nodes/0/name", "/queued/0/processors", "/queued/1/processors"]
    many = [{"id": f"t{i}", "processors": 1, "node": f"slow-{i % 2}", "start": 1} for i in range(8)]
    for count, shown in ((5, 5), (6, 6)):
        state = after(delta(5, running=many[:count]))
        with pytest.raises(Contradiction) as caught:
            advance(LAYOUT, state, converted({"now": 9}, QueueReport))
        (issue,) = caught.value.errors
        names = [f"t{i}" for i in range(5)]
        assert issue.value == (names if count == 5 else [*names, "…"])
        assert len(issue.value) == shown


def test_a_cycle_among_new_tasks_is_named() -> None:
    tasks = [{"id": name, "processors": 1, "parents": [parent]} for name, parent in ("ab", "bc", "ca")]
    found = refused(InvalidInput, queued=[{"id": "first", "processors": 1}, *tasks])
    assert [pointer for pointer in found if pointer.endswith("/parents")]
    assert "a → " in next(iter(found.values()))


def test_dependencies_and_ids_are_bounded_in_what_a_report_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dependencies, and twelve bytes of the ids waits, runs, é and b, are refused one below, not at, the limit."""
    parts: Report = {
        "queued": [{"id": "é", "processors": 1, "parents": ["waits"]}],
        "running": [{"id": "b", "processors": 1, "node": "slow-0", "start": 25, "parents": ["old"]}],
    }
    state = after(*QUEUE)
    for limit, count in (("MOST_EDGES", 2), ("MOST_NAMES", 12)):
        with monkeypatch.context() as patched:
            patched.setattr(module, limit, count)
            advance(LAYOUT, state, converted(delta(**parts), QueueReport))
            patched.setattr(module, limit, count - 1)
            with pytest.raises(InvalidInput) as caught:
                advance(LAYOUT, state, converted(delta(**parts), QueueReport))
            assert [(issue.pointer, issue.value) for issue in caught.value.errors] == [("/queued", count)]
            patched.setattr(module, limit, 0)
            advance(LAYOUT, state, converted(delta(), QueueReport))  # nothing is added


def test_a_full_queue_takes_reports_that_add_nothing_and_says_how_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = after(*QUEUE)
    monkeypatch.setattr(module, "MOST_TASKS", 1)
    advance(LAYOUT, state, converted(delta(), QueueReport))
    parts = delta(queued=[{"id": "new", "processors": 1}], withdrawn=["waits"])
    with pytest.raises(InvalidInput) as caught:
        advance(LAYOUT, state, converted(parts, QueueReport))
    assert [issue.value for issue in caught.value.errors] == [2]


def test_a_task_that_begins_when_its_node_was_ordered_or_failed_finds_it_up() -> None:
    begun = delta(40, running=[{"id": "waits", "node": "slow-1", "start": 35}])
    for node, since in (({"state": "up", "since": 22}, 22), ({"state": "failed", "since": 22}, 22), (None, 35)):
        nodes = [] if node is None else [{"name": "slow-1", **node}]
        assert after(*QUEUE, delta(nodes=nodes), begun).nodes[SLOWER] == (UP, since)


def test_the_values_of_issues_are_in_the_units_of_the_report() -> None:
    state = after(*QUEUE)
    runs = {**RUNS, "id": "b", "processors": 3, "memory_gb": 6}
    with pytest.raises(InvalidInput) as caught:
        advance(LAYOUT, state, converted(delta(running=[runs]), QueueReport))
    assert [(issue.message.split(":")[0], issue.value) for issue in caught.value.errors] == [
        ("must be at most 4 processors on slow-0", 5),
        ("must be at most 8 GB of memory on slow-0", 10),
    ]


def test_submissions_are_remembered_with_what_is_known_of_them() -> None:
    known = {"id": "known", "processors": 2, "submit": 25, "estimate": 60, "user": "ann"}
    first, second = after(delta(queued=[known], running=[{**RUNS, "start": 26, "submit": None}])).submitted
    assert first == (25.0, 2, 60.0, "ann")
    assert (second.at, second.processors, second.user) == (26.0, 2, "bob")
    assert math.isnan(second.estimate)


def test_finished_tasks_with_an_estimate_teach_how_long_tasks_run_and_others_do_not() -> None:
    """Of three users, one with a history: each task is learnt with the history of its own user, at speed 1."""
    tasks = [
        {"id": "first", "processors": 2, "user": "ann", "estimate": 400},
        {"id": "short", "processors": 1, "user": "bob", "estimate": 0.5},
        {"id": "none", "processors": 1, "user": "eve"},
        {"id": "nobody", "processors": 1, "estimate": 400},
        {"id": "again", "processors": 2, "user": "ann", "estimate": 400},
    ]
    state = after(delta(queued=tasks))
    expected = blank(1)

    def ended(now: float, name: str, end: float) -> None:
        nonlocal state
        state = advance(
            LAYOUT,
            state,
            converted(
                delta(now, finished=[{"id": name, "node": "fast-0", "start": now - 60, "end": end}]), QueueReport
            ),
        )

    def learnt(estimate: float, processors: int, seconds: float) -> None:
        remember(expected, 0, math.log(max(estimate, 10.0)), processors, math.log(max(seconds, 10.0)))

    ended(100, "first", 90)
    learnt(400, 2, 100)  # fifty seconds at speed 2
    np.testing.assert_allclose(state.weight, expected.weight)
    ended(200, "short", 141)
    expected = expected._replace(history=blank(1).history)  # of another user
    learnt(0.5, 1, 2)
    ended(300, "none", 290)
    ended(400, "nobody", 390)
    np.testing.assert_allclose(state.weight, expected.weight)
    ended(500, "again", 480)
    expected = expected._replace(history=table([[PastTask(100.0, 400.0, 2)]]))
    learnt(400, 2, 80)
    np.testing.assert_allclose(state.weight, expected.weight)
    np.testing.assert_allclose(state.covariance, expected.covariance)
    assert {user: [task.seconds for task in tasks] for user, tasks in state.history.items()} == {
        "bob": [2.0],
        "eve": [100.0],
        "ann": [100.0, 80.0],
    }
    assert not np.allclose(state.weight, blank(1).weight)


def test_of_a_users_tasks_the_last_six_are_kept_and_the_user_seen_last_goes_last() -> None:
    names = [f"t{i}" for i in range(8)]
    tasks = [{"id": name, "processors": 1, "user": "ann"} for name in names]
    ends = [{"id": name, "node": "slow-0", "start": 40, "end": 41 + i} for i, name in enumerate(names)]
    state = after(*QUEUE, delta(queued=tasks), delta(50, finished=[*ends[:1], {"id": "runs", "end": 45}, *ends[1:]]))
    assert list(state.history) == ["bob", "ann"]
    assert [task.seconds for task in state.history["ann"]] == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def warned(state: State, now: float = 30, **parts: Any) -> list[tuple[str, Any]]:
    report = converted(delta(now, **parts), QueueReport)
    return [(issue.pointer, issue.value) for issue in implausible(advance(LAYOUT, state, report), report)]


def test_a_time_of_another_clock_is_warned_of() -> None:
    assert warned(after(*QUEUE), 1e11) == []
    assert warned(after(*QUEUE), 1.1e11) == [("/now", 1.1e11)]


@pytest.mark.parametrize(
    ("estimates", "longest"),
    [
        ([2 * 86_400.0] * 5, None),  # the median is what is just believed
        ([1.0, 1.0, *range(172_801, 172_804)], [172_803, 172_802, 172_801]),
        ([1.0, 1.0, 1.0, *range(172_801, 172_804)], None),
        ([1e6] * 4, None),  # too few to tell
        ([1e6, 2e6, 3e6, 4e6, 5e6, 6e6], [6e6, 5e6, 4e6]),
    ],
)
def test_estimates_of_days_are_warned_of(estimates: list[float], longest: list[float] | None) -> None:
    tasks = [{"id": f"t{i}", "processors": 1, "estimate": one} for i, one in enumerate(estimates)]
    found = warned(after(*QUEUE), queued=[*tasks, {"id": "unknown", "processors": 1}])
    assert found == ([] if longest is None else [("/queued", longest)])


@pytest.mark.parametrize(
    ("times", "warns"), [([10.0] * 5, False), ([10.5] * 5, True), ([99.0] * 4, False), ([1, 1, 10.5, 99, 99], True)]
)
def test_tasks_that_run_for_ten_times_their_estimates_are_warned_of(times: list[float], warns: bool) -> None:
    """The first begins at 0 on the first row; those without an estimate, and those that wait, do not count."""
    wide = Layout(
        Spec.model_validate({"name": "w", "kind": "workflow", "nodes": [{"name": "n", "processors": 9, "maximum": 1}]})
    )
    running: list[Report] = [
        {"id": f"t{i}", "processors": 1, "submit": 0, "estimate": 99 / one, "node": "n-0", "start": i and 1}
        for i, one in enumerate(times)
    ]
    running[0]["estimate"] = 100 / times[0]
    unknown: Report = {"id": "unknown", "processors": 1, "submit": 0, "node": "n-0", "start": 1}
    state = advance(wide, begin(wide), converted({"now": 1, "running": [*running, unknown]}, QueueReport))
    told = [{"id": one["id"]} for one in [*running, unknown]]
    report = converted(delta(100, running=told), QueueReport)
    found = implausible(advance(wide, state, report), report)
    assert [(issue.pointer, issue.value) for issue in found] == ([("/running", ["t0", "t1", "t2"])] if warns else [])
    if warns:
        assert "10.5 times their estimates already" in found[0].message
