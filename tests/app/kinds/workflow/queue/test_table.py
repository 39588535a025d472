"""The table of a queue's tasks: what runs, and why the others do not."""

from __future__ import annotations

import dataclasses
import re

from app.kinds.registry import KINDS
from app.kinds.workflow.queue import STARTING, UP, Layout, Reservations, State
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.views import reasons_pending
from tests.app.kinds.workflow.queue.test_advance import FAST, LAYOUT, SLOWER, Report, after
from tests.contracts import test_kind as kit


def why(state: State, layout: Layout = LAYOUT) -> dict[str, str]:
    waits = [at for at, node in enumerate(state.queue.node.tolist()) if node < 0]
    pending = reasons_pending(layout, state, waits)
    return {state.queue.names[at]: reason for at, reason in zip(waits, pending, strict=True)}


def task(name: str, processors: int, **more: object) -> Report:
    return {"id": name, "processors": processors, "submit": 1, **more}


def test_each_pending_task_says_why_it_does_not_run() -> None:
    running = [{"id": "runs", "processors": 3, "submit": 1, "node": "slow-0", "start": 2}]
    queued = [task("wide", 4), task("next", 2), task("small", 1), task("child", 1, parents=["wide"])]
    state = after({"now": 10, "queued": queued, "running": running})
    reason = why(state)
    assert reason["wide"] == "needs 4 processors, at most 1 free on a node"
    assert reason["next"] == "needs 2 processors, at most 1 free on a node; behind wide"
    assert reason["small"] == "behind wide"
    assert reason["child"] == "depends on wide"
    current = state._replace(reserved=Reservations(0, 1, {"wide": 90.0}))
    assert why(current)["wide"] == "needs 4 processors, at most 1 free on a node; reserved for 1 min 30 s of the run"
    committed = state._replace(head=("wide", 1_767_268_800.0, 0))
    assert why(committed)["wide"].endswith("reserved for 2026-01-01 12:00:00 UTC")


def test_a_task_that_no_node_fits_says_so() -> None:
    queued = [task("wide", 4), task("heavy", 2, memory_gb=12)]
    state = after({"now": 10, "queued": queued, "nodes": [{"name": "fast-0", "state": "failed"}]})
    assert why(state)["heavy"] == "can't start: every node that it fits has failed"
    node = {"name": "n", "processors": 2, "maximum": 1}
    small = Layout(Spec.model_validate({"name": "s", "kind": "workflow", "nodes": [node]}))
    alone = state._replace(nodes={})
    assert why(alone, small)["wide"] == "can never start: needs 4 processors, a node has 2"
    assert FAST in state.nodes


def test_only_nodes_that_fit_a_task_count_and_their_memory_does() -> None:
    running = [
        {"id": "one", "processors": 1, "submit": 1, "node": "slow-0", "start": 2, "memory_gb": 6},
        {"id": "two", "processors": 1, "submit": 1, "node": "fast-0", "start": 2, "memory_gb": 2},
    ]
    queued = [task("heavy", 2, memory_gb=12), task("light", 2, memory_gb=4), task("least", 1, memory_gb=1)]
    state = after({"now": 10, "queued": queued, "running": running, "nodes": [{"name": "fast-0", "state": "up"}]})
    reason = why(state)
    assert reason["heavy"] == "needs 2 processors, at most 1 free on a node"  # slow-0 has 3, but not the memory
    assert reason["light"] == "needs 4 GB, at most 2 free on a node with enough processors; behind heavy"
    assert reason["least"] == "behind heavy"
    ordered = why(state._replace(nodes={**state.nodes, SLOWER: (STARTING, 9.0), FAST: (UP, 0.0)}))
    assert ordered["heavy"] == reason["heavy"]  # the node that starts does not fit it
    assert "; slow-1 is starting; " in ordered["light"]


def test_failed_tasks_say_where_when_and_why_also_once_the_run_has_ended() -> None:
    node = {**KINDS["workflow"].example.spec["nodes"][0], "minimum": 1, "maximum": 1, "processors": 4}
    tasks = [{"id": f"t{at}", "processors": 1} for at in range(3)]
    ended = [
        {"id": "t0", "end": 40, "state": "failed", "reason": "exit status 1: out of memory"},
        {"id": "t1", "end": 50, "state": "finished"},
        {"id": "t2", "end": 60, "state": "failed"},
    ]
    reports: list[Report] = [{"now": 10, "queued": tasks}]
    begun = [{"id": one["id"], "node": "large-0", "start": 15} for one in ended]
    reports += [{"now": 20, "delta": True, "running": begun}]
    reports += [{"now": one["end"], "delta": True, "finished": [one]} for one in ended]
    kind = KINDS["workflow"]
    kind = dataclasses.replace(
        kind, example=kind.example._replace(spec={**kind.example.spec, "nodes": [node]}, reports=reports)
    )
    on = kit.compiled(kind)
    assert kind.views is not None
    assert [one.title for one in kind.views.tables(on, kit.TestViews().shown(kind, on, 1))] == ["Tasks"]
    shown = kit.TestViews().shown(kind, on, 5)
    for history in (shown, shown._replace(live=False)):
        (table,) = kind.views.tables(on, history)
        assert table.title == "Failed tasks"
        assert table.rows == [
            ["t2", "large-0", "1 min of the run", "not reported"],
            ["t0", "large-0", "40 s of the run", "exit status 1: out of memory"],
        ]


def test_the_table_is_of_the_tasks_after_the_decision() -> None:
    node = {**KINDS["workflow"].example.spec["nodes"][0], "minimum": 1, "maximum": 1, "processors": 4}
    tasks = [{"id": f"t{at}", "processors": 2, "estimate": 100.0} for at in range(5)]
    now = 1.76e12  # of a clock in milliseconds
    reports: list[Report] = [{"now": now, "queued": tasks}, {"now": now + 50, "delta": True}]
    kind = KINDS["workflow"]
    example = kind.example._replace(spec={**kind.example.spec, "nodes": [node]}, reports=reports)
    kind = dataclasses.replace(kind, example=example)
    on = kit.compiled(kind)
    assert kind.views is not None
    for reported in (1, 2):
        shown = kit.TestViews().shown(kind, on, reported)
        (table,), facts = kind.views.tables(on, shown), {fact.name: fact.value for fact in kind.views.facts(on, shown)}
        assert [f"{facts['tasks']}.", "2 running, 3 pending."] == [table.caption] * 2
        rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
        assert [name for name, row in rows.items() if row["State"] == "running"] == ["t0", "t1"]
        assert rows["t0"]["Processors"].startswith("2 on ")
        assert re.match(r"for (0|50) s( \(|$)", rows["t0"]["Progress"])
        assert rows["t2"]["Why pending"].startswith("needs 2 processors, none free on nodes it fits")
        assert facts["time"].endswith(" of the run")
        assert len(shown.state.queue) == 5
