"""Artifacts are played as they answer: the same numbers for simulators as for the service."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.policies import PriorityPolicy, StrategyPolicy, save
from app.kinds.workflow.scheduling.planning import SAF
from app.kinds.workflow.spec import PREDICTED
from app.policies.base import IncompatibleArtifact
from tests.workers.kinds.workflow.evaluation.schedules import drawn
from tests.workers.kinds.workflow.evaluation.test_protocol import spec
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.evaluation.problem import AgentScheduler, WorkflowProblem, scheduler_of
from workers.kinds.workflow.evaluation.schedulers import RuleScheduler

LAYOUT = WorkflowProblem(spec(backfill_order="sjf"), drawn(10, 1)).layout
SJF, F4 = StrategyPolicy({"rule": "sjf"}), StrategyPolicy({"rule": "f4"})


def test_a_strategy_is_played_with_the_workloads_mechanism() -> None:
    assert scheduler_of(save(F4), LAYOUT, pool=True) == RuleScheduler("f4", "easy", "sjf")


def test_priorities_are_played_as_they_answer() -> None:
    policy = PriorityPolicy(np.tile(np.array(SAF), (3, 1)))
    scheduler, rule = scheduler_of(save(policy), LAYOUT, pool=True), RuleScheduler("saf", "easy", "saf")
    assert isinstance(scheduler, AgentScheduler)
    episode = Episode(drawn(20, 5), LAYOUT.nodes, LAYOUT.weights, None)  # type: ignore[arg-type]
    np.testing.assert_array_equal(scheduler.play(episode).start, rule.play(episode).start)


@pytest.mark.parametrize(("changes", "pool"), [({}, False), ({"backfilling": "conservative"}, True)])
def test_what_can_not_be_played_is_refused(changes: dict[str, Any], pool: bool) -> None:
    layout = WorkflowProblem(spec(**changes), drawn(10, 1)).layout
    with pytest.raises(IncompatibleArtifact, match="none, rls or easy"):
        scheduler_of(save(SJF), layout, pool=pool)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, {"saf-predicted+easy"}),
        ({"backfilling": "none", "strategy": "lookahead"}, {"saf-predicted", "lookahead"}),
        ({"strategy": "lookahead"}, {"saf-predicted+easy", "lookahead+easy"}),
        ({"strategy": "lookahead", "limits_per_user": {"running_tasks": 1}}, {"saf-predicted+easy"}),
        ({"strategy": "lookahead", "backfilling": "rls"}, {"saf-predicted+rls"}),
        ({"backfilling": "conservative"}, set()),
    ],
)
def test_predicted_run_times_are_a_baseline_and_lookahead_where_it_serves(
    changes: dict[str, Any], names: set[str]
) -> None:
    problem = WorkflowProblem(spec(**changes), drawn(10, 1))
    assert {name for name in problem.heuristics if name.startswith(PREDICTED)} == names


@pytest.mark.parametrize("strategy", PREDICTED)
def test_predicted_run_times_follow_users_past_estimates(strategy: str) -> None:
    """Of two users one asks for ten times what is needed: its tasks go first once that is known."""
    problem = WorkflowProblem(spec(strategy=strategy), drawn(10, 1))
    trace = drawn(400, 3, pause=15.0)
    user = np.arange(trace.tasks) % 2
    trace = trace._replace(user=user, users=("x", "y"), estimate=trace.runtime * np.where(user == 0, 10.0, 1.0))
    episode = Episode(trace, LAYOUT.nodes, LAYOUT.weights, None)  # type: ignore[arg-type]
    predicted = problem.schedulers[f"{strategy}+easy"].play(episode)
    believed = RuleScheduler("saf", "easy", "saf").play(episode)
    wait = [float((played.start - trace.submit)[user == 0].mean()) for played in (predicted, believed)]
    assert wait[0] < 0.8 * wait[1]
