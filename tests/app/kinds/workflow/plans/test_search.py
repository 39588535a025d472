"""The child that searches: it is waited for by nobody, and what becomes of it is said."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from app import installed
from app.kinds.workflow import plan_search
from app.kinds.workflow.ahead import KNOWN, Alternatives, Outlook
from app.kinds.workflow.plan_search import PAUSE_SECONDS, PlanSearch, SearchUnavailableError, search_module
from app.kinds.workflow.plans import Remaining, SearchResult

LEFT = Remaining(
    parent_start=np.array([0, 0, 1, 2]), parents=np.array([0, 0]), data=np.zeros(2), cost=np.full((3, 2), 5.0),
    processors=np.ones(3, np.int64), end=np.zeros(0), node=np.full(3, -1), order=np.arange(3),
    slots=np.ones(2, np.int64), available=np.zeros(2), pace=np.zeros(2),
)  # fmt: skip


def search_until(search: PlanSearch, until: Callable[[str], bool], seconds: float = 120.0) -> SearchResult | str:
    """The answer, or the first problem that ``until`` waits for; the child may have to compile first."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            return search(LEFT)
        except SearchUnavailableError as problem:
            if until(str(problem)):
                return str(problem)
            time.sleep(0.05)
    raise AssertionError("no answer")


@pytest.mark.slow
def test_a_child_answers_once_it_is_there_and_again_after_it_was_ended() -> None:
    search = PlanSearch()
    with pytest.raises(SearchUnavailableError, match="is starting"):
        search(LEFT)
    for _ in range(2):
        answer = search_until(search, lambda _: False)
        assert isinstance(answer, SearchResult)
        assert answer.end.max() == answer.base == 10
        search.close()


@pytest.mark.slow
def test_the_child_simulates_queues_ahead_too() -> None:
    """Two jobs that need the whole machine, the longer first: what is asked and answered crosses the connection."""
    search, lasts = PlanSearch(), np.array([10_000.0, 10.0])
    outlook = Outlook(
        need=np.full(2, 8), plan=lasts, score=np.arange(2.0), length=np.log(lasts), share=np.full(2, KNOWN),
        processors=np.zeros(0, np.int64), planned=np.zeros(0), ran=np.zeros(0), running_length=np.zeros(0),
        running_share=np.zeros(0), past=np.zeros(0), free=8, head=-1, waiting=2, mechanism=2, seed=0,
    )  # fmt: skip
    search_until(search, lambda _: False)
    answer = Alternatives(**search.ask(outlook))
    assert (answer.accepted, answer.front[0], answer.scenarios) == (True, 1, 24)
    search.close()


def test_a_child_that_ends_at_once_is_not_started_again_for_a_while() -> None:
    now = [0.0]
    search = PlanSearch(lambda: "this", clock=lambda: now[0])  # a module that prints a poem, and ends
    assert "failed (EOFError: it ended with status 0)" in str(search_until(search, lambda problem: "failed" in problem))
    with pytest.raises(SearchUnavailableError, match="failed"):
        search(LEFT)
    now[0] = PAUSE_SECONDS + 1
    with pytest.raises(SearchUnavailableError, match="is starting"):
        search(LEFT)
    search.close()


def test_nothing_is_started_where_nothing_is_installed_and_it_is_looked_for_once_in_a_while() -> None:
    now, looks = [0.0], list[float]()

    def nothing() -> str:
        looks.append(now[0])
        return ""

    search = PlanSearch(nothing, clock=lambda: now[0])
    for now[0] in (1.0, 2.0, 1.5 + PAUSE_SECONDS, 2.5 + PAUSE_SECONDS):
        with pytest.raises(SearchUnavailableError, match=r"not installed: .*\[worker\]'"):
            search(LEFT)
    assert looks == [1.0, 1.5 + PAUSE_SECONDS]


def test_it_needs_its_compiler_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"torch", "scipy", "gymnasium"}
    monkeypatch.setattr(plan_search, "find_spec", lambda name: None if name in absent else object())
    monkeypatch.setattr(installed, "missing", lambda _: sorted(absent))
    assert search_module() == "workers.kinds.workflow.plan_search"
    absent.add("numba")
    assert search_module() == ""
