"""Conservative backfilling on one machine: what is reserved stays so from one decision to the next."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app.kinds.fields import converted
from app.kinds.workflow.advance import advance
from app.kinds.workflow.queue import QueueReport, State, pack, unpack
from app.kinds.workflow.scheduling import dispatch
from app.kinds.workflow.scheduling.decide import DispatchDecision
from tests.app.kinds.workflow.scheduling.test_decide import POOL, after, decided, layout, placed, task

ON = layout(POOL)


def reserving(state: State, strategy: str = "sjf") -> DispatchDecision:
    return decided(ON, state, strategy, "conservative")


def went_on(state: State, **report: object) -> State:
    """After another report, through the database."""
    stored = unpack(json.loads(json.dumps(pack(state))))
    return advance(ON, stored, converted({"delta": True, **report}, QueueReport))


def running(name: str, start: float) -> dict[str, object]:
    return {"id": name, "node": "pool-0", "start": start}


def busy() -> State:
    """Tasks of 5 and 3 processors run, until 100 and until 50; one of 8 has the start at 100."""
    state = after(ON, {"now": 0, "queued": [task("a", 5, 100), task("b", 3, 50), task("wide", 8, 160)]})
    result = reserving(state)
    assert placed(ON, state, result) == {"a": "pool-0", "b": "pool-0"}
    assert result.state.reserved == (0, 0, {"wide": 100.0})
    return went_on(result.state, now=1, running=[running("a", 0), running("b", 0)])


def test_shorter_tasks_that_come_later_put_nothing_off() -> None:
    state = went_on(busy(), now=2, queued=[task("short", 8, 10), task("filler", 3, 45)])
    result = reserving(state)  # by sjf the short one comes first, but its place is behind the reservation
    assert placed(ON, state, result) == {}
    assert result.state.reserved.starts == {"wide": 100.0, "short": 260.0, "filler": 50.0}
    assert result.started.window.until == 260.0
    state = went_on(result.state, now=50, finished=[{"id": "b", "end": 50}])
    result = reserving(state)  # as a task has ended, each may move forward
    assert placed(ON, state, result) == {"filler": "pool-0"}
    assert result.state.reserved == (1, 0, {"wide": 100.0, "short": 260.0})


@pytest.mark.parametrize("now", [100.0, 130.0])
def test_what_fell_due_while_nothing_was_reported_starts_at_once(now: float) -> None:
    state = reserving(busy()).state
    state = went_on(state, now=now, finished=[{"id": "a", "end": 99}, {"id": "b", "end": 50}])
    assert placed(ON, state, reserving(state)) == {"wide": "pool-0"}


def test_a_task_that_runs_longer_than_expected_puts_reservations_off_and_they_stay_in_order() -> None:
    state = went_on(reserving(busy()).state, now=120, finished=[{"id": "b", "end": 50}])
    result = reserving(state)
    assert placed(ON, state, result) == {}
    assert result.state.reserved.starts["wide"] == pytest.approx(120 + 0.1 * 120)


def test_what_is_withdrawn_leaves_its_place_to_others() -> None:
    state = reserving(went_on(busy(), now=2, queued=[task("short", 8, 10)])).state
    result = reserving(went_on(state, now=3, withdrawn=["wide"]))
    assert result.state.reserved.starts == {"short": 100.0}


def test_no_more_than_so_many_hold_a_reservation() -> None:
    many = [task(f"t{n}", 8, 10 + n) for n in range(dispatch.MOST + 50)]
    result = reserving(after(ON, {"now": 0, "queued": many}))
    assert len(result.state.reserved.starts) == dispatch.MOST
    assert "t100" in result.state.reserved.starts  # t0 starts
    assert "t101" not in result.state.reserved.starts
    state = went_on(result.state, now=10, running=[], finished=[{"id": "t0", "end": 10, "node": "pool-0", "start": 0}])
    after_one = reserving(state)
    assert placed(ON, state, after_one) == {"t1": "pool-0"}
    assert "t101" in after_one.state.reserved.starts


@pytest.mark.parametrize("gone", [{"withdrawn": ["a"]}, {"queued": [{"id": "a"}]}])
def test_what_leaves_the_machine_without_an_end_lets_others_move_forward(gone: dict[str, object]) -> None:
    state = after(ON, {"now": 0, "queued": [task("a", 8, 1000), task("b", 8, 50)]})
    state = went_on(reserving(state, "fcfs").state, now=1, running=[running("a", 0)])
    state = went_on(reserving(state, "fcfs").state, now=10, **gone)
    result = reserving(state, "sjf")
    assert placed(ON, state, result) == {"b": "pool-0"}


def test_those_first_in_the_order_take_the_places_that_others_leave() -> None:
    on = layout([{"name": "pool", "processors": 256, "minimum": 1, "maximum": 1}])
    many = [task(f"t{n}", 1, 100) for n in range(dispatch.MOST)]
    state = after(on, {"now": 0, "queued": [task("all", 256, 50)]})
    state = decided(on, state, "sjf", "conservative").state
    state = advance(
        on, state, converted({"now": 1, "delta": True, "running": [running("all", 0)], "queued": many}, QueueReport)
    )
    state = decided(on, state, "sjf", "conservative").state
    assert len(state.reserved.starts) == dispatch.MOST
    more = [task(f"s{n}", 1, 10) for n in range(5)]
    state = advance(on, state, converted({"now": 2, "delta": True, "queued": more}, QueueReport))
    state = decided(on, state, "sjf", "conservative").state
    state = advance(
        on, state, converted({"now": 50, "delta": True, "finished": [{"id": "all", "end": 50}]}, QueueReport)
    )
    decision = decided(on, state, "sjf", "conservative")
    assert len(placed(on, state, decision)) == dispatch.MOST + 5


@pytest.mark.parametrize("seed", range(6))
def test_reports_that_gather_many_ends_are_decided_and_the_machine_never_idles(seed: int) -> None:
    random, every = np.random.default_rng(seed), float(300 + 600 * (seed % 2))
    on = layout([{"name": "pool", "processors": 64, "minimum": 1, "maximum": 1}])
    come, need = np.sort(random.uniform(0, 20_000, 100)), random.integers(1, 40, 100)
    seconds = random.exponential(800, 100) + 1
    state, now, begun = after(on, {"now": 0}), 0.0, dict[int, float]()
    ended, fresh = set[int](), list[int]()
    while len(ended) < 100:
        now += every
        over = [n for n, at in begun.items() if n not in ended and at + seconds[n] <= now]
        ended |= set(over)
        place = {n: running(f"j{n}", begun[n]) for n in fresh}
        report = {
            "now": now,
            "delta": True,
            "queued": [
                task(f"j{n}", int(need[n]), float(seconds[n]))
                for n in np.flatnonzero((come <= now) & (come > now - every))
            ],
            "running": [place[n] for n in fresh if n not in over],
            "finished": [{"id": f"j{n}", "end": float(begun[n] + seconds[n]), **place.get(n, {})} for n in over],
        }
        state = unpack(json.loads(json.dumps(pack(advance(on, state, converted(report, QueueReport))))))
        decision = decided(on, state, "sjf", "conservative")
        fresh = [int(name[1:]) for name in placed(on, state, decision)]
        begun |= dict.fromkeys(fresh, now)
        busy = int(sum(need[n] for n in begun if n not in ended))
        assert busy <= 64
        waiting = [n for n in np.flatnonzero(come <= now) if n not in begun]
        assert busy or not waiting
        assert set(decision.state.reserved.starts) == {f"j{n}" for n in waiting}
        state = decision.state
