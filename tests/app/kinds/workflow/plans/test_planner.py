"""Plans of live queues: kept while reality keeps to them, else replaced with the reason, and followed by node."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from app.kinds.fields import converted
from app.kinds.workflow.advance import advance
from app.kinds.workflow.decide import PlanChoice, follow_plan, make_plan
from app.kinds.workflow.plan_search import MOST_TASKS, SearchUnavailableError, left_of
from app.kinds.workflow.plans import QueuePlan, Remaining, SearchResult, decode, encode
from app.kinds.workflow.queue import Layout, QueueReport, State, pack, unpack
from app.kinds.workflow.scheduling.situation import QueueSituation
from tests.app.kinds.workflow.scheduling.test_decide import after, layout, named, placed, task

TWO = [
    {"name": "slow", "processors": 1, "minimum": 1, "maximum": 1, "bandwidth_mbps": 1.0},
    {"name": "fast", "processors": 1, "speed": 2.0, "minimum": 1, "maximum": 1, "bandwidth_mbps": 1.0},
]
CHAIN: dict[str, Any] = {
    "now": 0,
    "queued": [task("a"), task("b"), task("c", parents=[{"task": "a", "bytes": 5e6}]), task("d", parents=["b", "c"])],
}


def one_after_another(left: Remaining) -> SearchResult:
    """All that waits, in its order, on the last node that it may run on; each takes what it costs there."""
    last = len(left.slots) - 1 - np.argmax(np.isfinite(left.cost[:, ::-1]), axis=1)
    node = np.where(np.arange(len(left.node)) < left.fixed, left.node, last)
    seconds = np.where(np.arange(len(node)) < left.fixed, 0.0, left.cost[np.arange(len(node)), node])
    end = np.cumsum(seconds) + (left.end.max() if left.fixed else 0.0)
    end[: left.fixed] = left.end
    return SearchResult(np.arange(len(node)), node, end - seconds, end, 300.0, 310.0, better=True, took=0.14)


def none(left: Remaining) -> SearchResult:
    raise SearchUnavailableError("another search is running")


def planned_of(on: Layout, state: State) -> PlanChoice:
    return make_plan(QueueSituation(on, state), one_after_another)


def with_plan(on: Layout) -> State:
    state = after(on, CHAIN)
    return state._replace(plan=planned_of(on, state).plan)


def went_on(on: Layout, state: State, **report: Any) -> State:
    return advance(on, state, converted({"delta": True, **report}, QueueReport))


def test_the_first_plan_says_what_it_is_worth() -> None:
    on = layout(TWO)
    plan, text = planned_of(on, after(on, CHAIN))
    assert plan is not None
    assert [*plan.turns] == ["a", "b", "c", "d"]
    assert text == "plan of 3 min 20 s, 33 % shorter than HEFT (5 min), search 140 ms; reason: first plan"


def test_what_is_followed_starts_on_its_node_alone_and_in_turn() -> None:
    on = layout(TWO)
    state = with_plan(on)
    assert state.plan is not None
    result = follow_plan(QueueSituation(on, state), state.plan)
    assert placed(on, state, result) == {"a": "fast-0"}
    assert result.order == [0, 1]  # b waits for its turn, though slow-0 is idle


def test_a_plan_survives_the_database() -> None:
    state = went_on(on := layout(TWO), with_plan(on), now=1, running=[{"id": "a", "node": "fast-0", "start": 0}])
    again = unpack(json.loads(json.dumps(pack(state))))
    assert again.plan == state.plan
    assert isinstance(again.plan, QueuePlan)


def test_what_ends_as_planned_changes_nothing() -> None:
    on = layout(TWO)
    state = went_on(on, with_plan(on), now=52, finished=[{"id": "a", "end": 52, "node": "fast-0", "start": 0}])
    assert state.plan is not None
    assert [*state.plan.turns] == ["b", "c", "d"]
    plan_choice = planned_of(on, state)
    assert (plan_choice.plan, plan_choice.plan and plan_choice.plan.because) == (state.plan, "first plan")


@pytest.mark.parametrize(
    ("report", "because"),
    [
        ({"now": 90, "finished": [{"id": "a", "end": 80, "node": "fast-0", "start": 0}]}, "a ended 30 s later"),
        ({"now": 30, "finished": [{"id": "a", "end": 30, "node": "fast-0", "start": 0}]}, "a ended 20 s earlier"),
        ({"now": 70, "running": [{"id": "a", "node": "fast-0", "start": 0}]}, "a will end 27 s later"),
        ({"now": 5, "running": [{"id": "a", "node": "slow-0", "start": 0}]}, "a runs on slow-0 instead of fast-0"),
        ({"now": 70, "queued": [task("e", parents=["d"])]}, "e is new"),
        ({"now": 70, "queued": [task(name) for name in "efgh"]}, "e, f, g … are new"),
        ({"now": 40}, "a is pending 40 s longer than planned"),
    ],
)
def test_departures_make_a_new_plan_with_their_reason(report: dict[str, Any], because: str) -> None:
    on = layout(TWO)
    state = with_plan(on)
    plan, text = planned_of(on, went_on(on, state, **report))
    assert plan is not None
    assert plan.created_at == report["now"]
    assert because in plan.because
    assert because in text


def test_a_lost_node_breaks_a_plan_and_one_more_replaces_it() -> None:
    on = layout([*TWO[:1], {**TWO[1], "minimum": 0, "maximum": 2}])
    state = after(on, {**CHAIN, "nodes": [{"name": name, "state": "up"} for name in ("slow-0", "fast-0")]})
    state = state._replace(plan=planned_of(on, state).plan)
    lost = went_on(on, state, now=1, nodes=[{"name": "fast-0", "state": "failed"}])
    plan = planned_of(on, lost).plan
    assert plan is not None
    assert (plan.because, named(on, list(plan.nodes))) == ("fast-0 was lost", ["slow-0"])
    more = went_on(on, state, now=1, nodes=[{"name": "fast-1", "state": "up"}])
    plan = planned_of(on, more).plan
    assert plan is not None
    assert plan.because == "fast-1 was added"


def test_what_is_said_to_run_on_a_failed_node_holds_nobody_up() -> None:
    on = layout(TWO)
    state = went_on(on, with_plan(on), now=1, running=[{"id": "b", "node": "fast-0", "start": 0}])
    state = went_on(on, state, now=2, nodes=[{"name": "fast-0", "state": "failed"}])
    plan = planned_of(on, state).plan
    assert plan is not None
    assert plan.because == "fast-0 was lost"
    assert named(on, list(plan.nodes)) == ["slow-0"]
    left, names, nodes = left_of(QueueSituation(on, state), plan)
    assert named(on, nodes) == ["slow-0", "fast-0"]
    assert np.isinf(left.cost[names.index("a"), 1])
    moved = {name: turn._replace(node=0 if name != "b" else 1) for name, turn in plan.turns.items()}
    again = planned_of(on, state._replace(plan=plan._replace(turns=moved)))
    assert again.plan is not None
    assert again.plan.created_at == 2


def test_where_all_runs_nothing_is_searched_for_however_late_it_is() -> None:
    def forbidden(_: Remaining) -> SearchResult:
        raise AssertionError("nothing waits")

    on = layout(TWO)
    queued = {"now": 0, "queued": [task("a"), task("b", parents=["a"])]}
    state = after(on, queued)
    state = state._replace(plan=planned_of(on, state).plan)
    state = went_on(on, state, now=50, finished=[{"id": "a", "end": 50, "node": "fast-0", "start": 0}])
    state = went_on(on, state, now=900, running=[{"id": "b", "node": "slow-0", "start": 51}])
    assert make_plan(QueueSituation(on, state), forbidden).plan == state.plan
    none_left = make_plan(QueueSituation(on, state._replace(plan=None)), forbidden)
    assert none_left == (None, "no pending task to plan")


def test_without_a_search_a_late_plan_goes_on_and_a_broken_one_does_not() -> None:
    on = layout(TWO)
    state = with_plan(on)
    late = make_plan(QueueSituation(on, went_on(on, state, now=40)), none)
    assert late.plan == state.plan
    assert "can't be renewed (a is pending 40 s longer than planned): another search is running" in late.text
    new = make_plan(QueueSituation(on, went_on(on, state, now=1, queued=[task("e")])), none)
    assert new == (None, "HEFT without a plan: another search is running")


def test_what_can_not_be_planned_is_said() -> None:
    on = layout([{"name": "n", "processors": 1, "minimum": 0, "maximum": 2}])
    assert planned_of(on, after(on, CHAIN)).text == "HEFT without a plan: a fits no rented node"
    many = {"now": 0, "queued": [task("a"), *(task(f"t{k}", parents=["a"]) for k in range(MOST_TASKS))]}
    text = planned_of(layout(TWO), after(layout(TWO), many)).text
    assert text == "HEFT without a plan: 2,001 tasks exceed the plan search's maximum of 2,000"


def test_what_is_left_has_ended_and_running_tasks_first() -> None:
    on = layout(TWO)
    state = went_on(
        on,
        with_plan(on),
        now=20,
        running=[{"id": "b", "node": "slow-0", "start": 5}],
        finished=[{"id": "a", "end": 20, "node": "fast-0", "start": 0}],
    )
    left, names, nodes = left_of(QueueSituation(on, state), state.plan)
    assert (names, named(on, nodes)) == (["a", "b", "c", "d"], ["slow-0", "fast-0"])
    assert left.fixed == 2
    assert left.end.tolist() == [0, 85]
    assert left.processors.tolist() == [0, 1, 1, 1]
    assert left.cost.tolist() == [[np.inf, 0], [0, np.inf], [100, 50], [100, 50]]
    assert left.node.tolist() == [1, 0, 1, 1]
    assert left.order.tolist() == [0, 1, 2, 3]
    edges = {(left.parents[e], k): left.data[e] for k in range(4) for e in range(*left.parent_start[k : k + 2])}
    assert edges == {(0, 2): 5e6, (1, 3): 0, (2, 3): 0}
    again = Remaining(**decode(encode(left)))
    assert all(np.array_equal(value, vars(again)[name]) for name, value in vars(left).items())


def test_a_users_limit_holds_up_nobody_else() -> None:
    on = layout(TWO, limits_per_user={"processors": 1})
    queued = [task("wide", user="u"), task("more", user="u"), task("other", user="v"), task("end", parents=["wide"])]
    state = after(on, {"now": 0, "queued": queued})
    state = went_on(on, state, now=1, running=[{"id": "wide", "node": "slow-0", "start": 0}])
    plan = planned_of(on, state).plan
    assert plan is not None
    result = follow_plan(QueueSituation(on, state), plan)
    assert placed(on, state, result) == {"other": "fast-0"}


def test_nodes_that_a_plan_soon_needs_are_not_given_back() -> None:
    types = [TWO[0], {**TWO[1], "minimum": 0, "startup_seconds": 60, "billing_seconds": 60}]
    on = layout(types)
    up = [{"name": name, "state": "up", "since": 0} for name in ("slow-0", "fast-0")]
    state = after(on, {"now": 0, "queued": [task("a", estimate=30), task("b", parents=["a"])], "nodes": up})
    state = went_on(on, state, now=59, running=[{"id": "a", "node": "slow-0", "start": 40}])
    plan = planned_of(on, state).plan
    assert plan is not None
    assert follow_plan(QueueSituation(on, state), plan).renting.release == []
    later = {name: turn._replace(start=turn.start + 1000) for name, turn in plan.turns.items()}
    assert named(on, follow_plan(QueueSituation(on, state), plan._replace(turns=later)).renting.release) == ["fast-0"]
