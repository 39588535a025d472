"""Caps: what is judged of them, and the guard's steps to allocations that complete within them; runs in batches."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.caps import Cap, Caps, Spending, judge, left
from app.kinds.contract.policy import Situation
from app.kinds.engine import KindDecision
from app.kinds.iterative.decide import choose, make_batch, under_caps
from app.kinds.iterative.engine import NOTHING
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.observation import everywhere, outlook, view
from app.kinds.iterative.policies import GuardedChoice, Verdict, decide, row_within, within_caps
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import forecast
from app.kinds.iterative.state import State
from tests.app.kinds.iterative.decisions.deciding import Scripted, compiled, reported
from tests.planted import planted_spec, planted_table

COST = Cap("run", "cost", 10.0)


@pytest.mark.parametrize(
    ("spending", "state", "stop", "risk"),
    [
        (Spending(7.9, 0, 0.1, 0, 2.0), "within", "", ""),
        (Spending(8.0, 0, 0.1, 0, 2.0), "near", "", ""),  # it is projected to end within
        (Spending(8.0, 0, 0.1, 0), "near", "", "$8.00 of the run's cost cap of $10.00 is used"),
        (Spending(1.0, 0, 1.0, 0, 9.5), "near", "", "projected to use $10.50 of the run's cost cap of $10.00"),
        (Spending(9.5, 0, 0.6, 0, 0.6), "reached", "$9.50 of the run's cost cap of $10.00 is used, and the next", ""),
        (Spending(9.5, 0, 0.5, 0, 0.5), "near", "", ""),  # the last one fits
        (Spending(10.0, 0), "reached", "$10.00 of the run's cost cap of $10.00 is used", ""),
    ],
)
def test_a_cap_is_announced_and_then_reached(spending: Spending, state: str, stop: str, risk: str) -> None:
    verdict = judge([COST, Cap("tenant", "seconds", 1e9)], spending)
    assert [one["state"] for one in verdict.entries] == [state, "within"]
    assert verdict.stop.startswith(stop)
    assert verdict.risk.startswith(risk)
    assert bool(verdict.stop) == bool(stop)
    assert bool(verdict.risk) == bool(risk)
    assert bool(verdict.notice) == (state == "near")
    over = judge([COST], spending, over=True)
    assert (over.stop, over.risk, over.notice) == ("", "", "")


def test_what_others_have_used_counts_and_is_announced_even_if_this_run_ends_within() -> None:
    shared = Cap("workload", "seconds", 100.0, others=75.0)
    verdict = judge([shared], Spending(0, 10.0, 0, 5.0, 0, 5.0))
    assert verdict.entries[0] | {"projected": 90.0, "left": 15.0, "spent": 85.0} == verdict.entries[0]
    assert "1 min 25 s of the workload's monthly duration cap of 1 min 40 s is used" in verdict.risk
    assert left([shared, Cap("run", "seconds", 12.0)], "seconds", 10.0) == 2.0
    assert left([shared], "seconds", 90.0) == 0.0
    assert left([shared], "cost", 90.0) == math.inf
    assert Caps(cost=1.0).limits == {"cost": 1.0}


def guarded(caps: list[list[Cap]], allocations: list[int]) -> tuple[Situation, GuardedChoice, GuardedChoice]:
    """The rule's choices for runs at allocations, before and after their caps."""
    on = compiled()
    state = reported(on, allocations)
    situation = Situation(on.projector, state, view(on.projector, state))
    free = decide(situation, None, on.chosen)
    rows = on.layout.index(state.levels + on.layout.deltas[free.action])
    return situation, free, within_caps(situation, free, rows, caps)


def used(projector: Projector, situation: Situation, run: int, row: int) -> float:
    """Money that a run has cost at its end, if a row of the grid is taken and held."""
    one = type(situation.state)(*(field[run : run + 1] for field in situation.state))
    grid, iterations = everywhere(projector, one), projector.layout.iterations - int(one.iteration[0])
    units = float(projector.layout.allocations[row][0])
    seconds = (2 + 60 / units + 0.1 * units) * iterations + float(grid.pause[row, 0])
    return float(one.cost[0]) + seconds * float(grid.rate[row, 0])


def test_runs_move_to_what_completes_within_their_caps_and_others_stay() -> None:
    situation, free, _ = guarded([[], []], [16, 16])
    projector = situation.projector
    plenty = Cap("run", "cost", 1e9)
    spent = float(situation.state.cost[0])
    current = used(projector, situation, 0, int(projector.layout.index(situation.state.levels)[0]))
    tight = Cap("run", "cost", spent + 0.6 * (current - spent))
    _, before, after = guarded([[tight], [plenty]], [16, 16])
    assert before.action.tolist() == free.action.tolist()
    assert after.verdict.tolist() == [Verdict.BEYOND_CAP, before.verdict[1]]
    assert after.action[1] == before.action[1]
    goal = after.goals[0]
    assert projector.layout.allocations[goal][0] < 16
    assert used(projector, situation, 0, goal) <= tight.limit * 1.05
    planned = projector.layout.index(situation.state.levels + projector.layout.deltas[before.action])
    assert goal < planned[0]  # further down than the rule's own step
    assert projector.layout.deltas[after.action[0]][0] == -4  # as far as one step leads


def test_if_nothing_completes_the_least_excess_is_taken_and_a_duration_asks_for_the_quickest() -> None:
    on = compiled()
    state = reported(on, [8])
    present, low = int(on.layout.index(state.levels)[0]), 0
    assert row_within(on.projector, state, [Cap("run", "cost", float(state.cost[0]) + 1e-3)], present) == low
    no_time = Cap("run", "seconds", float(state.elapsed[0, on.layout.seconds]) + 1)
    quickest = row_within(on.projector, state, [no_time], low)
    seconds = [2 + 60 / units + 0.1 * units for units in on.layout.allocations[:, 0]]
    assert seconds[quickest] == pytest.approx(min(seconds), rel=0.05)
    assert row_within(on.projector, state, [Cap("run", "cost", 0.0)], present) == present  # nothing is left: it stops
    assert row_within(on.projector, state, [Cap("run", "cost", 1e9), Cap("tenant", "seconds", 1e9)], present) == present
    assert np.isfinite(state.cost).all()


@pytest.mark.parametrize(("code", "selection"), [("cap", 0), ("holding", 1)])
def test_a_step_that_caps_have_forced_has_no_contingency_that_undoes_it(code: str, selection: int) -> None:
    on = compiled()
    own = {"allocation": {"gpus": 4.0}, "delta": {}, "contingencies": [{"after_seconds": 9.0}]}
    decision = KindDecision(
        own,
        {"code": code, "text": "why"},
        noop=True,
        state=None,
        iteration=1,
        source="heuristic",
        policy="rule",
        spending=Spending(1.0, 1.0, 1.0, 1.0, 3.0, 3.0),
    )
    result = under_caps(on, decision, [Cap("run", "cost", 100.0)], 0)
    assert (len(result.own["contingencies"]), result.stop) == (selection, "")


def test_caps_hold_outside_of_what_agents_observe() -> None:
    """A policy sees the same with a cap as without; what it chooses is replaced then."""
    on = compiled(policy=Scripted(len(compiled().layout.deltas) - 1))
    state = reported(on, [16, 16])
    spent = float(state.cost[0])
    current = used(on.projector, Situation(on.projector, state, view(on.projector, state)), 0, 12)
    tight = Cap("run", "cost", spent + 0.4 * (current - spent))
    values: list[list[list[Cap]]] = [[[], []], [[tight], []]]
    free, capped = (make_batch(on, state, [frozenset()] * 2, [NOTHING] * 2, caps=caps) for caps in values)
    np.testing.assert_array_equal(free.situation.view.observation, capped.situation.view.observation)
    assert not any("cap" in name.split("_") for name in on.layout.observation_names)
    first, second = (choose(on, one, on.agent, None).each for one in (free, capped))
    deltas = on.layout.deltas[:, 0]
    assert deltas[second[0]] == deltas.min() < deltas[first[0]]
    assert second[1] == first[1]


def projected(projector: Projector, state: State, row: int, pause: float) -> tuple[float, float]:
    """Money and seconds that one run has used at its end, as its decision would say."""
    rows = np.array([row])
    found = forecast(projector, state, rows, rows, np.array([pause]))
    return float(state.cost[0] + found.cost[1, 0]), float(state.elapsed[0, 0] + found.rest[1, 0])


DEAR = planted_spec(
    resources=[
        {
            "name": "executors",
            "minimum": 4,
            "maximum": 36,
            "max_steps": 4,
            "change_seconds": 2.0,
            "initial": 8,
            "price_per_hour": 2.5,
        }
    ]
)


def ensemble(members: int) -> ModelTable:
    table = planted_table(DEAR)
    offsets = np.random.default_rng(1).normal(0, 0.2, (members, *table.log_mean.shape)).astype(np.float32)
    return replace(table, members=offsets if members else None)


@pytest.mark.parametrize("members", [0, 3])
@pytest.mark.parametrize("iterations", [0, 5])  # before the first iteration nothing pauses
@pytest.mark.parametrize("name", ["cost", "seconds"])
def test_a_choice_that_just_uses_what_is_left_is_followed_and_one_beyond_is_not(
    members: int, iterations: int, name: Any
) -> None:
    on = compiled(DEAR, ensemble(members))
    state = reported(on, [16, 16], iterations=iterations)
    one = type(state)(*(field[:1] for field in state))
    situation = Situation(on.projector, state, view(on.projector, state))
    free = decide(situation, None, on.chosen)
    rows = on.layout.index(state.levels)[:1] + np.array([2, 0])
    for run, row in enumerate(rows.tolist()):
        pause = 2.0 * (iterations > 0) * (run == 0)
        used = projected(on.projector, one, row, pause)[("cost", "seconds").index(name)]
        for factor, verdict in ((1.0005, free.verdict[run]), (0.9995, Verdict.BEYOND_CAP)):
            caps: list[list[Cap]] = [[], []]
            caps[run] = [Cap("run", name, used * factor), Cap("tenant", "seconds", 1e9)]
            found = within_caps(situation, free, rows, caps)
            assert (found.verdict[run], found.verdict[1 - run]) == (verdict, free.verdict[1 - run])
            assert set(found.goals) == ({run} if verdict == Verdict.BEYOND_CAP else set())
            assert (found is free) == (not found.goals)


@pytest.mark.parametrize("members", [0, 3])
def test_of_what_completes_within_a_cap_the_best_is_taken_and_what_does_stays(members: int) -> None:
    on = compiled(DEAR, ensemble(members))
    state = reported(on, [16])
    grid = everywhere(on.projector, state)
    returns = outlook(on.projector, state, grid)[:, 0]
    money = [projected(on.projector, state, row, float(grid.pause[row, 0]))[0] for row in range(len(returns))]
    best = int(returns.argmax())
    for limit in (0.5 * (money[best] + min(money)), 0.5 * (money[best] + max(money))):
        able = [row for row, used in enumerate(money) if used <= limit]
        cap, lost = [Cap("run", "cost", limit)], [row for row in range(len(money)) if row not in able]
        assert len(able) > 1
        assert lost
        assert {row_within(on.projector, state, cap, row) for row in lost} == {max(able, key=lambda row: returns[row])}
        assert [row_within(on.projector, state, cap, row) for row in able] == able


def test_every_verdict_has_a_number_of_its_own() -> None:
    assert sorted(Verdict.__members__.values()) == list(range(len(Verdict.__members__)))


def test_no_cap_moves_a_run_that_has_ended_or_that_no_model_projects() -> None:
    tight = [Cap("run", "cost", 1e-6)]
    on = compiled()
    ended = reported(on, [16, 8], iterations=30)
    ended = ended._replace(cost=0 * ended.cost)
    situation = Situation(on.projector, ended, view(on.projector, ended))
    free = decide(situation, None, on.chosen)
    assert within_caps(situation, free, on.layout.index(ended.levels), [tight, tight]) is free
    blank = compiled(table=initial_table(on.layout))
    state = reported(blank, [16])
    situation = Situation(blank.projector, state, view(blank.projector, state))
    free = decide(situation, None, blank.chosen)
    assert within_caps(situation, free, blank.layout.index(state.levels), [tight]) is free


def test_a_step_that_is_known_to_be_refused_is_not_taken() -> None:
    on = compiled()
    state = reported(on, [16, 16])
    seen = view(on.projector, state)
    towards = int(on.layout.deltas[:, 0].argmin())
    seen.mask[1, towards] = False
    situation = Situation(on.projector, state, seen)
    free = decide(situation, None, on.chosen)
    here = on.layout.index(state.levels)
    tight = Cap("run", "cost", float(state.cost[0]) + 0.01)
    found = within_caps(situation, free, here + 1, [[tight], [tight]])
    assert found.action.tolist() == [towards, on.layout.noop]
    assert found.goals == {0: 0, 1: int(here[1])}
    assert found.verdict.tolist() == [Verdict.BEYOND_CAP] * 2
    assert free.verdict.tolist() != found.verdict.tolist()
