"""The policy of a plan: what it reads from its table, between the nodes and beyond them, and what a move costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import reachable, reference_cost, view
from app.kinds.iterative.policies import PlannerPolicy, stencil
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, begin
from app.policies.base import IncompatibleArtifact
from tests.planted import planted_spec, planted_table

SPEC = planted_spec(iterations=6, weights={"sla": 1.0, "cost": 2.0, "change": 0.5})
LAYOUT = Layout(SPEC)
PROJECTOR = Projector(LAYOUT, planted_table(SPEC))
ITERATIONS, ALLOCATIONS, LEFT, EFFECTS = 6, len(LAYOUT.allocations), 5, 6
LOW, HIGH, HALF, SLOPE = 40.0, 640.0, 0.3, 0.01


def cubic(at: Any) -> Any:
    return 2 - at + 0.5 * at**2 - 0.1 * at**3


@pytest.mark.parametrize("count", [4, 9])
def test_four_nodes_give_every_cubic_back_inside_and_at_the_ends(count: int) -> None:
    nodes, places = np.linspace(0, 7, count), np.array([[0.0, 0.3, 3.4], [5.1, 6.8, 7.0]])
    at, weights = stencil(places, 7.0, count)
    assert at.shape == weights.shape == (4, 2, 3)
    assert (np.diff(at, axis=0) == 1).all()
    np.testing.assert_allclose((cubic(nodes[at]) * weights).sum(axis=0), cubic(places), atol=1e-9)
    if count == 9:  # of the four the middle ones are next to the place
        assert ((nodes[at[1]] <= places) & (places <= nodes[at[2]]))[0, 2]


def test_fewer_nodes_are_not_interpolated_and_a_range_of_no_width_is_its_first_node() -> None:
    at, weights = stencil(np.array([0.1, 0.2]), 1.0, 3)
    assert (at.tolist(), weights.tolist()) == ([[0, 0]], [[1.0, 1.0]])
    at, weights = stencil(np.zeros(1), 0.0, 5)
    assert (weights[at == 0].sum(), weights.sum()) == (1.0, 1.0)


def plan(pauses: list[float], worth: Any) -> PlannerPolicy:
    """``worth`` [P, K, A] plus ten times the node of the time left plus the node of the effect."""
    nodes = 10.0 * np.arange(LEFT)[:, None] + np.arange(EFFECTS)
    arrays = {
        "worth": worth[..., None, None] + nodes,
        "pauses": np.array(pauses),
        "left_low": np.full(ITERATIONS, LOW),
        "left_high": np.full(ITERATIONS, HIGH),
        "effect_half": np.full(ITERATIONS, HALF),
    }
    return PlannerPolicy.build({"algorithm": "planner", "slope": SLOPE}, arrays)


def state(elapsed: list[float], effect: list[float], iteration: int) -> State:
    found = begin(PROJECTOR, np.full((len(elapsed), 1), 8), targets=np.full((len(elapsed), 1), 400.0))
    return found._replace(
        elapsed=np.array(elapsed)[:, None], effect=np.array(effect)[:, None], iteration=np.full(len(elapsed), iteration)
    )


@pytest.mark.parametrize("pauses", [[2.0], [0.0, 2.0]])
def test_an_action_is_worth_what_the_table_says_of_where_it_leads(pauses: list[float]) -> None:
    """By hand: runs with time to spare, with more and with less than the table knows, and with strange effects."""
    now, effects = [100.0, 0.0, 390.0, 300.0], [0.1, -0.9, 0.2, 0.9]
    for iteration in (2, ITERATIONS + 3):  # past the end the last iteration's values hold
        at = state(now, effects, iteration)
        worth = np.random.default_rng(0).normal(size=(len(pauses), ITERATIONS, ALLOCATIONS))
        mask = np.ones((4, len(LAYOUT.deltas)), np.bool_)
        mask[:, 0] = False
        found = plan(pauses, worth).values(PROJECTOR, at, mask)
        options, reference = reachable(PROJECTOR, at, mask), reference_cost(PROJECTOR, at)
        assert np.isneginf(found[:, 0]).all()
        for action, delta in enumerate(LAYOUT.deltas[:, 0]):
            if action == 0:
                continue
            moved = delta != 0
            pause = 2.0 * moved
            for run in range(4):
                variant = int(moved) if len(pauses) == 2 else 0
                left = 400.0 - now[run] - (pause if len(pauses) == 1 else 0.0)
                pace = np.exp(effects[run])
                inside = np.clip(left / pace, LOW, HIGH)
                node = 10 * np.log(inside / LOW) / np.log(HIGH / LOW) * (LEFT - 1)
                node += (np.clip(effects[run], -HALF, HALF) + HALF) / (2 * HALF) * (EFFECTS - 1)
                late = min(left - LOW * pace, 0.0) * SLOPE
                money = 2.0 * pause * float(options.rate[action, run]) / reference[run]
                change = 0.5 * float(options.change[action, 0])
                expected = worth[variant, min(iteration, ITERATIONS - 1), 8 + delta] + node + late - money - change
                assert found[run, action] == pytest.approx(expected, rel=1e-5)


def test_the_action_of_the_highest_value_is_taken_and_no_other_value_is_lost() -> None:
    worth = np.zeros((1, ITERATIONS, ALLOCATIONS))
    worth[:, 2, 10] = 50.0
    policy, at = plan([2.0], worth), state([0.0, 100.0], [0.0, 0.0], 2)
    situation = Situation(PROJECTOR, at, view(PROJECTOR, at))
    choice = policy.act(situation)
    assert policy.name == "planner"
    assert LAYOUT.deltas[choice.action, 0].tolist() == [2, 2]
    assert choice.values is not None
    np.testing.assert_allclose(choice.values, policy.values(PROJECTOR, at, situation.view.mask))


def test_a_plan_without_its_arrays_names_them() -> None:
    with pytest.raises(IncompatibleArtifact, match=r"the plan lacks effect_half, left_high, left_low, pauses$"):
        PlannerPolicy.build({}, {"worth": np.zeros(1)})
