"""Where iterations differ, the next one's allocation is chosen by itself, for each run of a batch as if alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative import policies
from app.kinds.iterative.chance import chances
from app.kinds.iterative.heuristics import HEURISTICS, best_held, continuation, has_phases
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import GuardedChoice
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import State, begin

GRID = range(10, 91, 10)


def spec(iterations: int = 24, **metric: Any) -> Spec:
    cpu = {"name": "cpu", "minimum": 10, "maximum": 90, "step": 10, "max_steps": 8, "initial": 40, "price_per_hour": 36}
    seconds = {"name": "iteration_seconds", "goal": "at_most", "scope": "run", "target": 0.6 * iterations} | metric
    return Spec.model_validate(
        {
            "name": "training",
            "resources": [cpu],
            "metrics": [seconds],
            "features": [{"name": "waits", "minimum": 0, "maximum": 1}],
            "iterations": iterations,
            "weights": {"sla": 100, "cost": 1, "change": 0},
        }
    )


def table(layout: Layout) -> ModelTable:
    """Iterations that wait take .9 s at any allocation; others scale."""
    percent = layout.allocations[:, 0]
    logs = np.log(np.stack([0.03 + 13 / percent, np.full(len(percent), 0.9)], axis=1))  # [A, 2]
    spread = np.full(1, 0.05)
    return replace(
        initial_table(layout),
        log_mean=logs[None, :, :, None].astype(np.float32),
        feature_nodes=(np.array([0.0, 1.0]),),
        effect_sd=spread,
        noise_sd=spread,
        marginal_low=-2 * spread,
        marginal_high=2 * spread,
        residual_low=-2 * spread,
        residual_high=2 * spread,
        informed=True,
    )


def runs(projector: Projector, iterations: list[int], announced: list[int], lost: float = 0) -> State:
    """Runs after so many iterations at 40 %, which announce so many of the next: every fourth one waits."""
    count, longest = len(iterations), max(announced)
    levels = np.full((count, 1), GRID.index(40), np.int16)
    state = begin(projector, levels, features=np.zeros((count, 1)))
    done = np.array(iterations)
    upcoming = np.full((count, longest, 1), np.nan)
    for run, (first, result) in enumerate(zip(iterations, announced, strict=True)):
        upcoming[run, :result, 0] = [float((first + ahead) % 4 == 3) for ahead in range(result)]
    elapsed = (0.49 * done + lost)[:, None]
    return state._replace(iteration=done.astype(np.int32), elapsed=elapsed, upcoming=upcoming)


def decided(projector: Projector, state: State) -> tuple[GuardedChoice, NDArray[np.int_], NDArray[np.int_]]:
    """What the guarded rule does: the decision, percent of the next iteration, and of those after it (0: the same)."""
    situation = Situation(projector, state, view(projector, state))
    decision = policies.decide(situation, None)
    after = state.levels[:, 0] + projector.layout.deltas[decision.action, 0]
    then = continuation(situation)
    return decision, np.array(GRID)[after], np.where(then < 0, 0, np.array(GRID)[then])


@pytest.fixture
def projector() -> Projector:
    layout = Layout(spec())
    return Projector(layout, table(layout))


def test_an_iteration_that_waits_gets_the_least_and_one_that_scales_gets_more(projector: Projector) -> None:
    state = runs(projector, [3, 4], [21, 20])
    _, percent, then = decided(projector, state)
    assert percent[0] == 10
    assert percent[1] > 10
    assert (then > 10).all()


@pytest.mark.parametrize(("scales", "percent"), [(0.0, 10), (1.0, 40)])
def test_what_the_members_of_a_belief_disagree_on_counts_for_nothing(scales: float, percent: int) -> None:
    """In half of the members an iteration that waits scales like the others, or waits there, too."""
    layout = Layout(spec())
    known = table(layout)
    curve = known.log_mean[0, :, 0, 0] - known.log_mean[0, GRID.index(40), 0, 0]
    members = np.zeros((4, *known.log_mean.shape), np.float32)
    members[:2, 0, :, 1, 0] = scales * curve
    projector = Projector(layout, replace(known, members=members))
    _, result, then = decided(projector, runs(projector, [3], [21]))
    assert (result.tolist(), then.tolist()) == ([percent], [40])


def test_a_move_to_what_is_held_keeps_its_worth(projector: Projector) -> None:
    """A run that is late wants more from now on, and is not put off because the next iteration would do with less."""
    state = runs(projector, [4], [20], lost=3.0)
    situation = Situation(projector, state, view(projector, state))
    stay, choice, taken = projector.layout.noop, best_held(situation), HEURISTICS["model_predictive"].act(situation)
    assert choice.action[0] != stay
    assert taken.values is not None
    assert choice.values is not None
    gained = taken.values[0, taken.action[0]] - taken.values[0, stay]
    assert gained >= choice.values[0, choice.action[0]] - choice.values[0, stay]


def test_a_decision_does_not_depend_on_the_others_of_its_batch(projector: Projector) -> None:
    """One run announces all, one two iterations, one nothing, and one is over, at the largest allocation."""
    done, entries = [3, 7, 8, 24], [21, 2, 0, 0]
    together = runs(projector, done, entries)
    together = together._replace(levels=np.array([[3], [3], [3], [8]], np.int16))
    _, percent, then = decided(projector, together)
    assert has_phases(projector, together).tolist() == [True, True, False, False]
    for run in range(4):
        alone = State(*(field[run : run + 1] for field in together))
        assert [each.tolist() for each in decided(projector, alone)[1:]] == [[percent[run]], [then[run]]]


def test_a_long_run_changes_as_a_short_one_does() -> None:
    """A gain in one of 1,000 iterations is little beside the whole run, and is taken all the same."""
    results = []
    for iterations in (24, 1_000):
        layout = Layout(spec(iterations))
        projector = Projector(layout, table(layout))
        state = runs(projector, [3], [min(iterations - 3, 900)])
        results.append(decided(projector, state)[1].tolist())
    assert results == [[10], [10]]


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99])
def test_a_probability_that_is_required_is_kept(probability: float) -> None:
    layout = Layout(spec(probability=probability))
    projector = Projector(layout, table(layout))
    for lost in np.linspace(0, 5, 11):
        state = runs(projector, [4], [20], float(lost))
        situation = Situation(projector, state, view(projector, state))
        rule = policies.decide(situation, None)
        then = continuation(situation)
        row = layout.index(state.levels + layout.deltas[rule.action])
        current = chances(projector, state, then[None], np.zeros((1, 1)))[0, 0, 0]
        taken = chances(projector, state, row[None], np.zeros((1, 1)), then[None])[0, 0, 0]
        assert taken >= probability or current < probability, (lost, taken, current)


@pytest.mark.parametrize("metric", [{"goal": "track"}, {"goal": "at_least"}, {"scope": "iteration", "target": 0.5}])
def test_other_targets_hold_what_is_decided(metric: dict[str, Any]) -> None:
    layout = Layout(spec(**metric))
    projector = Projector(layout, table(layout))
    state = runs(projector, [3, 4], [21, 20])
    assert not has_phases(projector, state).any()
    assert decided(projector, state)[2].tolist() == [0, 0]
