import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.spec import Spec
from tests.planted import planted_spec, planted_table
from workers.evaluation.arena import play
from workers.evaluation.problem import Problem
from workers.evaluation.statistics import Level
from workers.kinds.iterative.optimum import hindsight
from workers.kinds.iterative.problem import IterativeProblem

RESOURCES = [{"name": "executors", "minimum": 4, "maximum": 16, "step": 4, "max_steps": 1, "change_seconds": 2.0}]
TIMED = {"name": "iteration_seconds"}


def problem(metrics: list[dict[str, Any]], iterations: int = 7, **changes: Any) -> IterativeProblem:
    spec: Spec = planted_spec(resources=RESOURCES, iterations=iterations, metrics=metrics, **changes)
    return IterativeProblem(spec, planted_table(spec, effect=0.3, noise=0.3))


class EveryOne:
    """Plays sequence i in place i; ``sequences`` is [B, iterations − 1]."""

    name = "every_one"

    def __init__(self, sequences: NDArray[np.intp]) -> None:
        self.sequences = sequences

    def act(self, situation: Situation) -> Choice:
        rows, layout = np.arange(len(self.sequences)), situation.projector.layout
        action = self.sequences[rows, situation.state.iteration - 1]
        return Choice(np.where(situation.view.mask[rows, action], action, layout.noop))


def earned(at: Problem, sequences: NDArray[np.intp]) -> NDArray[np.float32]:
    return play(at.world(len(sequences), 4), Level.FIXED, 0, at.player(EveryOne(sequences))).returns


@pytest.mark.parametrize(
    "metrics",
    [
        [{**TIMED, "target": 62.0, "scope": "run"}],
        [{**TIMED, "target": 9.0}],
        [{**TIMED, "target": 62.0, "scope": "run", "goal": "track"}, {"name": "loss", "target": 0.9, "weight": 0.2}],
        [{**TIMED, "target": 80.0, "scope": "run", "goal": "at_least"}],
        [TIMED],
    ],
)
def test_it_is_exhaustive_search(metrics: list[dict[str, Any]]) -> None:
    """Every sequence of three actions for six decisions, played."""
    at = problem(metrics)
    result = hindsight(at.world(1, 4))
    best = earned(at, np.array(list(itertools.product(range(3), repeat=6)))).max()
    assert earned(at, result.policy.actions[None])[0] == pytest.approx(result.expected, rel=1e-4)
    assert result.expected == pytest.approx(best, rel=1e-4)
    assert best <= result.expected + result.error + 1e-6


def test_its_stated_error_is_small_and_nobody_beats_it() -> None:
    spec = planted_spec(iterations=30)
    at = IterativeProblem(spec, planted_table(spec))
    result = hindsight(at.world(1, 4))
    assert 0 <= result.error < 0.01 * abs(result.expected)
    for rule in HEURISTICS.values():
        theirs = play(at.world(1, 4), Level.FIXED, 0, at.player(rule)).returns[0]
        assert theirs <= result.expected + result.error + 1e-6, rule.name


def test_it_follows_the_member_of_the_belief_that_is_true() -> None:
    """What is promised is earned, and no rule is above it, whichever member the fixed run follows."""
    spec = planted_spec(iterations=12, metrics=[{**TIMED, "target": 130.0, "scope": "run"}])
    table = planted_table(spec)
    offsets = np.array([-0.6, -0.2, 0.3, 0.7])[:, None, None, None, None]
    shape = (4, *table.log_mean.shape)
    believed = IterativeProblem(spec, replace(table, members=np.broadcast_to(offsets, shape).astype(np.float32)))
    for seed in range(4):
        result = hindsight(believed.world(1, seed))
        best = play(believed.world(1, seed), Level.FIXED, 0, believed.player(result.policy)).returns[0]
        assert best == pytest.approx(result.expected, rel=1e-4)
        for rule in HEURISTICS.values():
            theirs = play(believed.world(1, seed), Level.FIXED, 0, believed.player(rule)).returns[0]
            assert theirs <= result.expected + result.error + 1e-6, rule.name


def test_what_can_not_be_searched_says_why() -> None:
    two = problem([{**TIMED, "target": 62.0, "scope": "run"}, {"name": "loss", "target": 8.0, "scope": "run"}])
    with pytest.raises(ValueError, match="more than one target"):
        hindsight(two.world(1, 4))
    result = two.optimum(Level.FIXED, 4)
    assert (result.policy, result.exact) == (None, False)
    assert "more than one target" in str(result.reason)
