"""Runs as a process keeps them: as many as fit, by what they take."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from app.kinds.engine import RunMemory
from app.kinds.iterative.state import RunState
from app.kinds.workflow.queue import COLUMNS, Queue, State
from app.kinds.workflow.run_times import blank
from app.runs.deciding import OVERHEAD, SLIGHT, Live, LiveCache


def queue(tasks: int, parents: int = 0) -> RunMemory:
    columns: dict[str, Any] = {name: [0.0] * tasks for name in COLUMNS}
    columns |= {name: [""] * tasks for name in ("users", "groups")} | {"names": [f"task-{i}" for i in range(tasks)]}
    columns["inputs"] = [tuple((f"p{i}", 0.0) for i in range(parents))] * tasks
    return RunMemory(State(0.0, 0.0, Queue(columns), {}, {}, (), {}, 0, *blank(0)[:2]))


def live(run: str, kind: str = "iterative", selection: Any = None) -> Live:
    state = RunMemory(RunState(np.zeros(50), np.zeros((0, 0)))) if selection is None else selection
    return Live(run, "default", "w", "i", "running", 0, state, {}, kind, "", b"", None)


def test_the_least_recently_reported_go_when_memory_is_full() -> None:
    each = OVERHEAD + 400
    cache = LiveCache(3 * each)
    for run in "abc":
        cache.put(live(run))
    assert cache.get("a") is not None
    cache.put(live("d"))
    assert [run for run in "abcd" if cache.get(run)] == ["a", "c", "d"]
    assert cache.weight == 3 * each


def test_a_long_queue_weighs_what_it_takes() -> None:
    cache = LiveCache()
    cache.put(live("short", "workflow", queue(10)))
    short = cache.weight
    cache.put(live("long", "workflow", queue(50_000)))
    assert cache.weight - short > 1000 * (short - OVERHEAD)
    cache.put(live("linked", "workflow", queue(10, parents=100)))
    assert cache.weight > 50_000 * 500 + 10 * 100 * 100
    for run in ("short", "long", "linked"):
        cache.drop(run)
    assert cache.weight == 0


def test_what_a_run_was_started_with_weighs_what_it_takes() -> None:
    cache, start = LiveCache(), {"upcoming": [{"features": {f"feature-{i}": 1.5 for i in range(8)}}] * 1_000}
    cache.put(
        Live("announced", "default", "w", "i", "running", 0, live("").kind_state, start, "iterative", "", b"", None)
    )
    assert 500_000 < cache.weight < 2_000_000


def test_a_run_is_weighed_again_when_it_grows_and_one_that_is_too_large_displaces_nobody() -> None:
    cache = LiveCache(1_000_000)
    growing = live("growing", "workflow", queue(10))
    for one in (live("other"), growing):
        cache.put(one)
    growing.kind_state = queue(500)
    before = cache.weight
    cache.reweigh(growing)
    assert cache.weight - before == 490 * 500
    growing.kind_state = queue(100_000)
    cache.reweigh(growing)
    assert (cache.get("growing"), cache.weight) == (None, OVERHEAD + 400)
    assert cache.get("other") is not None


def test_a_run_weighs_its_start_its_state_and_its_decision() -> None:
    bare, told = live("bare"), live("told")
    told = msgspec.structs.replace(told, start={"a": 1}, decision=b"x" * 500)
    cache = LiveCache()
    cache.put(bare)
    assert cache.weight == OVERHEAD + 400
    cache.put(told)
    assert cache.weight == 2 * (OVERHEAD + 400) + 6 * len('{"a":1}') + 500


def test_a_run_that_is_put_again_counts_once_and_goes_last_to_be_dropped() -> None:
    each = OVERHEAD + 400
    cache = LiveCache(2 * each)
    for run in ("a", "b", "a"):
        cache.put(live(run))
    assert cache.weight == 2 * each
    cache.put(live("c"))
    assert [cache.get(run) is not None for run in "abc"] == [True, False, True]
    cache.drop("nobody")
    assert cache.weight == 2 * each


def test_a_run_is_kept_up_to_half_of_the_memory() -> None:
    each = OVERHEAD + 400
    for size, there in ((2 * each, True), (2 * each - 1, False)):
        cache = LiveCache(size)
        cache.put(live("a"))
        assert (cache.get("a") is not None, cache.weight) == (there, each * there)


def test_slight_changes_are_not_weighed_and_neither_is_a_run_that_another_has_replaced() -> None:
    cache, run = LiveCache(), live("a")
    cache.put(run)
    for size, weighed in ((SLIGHT, 0), (SLIGHT + 1, SLIGHT + 1), (1, SLIGHT + 1), (0, 0)):
        run.decision = b"x" * size
        cache.reweigh(run)
        assert cache.weight == OVERHEAD + 400 + weighed
    other = live("a")
    cache.put(other)
    run.decision = b"x" * 9_000
    cache.reweigh(run)
    assert (cache.get("a"), cache.weight) == (other, OVERHEAD + 400)
    cache.reweigh(live("nobody"))
    assert cache.get("nobody") is None
