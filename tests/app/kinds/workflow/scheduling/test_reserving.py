"""Conservative backfilling on one machine: what is reserved stays so from one decision to the next."""

from __future__ import annotations

import json

import pytest

from app.kinds.workflow.queue.advance import advance
from app.kinds.workflow.queue.report import QueueReport
from app.kinds.workflow.queue.state import State, pack, unpack
from app.kinds.workflow.scheduling import reservations
from app.kinds.workflow.scheduling.decide import Decided
from tests.app.kinds.workflow.scheduling.test_decide import POOL, after, decided, layout, placed, task

ON = layout(POOL)


def reserving(state: State, strategy: str = "sjf") -> Decided:
    return decided(ON, state, strategy, "conservative")


def went_on(state: State, **report: object) -> State:
    """After another report, through the database."""
    stored = unpack(json.loads(json.dumps(pack(state))))
    return advance(ON, stored, QueueReport.model_validate({"delta": True, **report}))


def running(name: str, start: float) -> dict[str, object]:
    return {"id": name, "node": "pool-0", "start": start}


def busy() -> State:
    """Tasks of 5 and 3 processors run, until 100 and until 50; one of 8 has the start at 100."""
    state = after(ON, {"now": 0, "queued": [task("a", 5, 100), task("b", 3, 50), task("wide", 8, 160)]})
    found = reserving(state)
    assert placed(ON, state, found) == {"a": "pool-0", "b": "pool-0"}
    assert found.state.reserved == (0, {"wide": 100.0})
    return went_on(found.state, now=1, running=[running("a", 0), running("b", 0)])


def test_shorter_tasks_that_come_later_put_nothing_off() -> None:
    state = went_on(busy(), now=2, queued=[task("short", 8, 10), task("filler", 3, 45)])
    found = reserving(state)  # by sjf the short one comes first, but its place is behind the reservation
    assert placed(ON, state, found) == {}
    assert found.state.reserved == (0, {"wide": 100.0, "short": 260.0, "filler": 50.0})
    assert found.started.window.until == 260.0
    state = went_on(found.state, now=50, finished=[{"id": "b", "end": 50}])
    found = reserving(state)  # as a task has ended, each may move forward
    assert placed(ON, state, found) == {"filler": "pool-0"}
    assert found.state.reserved == (1, {"wide": 100.0, "short": 260.0})


@pytest.mark.parametrize("now", [100.0, 130.0])
def test_what_fell_due_while_nothing_was_reported_starts_at_once(now: float) -> None:
    state = reserving(busy()).state
    state = went_on(state, now=now, finished=[{"id": "a", "end": 99}, {"id": "b", "end": 50}])
    assert placed(ON, state, reserving(state)) == {"wide": "pool-0"}


def test_a_task_that_runs_longer_than_expected_puts_reservations_off_and_they_stay_in_order() -> None:
    state = went_on(reserving(busy()).state, now=120, finished=[{"id": "b", "end": 50}])
    found = reserving(state)
    assert placed(ON, state, found) == {}
    assert found.state.reserved[1]["wide"] == pytest.approx(120 + 0.1 * 120)


def test_what_is_withdrawn_leaves_its_place_to_others() -> None:
    state = reserving(went_on(busy(), now=2, queued=[task("short", 8, 10)])).state
    found = reserving(went_on(state, now=3, withdrawn=["wide"]))
    assert found.state.reserved[1] == {"short": 100.0}


def test_no_more_than_so_many_hold_a_reservation() -> None:
    many = [task(f"t{n}", 8, 10 + n) for n in range(reservations.MOST + 50)]
    found = reserving(after(ON, {"now": 0, "queued": many}))
    assert len(found.state.reserved[1]) == reservations.MOST
    assert "t100" in found.state.reserved[1]  # t0 starts
    assert "t101" not in found.state.reserved[1]
    state = went_on(found.state, now=10, running=[], finished=[{"id": "t0", "end": 10, "node": "pool-0", "start": 0}])
    after_one = reserving(state)
    assert placed(ON, state, after_one) == {"t1": "pool-0"}
    assert "t101" in after_one.state.reserved[1]
