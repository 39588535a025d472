"""Decisions on queues: mechanisms on one node and on several, nodes ordered and given back, what always holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.kinds.fields import converted
from app.kinds.workflow.advance import advance
from app.kinds.workflow.queue import STARTING, UP, WAITING, Layout, QueueReport, State, begin
from app.kinds.workflow.scheduling.decide import DispatchDecision, by_strategy, decide, is_pool
from app.kinds.workflow.scheduling.fleet import decide as on_fleet
from app.kinds.workflow.scheduling.situation import RANKS, QueueSituation
from app.kinds.workflow.spec import STRATEGIES, Spec

POOL = [{"name": "pool", "processors": 8, "minimum": 1, "maximum": 1}]
CLOUD = [
    {"name": "small", "processors": 2, "memory_gb": 4, "price_per_hour": 1.0, "startup_seconds": 60, "maximum": 4},
    {
        "name": "large",
        "processors": 8,
        "memory_gb": 32,
        "price_per_hour": 6.0,
        "speed": 2.0,
        "billing_seconds": 3600,
        "startup_seconds": 60,
        "minimum": 1,
        "maximum": 3,
    },
]


def layout(nodes: list[dict[str, Any]], **more: Any) -> Layout:
    return Layout(Spec.model_validate({"name": "w", "kind": "workflow", "nodes": nodes, **more}))


def task(name: str, processors: int = 1, estimate: float = 100.0, **more: Any) -> dict[str, Any]:
    return {"id": name, "processors": processors, "estimate": estimate, **more}


def after(on: Layout, *reports: dict[str, Any]) -> State:
    state = begin(on)
    for report in reports:
        state = advance(on, state, converted(report, QueueReport))
    return state


def decided(on: Layout, state: State, strategy: str = "fcfs", backfilling: str = "easy") -> DispatchDecision:
    return decide(QueueSituation(on, state), by_strategy(strategy, backfilling))


def placed(on: Layout, state: State, decision: DispatchDecision) -> dict[str, str]:
    return {state.queue.names[row]: on.names[node] for row, node in decision.started.starts}


def named(on: Layout, nodes: list[int]) -> list[str]:
    return [on.names[node] for node in nodes]


def test_a_task_goes_where_it_ends_first_and_a_thrifty_one_where_it_costs_least() -> None:
    on = layout(CLOUD)
    up = [{"name": "small-0", "state": "up"}, {"name": "large-0", "state": "up"}]
    state = after(on, {"now": 0, "queued": [task("a")], "nodes": up})
    assert placed(on, state, decided(on, state, "heft")) == {"a": "large-0"}
    assert placed(on, state, decided(on, state, "cheapest")) == {"a": "small-0"}


def test_a_childs_data_draw_it_to_its_parents_node() -> None:
    nodes = [{"name": "n", "processors": 2, "minimum": 3, "maximum": 3, "bandwidth_mbps": 1.0}]
    on = layout(nodes)
    child = task("child", parents=[{"task": "a", "bytes": 5e7}])
    state = after(
        on,
        {"now": 0, "queued": [task("a"), child]},
        {"now": 1, "delta": True, "running": [{"id": "a", "node": "n-2", "start": 0}]},
        {"now": 9, "delta": True, "finished": [{"id": "a", "end": 9}]},
    )
    assert placed(on, state, decided(on, state, "heft")) == {"child": "n-2"}


@pytest.mark.parametrize(
    ("backfilling", "starts"),
    [
        ("none", {"a": "large-0"}),
        ("rls", {"a": "large-0", "short": "large-0", "other": "small-0"}),
        ("easy", {"a": "large-0", "short": "large-0", "other": "small-0"}),
        ("conservative", {"a": "large-0", "short": "large-0", "other": "small-0"}),
    ],
)
def test_others_overtake_what_waits_where_they_do_not_delay_it(backfilling: str, starts: dict[str, str]) -> None:
    on = layout(CLOUD)
    queued = [task("a", 6, 200), task("head", 8), task("short", 2, 199, memory_gb=8), task("other", 2, 5000)]
    nodes = [{"name": "large-0", "state": "up"}, {"name": "small-0", "state": "up"}]
    state = after(on, {"now": 0, "queued": queued, "nodes": nodes})
    decision = decided(on, state, "fcfs", backfilling)
    assert placed(on, state, decision) == starts
    window = decision.started.window
    assert (state.queue.names[window.task], on.names[window.node], window.until) == ("head", "large-0", 100.0)


def test_what_no_rented_node_can_hold_blocks_none_and_a_node_is_ordered_for_it() -> None:
    on = layout([{**CLOUD[0], "minimum": 1}, {**CLOUD[1], "minimum": 0}])
    state = after(on, {"now": 0, "queued": [task("wide", 8, 1), task("b", 2)]})
    decision = decided(on, state)
    assert placed(on, state, decision) == {"b": "small-0"}
    assert decision.started.window.node == -1
    assert named(on, decision.renting.start) == ["large-0"]


def test_nodes_are_ordered_when_the_work_that_waits_pays_their_start_up() -> None:
    on = layout([{**CLOUD[0], "minimum": 1}])
    busy = task("busy", 2, 10_000)
    running = [{**busy, "node": "small-0", "start": 0}]
    short = after(on, {"now": 1, "running": running, "queued": [task("s", 2, 30)]})
    assert named(on, decided(on, short).renting.start) == []
    long = after(on, {"now": 1, "running": running, "queued": [task("s", 2, 60), task("t", 2, 500)]})
    assert named(on, decided(on, long).renting.start) == ["small-1", "small-2"]
    coming = after(
        on,
        {"now": 1, "running": running, "queued": [task("s", 2, 60), task("t", 2, 500)]},
        {"now": 2, "delta": True, "nodes": [{"name": "small-1", "state": "starting"}]},
    )
    assert coming.nodes[1] == (STARTING, 2)
    decision = decided(on, coming)
    assert named(on, decision.renting.start) == ["small-2"]
    assert placed(on, coming, decision) == {}
    assert decision.started.window.until == 62.0


def test_idle_nodes_are_given_back_at_the_end_of_the_period_that_is_paid_for() -> None:
    on = layout(CLOUD)

    def at(now: float, **more: Any) -> list[str]:
        up = [{"name": name, "state": "up", "since": 0} for name in ("large-0", "large-1", "small-3")]
        state = after(on, {"now": now - 60, "nodes": up, "delta": True}, {"now": now, "delta": True, **more})
        return named(on, decided(on, state).renting.release)

    assert at(1000) == ["small-3"]
    assert at(3570) == ["large-1", "small-3"]
    current = {"running": [{**task("a"), "node": "small-3", "start": 3550}]}
    assert at(3570, **current) == ["large-1"]


def test_a_failed_node_takes_nothing_and_its_task_waits_again() -> None:
    on = layout([{**POOL[0], "name": "n", "minimum": 2, "maximum": 2}])
    state = after(
        on,
        {"now": 0, "queued": [task("a", 8)]},
        {"now": 1, "delta": True, "running": [{"id": "a", "node": "n-0", "start": 0}]},
        {"now": 2, "delta": True, "queued": [{"id": "a"}], "nodes": [{"name": "n-0", "state": "failed"}]},
    )
    assert state.queue.node.tolist() == [WAITING]
    assert placed(on, state, decided(on, state)) == {"a": "n-1"}


def test_limits_of_users_hold_for_what_runs_and_what_starts() -> None:
    on = layout(POOL, limits_per_user={"running_tasks": 2, "processors": 3})
    queued = [task("a", 2, user="ann"), task("b", 2, user="ann"), task("c", 1, user="ann"), task("d", 1, user="ann")]
    state = after(on, {"now": 0, "queued": [*queued, task("e", 4, user="bob"), task("f", 3)]})
    assert list(placed(on, state, decided(on, state))) == ["a", "c", "f"]
    several = layout([{**POOL[0], "minimum": 2, "maximum": 2}], limits_per_user={"running_tasks": 2, "processors": 3})
    state = after(several, {"now": 0, "queued": [*queued, task("f", 3)]})
    assert list(placed(several, state, decided(several, state))) == ["a", "c", "f"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_committed_head_is_kept_to_under_none_and_rls_and_chosen_anew_under_others(nodes: int) -> None:
    on = layout([{**POOL[0], "minimum": nodes, "maximum": nodes}])
    running = [{**task(f"r{i}", 6, 100), "node": f"pool-{i}", "start": 0} for i in range(nodes)]
    state = after(on, {"now": 0, "running": running, "queued": [task("wide", 8, 50)]})
    for backfilling, waits in (("none", "wide"), ("rls", "wide"), ("easy", "wider"), ("uncommitted", "wider")):
        state = decided(on, state, "sjf", backfilling).state
        more = {"now": 1, "delta": True, "queued": [task("wider", 8, 10)]}
        later = advance(on, state, converted(more, QueueReport))
        decision = decided(on, later, "sjf", backfilling)
        assert later.queue.names[decision.started.window.task] == waits


SIZES = st.tuples(st.integers(1, 8), st.integers(1, 500), st.integers(0, 20))
FEW = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(running=st.lists(SIZES, max_size=4), queued=st.lists(SIZES, max_size=12), mechanism=st.sampled_from(range(3)))
def test_one_node_of_several_is_decided_for_as_the_pool_is(
    running: list[tuple[int, int, int]], queued: list[tuple[int, int, int]], mechanism: int
) -> None:
    """The decision of the simulators, and that for several nodes, on one node: the same starts, the same window."""
    on, free, ran = layout(POOL), 8, []
    for i, (need, length, start) in enumerate(running):
        if need <= free:
            free -= need
            ran.append({**task(f"r{i}", need, length), "node": "pool-0", "start": start})
    waits = [task(f"q{i}", need, length, submit=at) for i, (need, length, at) in enumerate(queued)]
    state = after(on, {"now": 20, "running": ran, "queued": waits})
    situation = QueueSituation(on, state)
    assert is_pool(situation)
    pool = decided(on, state, "sjf", ("none", "rls", "easy")[mechanism]).started
    order = situation.ready[np.argsort(situation.expected[situation.ready], kind="stable")].tolist()
    fill = situation.ready[np.argsort(state.queue.submit[situation.ready], kind="stable")].tolist()
    several = on_fleet(situation, mechanism, order, fill, -1, thrifty=False)
    inside = [row for row, _ in several.starts]
    if mechanism == 1:  # there, what ends with the head's start overtakes
        inside = [row for row in inside if situation.now + situation.expected[row] != pool.window.until]
        assert set(inside) <= {row for row, _ in pool.starts} | set(several.overtook)
    else:
        assert inside == [row for row, _ in pool.starts]
    assert several.window[:3] == pool.window[:3] or several.window.task == pool.window.task == -1


@FEW
@given(
    queued=st.lists(SIZES, min_size=1, max_size=15),
    strategy=st.sampled_from(STRATEGIES),
    backfilling=st.sampled_from(["none", "rls", "easy", "conservative", "uncommitted"]),
    up=st.integers(0, 7),
    links=st.lists(st.integers(0, 14), max_size=8),
)
def test_no_decision_breaks_capacity_precedence_or_a_start_up(
    queued: list[tuple[int, int, int]], strategy: str, backfilling: str, up: int, links: list[int]
) -> None:
    on = layout(CLOUD)
    parents: dict[int, list[str]] = {}
    for child, parent in pairwise(links):
        if parent < child < len(queued):
            parents.setdefault(child, [f"t{parent}"])
    tasks = [
        task(f"t{i}", need, length, memory_gb=at / 10, parents=parents.get(i, []))
        for i, (need, length, at) in enumerate(queued)
    ]
    nodes = [{"name": name, "state": "up" if i % 2 else "starting"} for i, name in enumerate(on.names[:up])]
    state = after(on, {"now": 30, "queued": tasks, "nodes": nodes})
    decision = decided(on, state, strategy, backfilling)
    need = np.zeros(len(on.names))
    for row, node in decision.started.starts:
        assert state.nodes[node][0] == UP
        assert not state.queue.inputs[row]
        need[node] += state.queue.processors[row]
    assert (need <= on.nodes.processors).all()
    assert len({row for row, _ in decision.started.starts}) == len(decision.started.starts)
    assert not set(decision.renting.start) & set(state.nodes)
    assert not set(decision.renting.release) & {node for _, node in decision.started.starts}


def test_every_strategy_of_the_spec_is_known_here() -> None:
    assert set(STRATEGIES) >= set(RANKS)
    on = layout(CLOUD)
    chain = [task("a", 1, 10), task("b", 1, 20), task("c", 1, 30, parents=["a"]), task("d", 2, 500, deadline=600)]
    state = after(on, {"now": 0, "queued": chain})
    first = {name: state.queue.names[decided(on, state, name).order[0]] for name in STRATEGIES}
    assert (first["heft"], first["cpop"], first["sjf"], first["deadline"]) == ("d", "d", "a", "d")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_small_task_that_comes_later_goes_first_where_no_task_is_committed_but_nothing_is_backfilled(
    nodes: int,
) -> None:
    on = layout([{**POOL[0], "minimum": nodes, "maximum": nodes}])
    running = [{**task(f"r{i}", 6, 100), "node": f"pool-{i}", "start": 0} for i in range(nodes)]
    first = after(on, {"now": 0, "running": running, "queued": [task("wide", 8, 50), task("long", 2, 900)]})
    for backfilling, starts in (("none", []), ("uncommitted", ["small"])):
        before = decided(on, first, "sjf", backfilling)
        assert placed(on, first, before) == {}  # ``long`` would fit, behind ``wide``
        later = advance(
            on, before.state, converted({"now": 1, "delta": True, "queued": [task("small", 2, 10)]}, QueueReport)
        )
        assert list(placed(on, later, decided(on, later, "sjf", backfilling))) == starts


@pytest.mark.parametrize(
    ("strategy", "order", "second"), [("saf-predicted", None, "b"), ("saf-predicted", "fcfs", "a")]
)
def test_strategies_by_predicted_run_times_backfill_in_their_own_order_unless_another_is_chosen(
    strategy: str, order: str | None, second: str
) -> None:
    on = layout(POOL)
    running = [{**task("r", 6, 100), "node": "pool-0", "start": 0}]
    queued = [task("wide", 8, 1), task("a", 2, 90, submit=1), task("b", 2, 50, submit=2)]
    state = after(on, {"now": 3, "running": running, "queued": queued})
    decision = decide(QueueSituation(on, state), by_strategy("saf-predicted", "easy", order))
    assert list(placed(on, state, decision)) == [second]


def test_a_spec_that_was_stored_when_fcfs_was_the_default_is_the_one_that_leaves_the_order_out() -> None:
    """Otherwise to register a workload again would be refused after an upgrade."""
    for strategy in ("sjf", "heft", "agent"):
        stored = layout(POOL, strategy=strategy, backfill_order="fcfs").spec
        assert stored == layout(POOL, strategy=strategy).spec
        assert stored != layout(POOL, strategy=strategy, backfill_order="sjf").spec
    assert layout(POOL, strategy="saf-predicted", backfill_order="fcfs").spec.backfill_order == "fcfs"


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_lookahead_takes_no_backfilling_order_as_it_simulates_its_own(order: str) -> None:
    assert layout(POOL, strategy="lookahead").spec.backfill_order is None
    assert layout(POOL, strategy="saf-predicted", backfill_order=order).spec.backfill_order == order
    with pytest.raises(ValidationError, match=r"backfill_order\n.*must be null with strategy lookahead"):
        layout(POOL, strategy="lookahead", backfill_order=order)
