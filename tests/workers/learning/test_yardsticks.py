"""What others are paid where learners learn, so that a first training is told beside something."""

from __future__ import annotations

import pytest

from app.kinds.iterative.heuristics import HEURISTICS
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.training import IterativeTraining
from workers.learning.training.conclude import SECONDS, WORTH_STEPS, yardsticks
from workers.learning.training.request import Request

SPEC = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 110.0, "scope": "run"}])
PROBLEM = IterativeTraining(SPEC, planted_table(SPEC, effect=0.3, noise=0.1), 1)
LONG = Request("dqn", WORTH_STEPS)


def test_the_plan_is_paid_as_much_as_the_best_rule_at_least() -> None:
    planned = PROBLEM.plan()
    values = yardsticks(PROBLEM, LONG, planned, lambda: 0.0)
    own = values.pop("plan")
    assert set(values) == set(HEURISTICS)
    assert own >= max(values.values()) - 0.05 * abs(max(values.values()))


def test_short_trainings_and_slow_rules_are_left_out() -> None:
    assert yardsticks(PROBLEM, Request("dqn", WORTH_STEPS - 1), None) == {}
    times = iter([0.0, 0.0, SECONDS + 1.0])
    assert list(yardsticks(PROBLEM, LONG, None, lambda: next(times))) == [next(iter(HEURISTICS))]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_request_has_the_same_yardsticks(seed: int) -> None:
    request = Request("dqn", WORTH_STEPS, seed)
    assert yardsticks(PROBLEM, request, None, lambda: 0.0) == yardsticks(PROBLEM, request, None, lambda: 0.0)
