"""Successive halving by itself: any scores, no learner."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from workers.learning.training.request import FIRST, REDUCTION, Bracket, Decision, Entry, TrialRecord, best

SCORES = some.floats(-10, 10, allow_nan=False)
COURSES = some.integers(1, 20).flatmap(
    lambda trials: some.lists(some.lists(SCORES, min_size=4, max_size=4), min_size=trials, max_size=trials)
)


def fresh(trials: int) -> list[TrialRecord]:
    return [TrialRecord(Entry(f"a{i}", i)) for i in range(trials)]


def step(
    bracket: Bracket,
    records: list[TrialRecord],
    score: Callable[[int, int], float | None],
) -> Decision:
    """Everybody who goes on comes to the next comparison, keeping the best that it had; then they are compared."""
    for i, known in enumerate(records):
        if known.ended is None:
            results = [s for s in (known.score, score(i, known.rungs)) if s is not None]
            records[i] = TrialRecord(known.entry, known.rungs + 1, max(results, default=None))
    decision = bracket.decide(records)
    for i, reason in decision.stopped.items():
        records[i] = TrialRecord(records[i].entry, records[i].rungs, records[i].score, reason)
    return decision


def run(courses: list[list[float]]) -> list[TrialRecord]:
    bracket, records = Bracket(len(courses)), fresh(len(courses))
    while step(bracket, records, lambda i, rung: courses[i][rung]).survivors:
        assert len(records) == len(courses)
    return records


@given(COURSES, some.none() | SCORES)
def test_what_is_published_is_the_best_of_all_that_was_compared(
    courses: list[list[float]], reference: float | None
) -> None:
    records = run(courses)
    chosen = best(records, reference)
    reached = [known.score for known in records if known.score is not None]
    published = reference if chosen is None and reference is not None else records[chosen or 0].score
    assert published == max([*reached, *([] if reference is None else [reference])])
    assert all(known.ended is not None for known in records)


@given(COURSES)
def test_it_is_the_same_every_time(courses: list[list[float]]) -> None:
    assert run(courses) == run(courses)


@given(COURSES)
def test_nobody_is_stopped_who_was_better_than_one_that_went_on(courses: list[list[float]]) -> None:
    bracket, records = Bracket(len(courses)), fresh(len(courses))
    while True:
        decision = step(bracket, records, lambda i, rung: courses[i][rung])
        if not decision.survivors:
            break
        worst = min(records[i].score or 0.0 for i in decision.survivors)
        assert all((records[i].score or 0.0) <= worst for i in decision.stopped)
        assert len(decision.survivors) == bracket.field[records[decision.survivors[0]].rungs]


@pytest.mark.parametrize("trials", range(1, 30))
def test_rungs_cut_a_budget_that_is_shared(trials: int) -> None:
    bracket = Bracket(trials)
    assert bracket.shares[-1] == 1.0
    assert list(bracket.shares) == sorted(set(bracket.shares))
    assert bracket.field[0] == trials
    assert bracket.field[-1] == 1
    assert all(before <= REDUCTION * after for before, after in zip(bracket.field, bracket.field[1:], strict=False))
    spent, before = 0.0, 0.0
    for number, share in zip(bracket.field, bracket.shares, strict=True):
        spent, before = spent + number * (share - before), share
    assert spent * bracket.budget(1.0) == pytest.approx(1.0)
    assert bracket.budget(trials) == 1.0  # what all of them need by themselves is never given to one


def test_three_share_a_budget_of_which_the_best_gets_most() -> None:
    bracket = Bracket(3)
    assert (bracket.field, bracket.shares) == ((3, 1), (FIRST, 1.0))
    assert bracket.budget(1.0) == pytest.approx(1 / 1.2)


def test_losers_are_told_when_and_why() -> None:
    records = fresh(3)
    decision = step(Bracket(3), records, lambda i, _: (-0.3, -0.1, -0.2)[i])
    assert decision.survivors == (1,)
    assert decision.stopped[0] == "number 3 of 3 after 10% of its budget, where 1 went on"
    assert decision.stopped[2].startswith("number 2 of 3")


def test_a_trial_that_failed_holds_nobody_up() -> None:
    records = [TrialRecord(Entry("a", 0), ended="its worker was lost"), *fresh(2)]
    decision = step(Bracket(3), records, lambda i, _: float(i))
    assert decision.survivors == (2,)
    everybody = [TrialRecord(Entry("a", 0), ended="lost")] * 2
    assert Bracket(2).decide(everybody) == Decision((), {})
    assert best(everybody) is None


def test_a_bracket_needs_somebody() -> None:
    with pytest.raises(ValueError, match="at least"):
        Bracket(0)
