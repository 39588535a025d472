"""Strategies by predicted run times: the order, what simulating ahead changes, and what the reason says."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.contract.engine import Snapshot
from app.kinds.workflow.ahead import KNOWN, MOST, Alternatives, Outlook, look_ahead
from app.kinds.workflow.decide import Compiled
from app.kinds.workflow.plan_search import PlanSearch, SearchUnavailableError
from app.kinds.workflow.queue import MOST_PAST, Layout, State, pack, unpack
from app.kinds.workflow.report import reason
from app.kinds.workflow.scheduling.decide import Choice, by_strategy, decide
from app.kinds.workflow.scheduling.planning import SHARE_POWER, SIZE_POWER
from app.kinds.workflow.scheduling.situation import QueueSituation, ranking
from tests.app.kinds.workflow.scheduling.test_decide import CLOUD, POOL, after, layout, placed, task

QUEUED = [task("a", 4, 100.0, user="x"), task("b", 4, 300.0, user="y"), task("c", 8, 900.0)]


def answer(front: int, barred: int, *, accepted: bool = True) -> dict[str, Any]:
    """What the search process may answer: one change that saves 3 ± 0.5, and another that saves 1 ± 0.9."""
    alternatives = Alternatives(
        np.array([front, 0]), np.array([barred, -1]), np.array([3.0, 1.0]), np.array([0.5, 0.9]), accepted, 24, 8.0
    )
    return vars(alternatives)


def started(on: Layout, state: State, reported: dict[str, Any], backfilling: str = "easy") -> tuple[set[str], str]:
    """The tasks that start if the search answers ``reported``, and the reason's text."""
    own = by_strategy("lookahead", backfilling)

    def choose(situation: QueueSituation) -> Choice:
        return look_ahead(situation, own(situation), lambda _: reported)

    situation = QueueSituation(on, state)
    decided = decide(situation, choose)
    return set(placed(on, state, decided)), str(reason(situation, decided, "", "", "")["text"])


def test_without_a_significant_change_the_smallest_predicted_area_starts() -> None:
    on = layout(POOL)
    names, text = started(on, after(on, {"now": 0, "queued": QUEUED}), answer(2, -1, accepted=False))
    assert names == {"a", "b"}
    assert "order as it is: the best of 2 changes (move c to the front, slowdown -3.00 ± 0.50) is not surely" in text


def test_a_job_is_moved_to_the_front_and_the_reason_says_what_the_next_best_would_save() -> None:
    on = layout(POOL)
    names, text = started(on, after(on, {"now": 0, "queued": QUEUED}), answer(2, -1))
    assert names == {"c"}
    assert "move c to the front, slowdown -3.00 ± 0.50 in 24 scenarios of 8 h" in text
    assert "next best: move a to the front, slowdown -1.00 ± 0.90" in text


@pytest.mark.parametrize("backfilling", ["none", "easy"])
def test_a_job_is_held_back_for_this_decision_though_it_fits(backfilling: str) -> None:
    on = layout(POOL)
    state = after(on, {"now": 0, "queued": QUEUED[:2]})
    names, text = started(on, state, answer(-1, 1), backfilling)
    assert names == {"a"}
    assert "hold b back" in text


@pytest.mark.parametrize(
    ("nodes", "more", "backfilling", "why"),
    [
        (CLOUD, {}, "easy", "only queues on one permanent machine"),
        (POOL, {"limits_per_user": {"running_tasks": 1}}, "easy", "limits per user"),
        (POOL, {}, "rls", "rls backfilling"),
        (POOL, {}, "conservative", "conservative backfilling"),
    ],
)
def test_where_scenarios_can_t_be_played_the_order_stays_and_the_reason_says_why(
    nodes: list[dict[str, Any]], more: dict[str, Any], backfilling: str, why: str
) -> None:
    on = layout(nodes, **more)
    _, text = started(on, after(on, {"now": 0, "queued": QUEUED}), answer(2, -1), backfilling)
    assert why in text


def test_tasks_with_parents_are_not_simulated_ahead() -> None:
    on = layout(POOL)
    state = after(on, {"now": 0, "queued": [*QUEUED, task("d", parents=["a"])]})
    assert "tasks that depend on each other" in started(on, state, answer(2, -1))[1]


def test_while_the_search_is_not_there_the_order_answers() -> None:
    on = layout(POOL)
    situation = QueueSituation(on, after(on, {"now": 0, "queued": QUEUED}))

    def absent(_: Outlook) -> dict[str, Any]:
        raise SearchUnavailableError("the plan search is starting")

    own = by_strategy("lookahead", "easy")(situation)
    choice = look_ahead(situation, own, absent)
    assert choice.text == "not simulated ahead: the plan search is starting"
    np.testing.assert_array_equal(choice.scores, own.scores)


def test_a_run_that_chooses_lookahead_backfills_in_the_order_that_is_simulated() -> None:
    """Of a workload with an order of its own, which its runs follow unless they choose lookahead."""
    on, fills = layout(POOL, strategy="saf-predicted", backfill_order="sjf"), list[bool]()
    situation = QueueSituation(on, after(on, {"now": 0, "queued": QUEUED}))
    for rule in ("", "lookahead"):
        snapshot = Snapshot("queue", "queue", 1, on.spec, on, None, None, None, None, 1, rule=rule)
        choice = Compiled(snapshot, PlanSearch(lambda: "")).chooser(None)(situation)
        assert choice.fill is not None
        fills.append(np.array_equal(choice.fill, choice.scores))
    assert fills == [False, True]


@pytest.mark.parametrize(("waiting", "names"), [(MOST, {"t39"}), (MOST + 1, {"t0"})])
def test_more_tasks_than_a_scenario_holds_are_not_simulated_ahead(waiting: int, names: set[str]) -> None:
    on = layout(POOL)
    queued = [task(f"t{i}", 8, 100.0 + i) for i in range(waiting)]
    placements, text = started(on, after(on, {"now": 0, "queued": queued}), answer(MOST - 1, -1))
    assert placements == names
    assert ("order as it is: 41 tasks wait, more than the 40 of a scenario" in text) == (waiting > MOST)


def test_the_predicted_area_follows_what_a_users_last_tasks_took_of_their_estimates() -> None:
    """Two users ask for the same; one of them has used a tenth of it, twice, and comes first from then on."""
    on = layout(POOL)
    ran = [
        {"now": 0, "queued": [task("x0", 1, 1000.0, user="x"), task("x1", 1, 1000.0, user="x")]},
        {
            "now": 200,
            "delta": True,
            "finished": [{"id": name, "node": "pool-0", "start": 0, "end": 100} for name in ("x0", "x1")],
            "queued": [task("y2", 2, 1000.0, user="y"), task("x2", 2, 1000.0, user="x"), {"id": "z", "processors": 1}],
        },
    ]
    situation = QueueSituation(on, after(on, *ran))
    scores = ranking("saf-predicted", situation)
    assert scores[1] < 0.5 * scores[0]
    assert 1_000.0 < scores[0] < 2_000.0  # what others took says something of a new user, too
    need, whole = situation.queue.processors, np.array([1_000.0, 1_000.0, 3_600.0])
    nearer = (
        whole * (scores / need / whole) ** SHARE_POWER * need**SIZE_POWER
    )  # the last has no estimate, and one processor
    np.testing.assert_allclose(ranking("lookahead", situation), nearer)
    none = QueueSituation(layout(POOL, backfilling="none"), situation.state)
    np.testing.assert_allclose(ranking("lookahead", none), scores)
    before = QueueSituation(on, after(on, ran[0] | {"queued": ran[1]["queued"]}))
    assert ranking("saf-predicted", before)[0] == ranking("saf-predicted", before)[1]


@pytest.mark.parametrize("strategy", ["saf-predicted", "lookahead"])
def test_equal_tasks_have_equal_scores_however_many_wait(strategy: str) -> None:
    """Any difference, as of rounding, would let a later task start before an equal one that came first."""
    on = layout(POOL)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        first = [task(f"x{i}", int(rng.integers(1, 9)), float(rng.uniform(600, 9_000)), user="x") for i in range(8)]
        ends = rng.uniform(20, 500, 8).tolist()
        ended = [{"id": f"x{i}", "node": "pool-0", "start": 0, "end": end} for i, end in enumerate(ends)]
        for count in (5, 7):
            queued = [task(f"t{i}", 3, 6_000.0, user="x") for i in range(count)]
            second = {"now": 900, "delta": True, "finished": ended, "queued": queued}
            scores = ranking(strategy, QueueSituation(on, after(on, {"now": 0, "queued": first}, second)))
            np.testing.assert_array_equal(scores, np.full(count, scores[0]))


def test_tasks_with_the_same_product_have_equal_scores_in_the_starting_order() -> None:
    """Estimates times processors, or their root, that are equal but for the rounding of logarithms."""
    for backfilling, by_size in (("none", 1), ("easy", 2)):
        on = layout(POOL, backfilling=backfilling)
        for hours in range(1, 60):
            same = [task("a", 1, 3_600.0 * hours), task("b", 4, 3_600.0 * hours / 4 ** (1 / by_size))]
            scores = ranking("lookahead", QueueSituation(on, after(on, {"now": 0, "queued": same})))
            assert scores[0] == scores[1]


def test_submissions_are_remembered_the_last_of_them_and_stored() -> None:
    on = layout(POOL)
    many = [task(f"t{i}", 1, 100.0 + i, submit=i, user="x" if i % 2 else "y") for i in range(MOST_PAST + 5)]
    bare = {"id": "bare", "processors": 2}
    state = after(on, {"now": 500, "queued": many}, {"now": 501, "delta": True, "queued": [bare]})
    assert len(state.submitted) == MOST_PAST
    assert (state.submitted[0].at, state.submitted[0].user) == (6.0, "y")
    assert state.submitted[-1][:2] == (501.0, 2)
    again = unpack(msgspec.json.decode(msgspec.json.encode(pack(state))))
    assert repr(again.submitted) == repr(state.submitted)  # a missing estimate is NaN, which equals nothing


def test_jobs_without_an_estimate_are_taken_as_planned() -> None:
    on, outlooks = layout(POOL), list[Outlook]()
    bare = {"id": "bare", "processors": 8}
    situation = QueueSituation(on, after(on, {"now": 7, "queued": [*QUEUED[:2], bare]}))

    def search(outlook: Outlook) -> dict[str, Any]:
        outlooks.append(outlook)
        return answer(1, -1, accepted=False)

    look_ahead(situation, by_strategy("lookahead", "easy")(situation), search)
    assert outlooks[0].share[2] == KNOWN
    assert (outlooks[0].share[:2] <= 0.0).all()
    assert (outlooks[0].free, outlooks[0].waiting, outlooks[0].head) == (8, 3, -1)
    assert outlooks[0].past.tolist() == [7.0, 7.0, 7.0]


def test_arrivals_are_sampled_by_time_though_reported_in_another_order() -> None:
    on, outlooks = layout(POOL), list[Outlook]()
    queued = [task("late", 2, 100.0, submit=90), task("early", 8, 900.0, submit=10), task("now", 4, 500.0)]

    def search(outlook: Outlook) -> dict[str, Any]:
        outlooks.append(outlook)
        return answer(1, -1, accepted=False)

    situation = QueueSituation(on, after(on, {"now": 100, "queued": queued}))
    look_ahead(situation, by_strategy("lookahead", "easy")(situation), search)
    assert outlooks[0].past.tolist() == [10.0, 90.0, 100.0]
    assert outlooks[0].need[3:].tolist() == [8, 2, 4]
