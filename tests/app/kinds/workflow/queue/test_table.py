"""The table of a queue's tasks: what runs, and why the others do not."""

from __future__ import annotations

from datetime import UTC, datetime

from app.kinds.workflow.queue import Layout, Reservations, State
from app.kinds.workflow.report import clock
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.views import reasons_pending
from tests.app.kinds.workflow.queue.test_advance import FAST, LAYOUT, Report, after


def why(state: State, layout: Layout = LAYOUT) -> dict[str, str]:
    waits = [at for at, node in enumerate(state.queue.node.tolist()) if node < 0]
    found = reasons_pending(layout, state, waits)
    return {state.queue.names[at]: reason for at, reason in zip(waits, found, strict=True)}


def task(name: str, processors: int, **more: object) -> Report:
    return {"id": name, "processors": processors, "submit": 1, **more}


def test_each_pending_task_says_why_it_does_not_run() -> None:
    running = [{"id": "runs", "processors": 3, "submit": 1, "node": "slow-0", "start": 2}]
    queued = [task("wide", 4), task("next", 2), task("small", 1), task("child", 1, parents=["wide"])]
    state = after({"now": 10, "queued": queued, "running": running})
    found = why(state)
    assert found["wide"] == "needs 4 processors, at most 1 free on a node"
    assert found["next"] == "needs 2 processors, at most 1 free on a node; behind wide"
    assert found["small"] == "behind wide"
    assert found["child"] == "depends on wide"
    held = state._replace(reserved=Reservations(0, 1, {"wide": 90.0}))
    assert why(held)["wide"] == "needs 4 processors, at most 1 free on a node; reserved for 1 min 30 s of the run"
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


def test_times_are_of_the_reports_clock() -> None:
    assert clock(90.0) == "1 min 30 s of the run"
    assert clock(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) == "2026-01-01 12:00:00 UTC"
