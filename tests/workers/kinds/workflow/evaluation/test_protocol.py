"""The evaluation protocol on workloads of kind workflow: planted candidates come out in the class they deserve."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.policies import save
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace
from app.policies.base import IncompatibleArtifact
from tests.planted import planted_spec, planted_table
from tests.workers.evaluation.report.test_page import Seen
from tests.workers.kinds.workflow.evaluation.schedules import drawn, jobs
from workers.evaluation.candidate import Candidate, Settings
from workers.evaluation.protocol import Evaluation, EvaluationRun, evaluate
from workers.evaluation.report.page import page
from workers.evaluation.statistics import Level
from workers.inputs import HoldOut, Workload
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.workflow.evaluation.episodes import Episode, distort_estimates
from workers.kinds.workflow.evaluation.problem import WorkflowProblem
from workers.kinds.workflow.evaluation.schedulers import RuleScheduler
from workers.kinds.workflow.evaluation.world import Always, Hindsight, SchedulerPolicy
from workers.kinds.workflow.kind import KIND
from workers.kinds.workflow.simulator.simulate import Schedule, slowdowns

RULES = ("fcfs", "fcfs+easy", "ljf+easy")
FEW = (*RULES, "sjf+easy", "f4+easy")
SETTINGS = Settings(seed=2, seeds=10, episodes=8, trials=2, tuning_episodes=4, demonstrations=4)


def spec(**changes: Any) -> Spec:
    pool = {"name": "pool", "processors": 16, "minimum": 1, "maximum": 1, "price_per_hour": 1.0}
    return Spec.model_validate({"name": "hpc", "kind": "workflow", "nodes": [pool], **changes})


def build(tasks: int = 8, held_out: int = 1) -> WorkflowProblem:
    """A busy pool, and for speed's sake a few of its heuristics, of which the best of FEW is well ahead."""
    problem = WorkflowProblem(spec(), drawn(400, 1, pause=15.0), [drawn(200, 2, pause=15.0)] * held_out, tasks=tasks)
    problem.schedulers = {name: problem.schedulers[name] for name in FEW}
    problem.heuristics = {name: Always(number, name) for number, name in enumerate(RULES)}
    return problem


class Hindmost:
    """The worst that the strategies can do."""

    name = "hindmost"

    def play(self, episode: Episode) -> Schedule:
        played = [RuleScheduler(rule, "none").play(episode) for rule in ("ljf", "fcfs", "smallest")]
        return max(played, key=lambda schedule: float(slowdowns(episode.trace, schedule).mean()))


def test_levels_plan_by_the_predictor_that_serves_fitted_to_what_is_not_held_out() -> None:
    traces = {"a": drawn(60, 1), "b": drawn(60, 2)}
    model = Predictor("mean", mean=1.0).to_bytes()
    workload = Workload(spec(), model, list(traces.items()))
    problem = KIND.evaluation(workload, HoldOut(("b",), 0.0), 0).problem
    assert isinstance(problem, WorkflowProblem)
    mean = traces["a"].runtime.mean()
    for played, trace in zip((*problem.traces, *problem.held_out), traces.values(), strict=True):
        np.testing.assert_allclose(played.expected, np.minimum(mean, trace.requested))
    world = problem.world(4, 0)
    world.reset()
    assert all(episode.trace.predicted is not None for episode in world.truth)
    exact = distort_estimates(problem.traces[0], 0.0)
    np.testing.assert_allclose(exact.expected, exact.runtime)


@pytest.fixture(scope="module")
def problem() -> WorkflowProblem:
    return build()


@pytest.fixture(scope="module")
def planted(problem: WorkflowProblem) -> Evaluation:
    memoriser = problem.optimum(Level.FIXED, SETTINGS.seed).policy
    assert memoriser is not None
    candidates = [
        Candidate("memoriser", [memoriser]),
        Candidate("told", [Hindsight()]),
        Candidate("hindmost", [SchedulerPolicy(Hindmost())]),
    ]
    return evaluate(problem, candidates, SETTINGS)


def candidate(evaluation: Evaluation, name: str) -> dict[str, Any]:
    return next(c for c in evaluation.as_dict()["candidates"] if c["name"] == name)


def test_a_memoriser_is_classed_l0(planted: Evaluation) -> None:
    levels = candidate(planted, "memoriser")["levels"]
    assert planted.class_of("memoriser") == "L0"
    assert levels[0]["gap_to_optimum"] == 0
    assert levels[1]["advantage"]["high"] < 0


def test_an_oracle_is_classed_l4(planted: Evaluation) -> None:
    assert planted.class_of("told") == "L4"
    assert [level["passed"] for level in candidate(planted, "told")["levels"]] == [True] * 5


def test_a_bad_policy_is_of_no_class(planted: Evaluation) -> None:
    assert planted.class_of("hindmost") == "none"
    assert planted.as_dict()["levels"][2]["policies"]["hindmost"]["terms"]["slowdown"] > 0


def test_the_document_is_plain_and_whole(planted: Evaluation) -> None:
    fields = planted.as_dict()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert [level["available"] for level in fields["levels"]] == [True] * 6
    assert fields["levels"][1]["optimum"]["exact"]
    assert fields["levels"][-1]["wrappers"][-1] == "load"
    assert "load" not in fields["levels"][-2]["wrappers"]
    assert set(RULES) < set(fields["levels"][1]["policies"])
    assert fields["terms"] == ["slowdown", "wait", "makespan", "deadline", "utilisation", "cost"]
    assert sum(map(sum, candidate(planted, "hindmost")["heat_map"]["count"])) == 10 * 8


def test_the_page_draws_the_fixed_episode(planted: Evaluation) -> None:
    fields = planted.as_dict()
    shown = Seen(page(fields))
    assert "The fixed episode" in shown.texts
    names = [one["name"] for one in fields["pictures"]["schedules"]]
    best = fields["levels"][1]["best_heuristic"]
    assert names == ["memoriser", "told", "hindmost", best, "optimum"]
    assert f"{best}: which task ran when, and where" in shown.texts
    assert "Cost against makespan; nothing beats those on the line in both" in shown.texts


def test_an_evaluation_goes_on_where_it_stopped() -> None:
    settings = replace(SETTINGS, episodes=4, level="L2")
    candidates = [Candidate("agent 1", [SchedulerPolicy(RuleScheduler("sjf", "none"))])]
    whole = evaluate(build(), candidates, settings).as_dict()
    run = EvaluationRun(build(), candidates, settings)
    run.advance()
    checkpoint = run.checkpoint()
    resumed = EvaluationRun(build(), candidates, settings, checkpoint)
    while not resumed.done:
        resumed.advance()
    again = resumed.result().as_dict()
    for reported in (whole, again):
        reported.pop("seconds")
        reported["tuner"].pop("seconds")
    assert again == whole


def test_without_held_out_traces_there_is_no_l3() -> None:
    problem = build(held_out=0)
    assert "held out" in str(problem.unavailable(Level.COMPOSITION))
    assert problem.unavailable(Level.ENVIRONMENT) is None


def test_many_tasks_have_a_best_plan_that_is_not_exact() -> None:
    problem = build(tasks=40)
    optimum = problem.optimum(Level.FIXED, 3)
    world = problem.world(1, 3)
    world.reset()
    best = max(world.value(0, number) for number in range(world.numbered))
    assert not optimum.exact
    assert "40 tasks are too many" in str(optimum.reason)
    assert optimum.expected is not None
    assert optimum.expected >= best
    assert problem.optimum(Level.SEEDS, 3).policy is None


def test_what_can_not_be_played_is_refused() -> None:
    wide = jobs([0, 1], [10, 10], [1, 17])
    with pytest.raises(ValueError, match="task 1 fits none of the nodes"):
        WorkflowProblem(spec(), wide)
    unplayed = wide._replace(runtime=np.full(2, np.nan))
    with pytest.raises(ValueError, match="no task with a run time"):
        WorkflowProblem(spec(), unplayed)


def test_a_task_that_never_ran_is_left_out() -> None:
    trace = jobs([0, 1, 2], [10, 10, 10], [1, 1, 1])
    trace.runtime[1] = np.nan
    problem = WorkflowProblem(spec(), trace)
    assert isinstance(problem, WorkflowProblem)
    assert problem.traces[0].names == ("0", "2")


def test_an_agent_of_another_kind_is_refused(problem: WorkflowProblem) -> None:
    other = planted_spec(metrics=[{"name": "loss", "target": 1.0}])
    foreign = save(HeuristicPolicy({"heuristic": "hold"}), IterativeProblem(other, planted_table(other)).layout)
    with pytest.raises(IncompatibleArtifact):
        EvaluationRun(problem, [Candidate("a", [foreign])], SETTINGS)


def diamond() -> Trace:
    """Four tasks: the first, then two beside each other, then the last."""
    trace = jobs([0, 0, 0, 0], [40, 60, 80, 20], [1, 2, 1, 1])
    return trace._replace(
        group=np.zeros(4, np.int64),
        parent_start=np.array([0, 0, 1, 2, 4]),
        parents=np.array([0, 0, 1, 2]),
        data=np.array([1e6, 1e6, 2e6, 1e6]),
    )


@pytest.mark.slow
def test_a_workflow_on_several_nodes_is_judged_beside_its_own_strategies() -> None:
    nodes = [
        {"name": "slow", "processors": 2, "minimum": 2, "maximum": 2, "price_per_hour": 1, "bandwidth_mbps": 1},
        {
            "name": "fast",
            "processors": 2,
            "minimum": 1,
            "maximum": 1,
            "speed": 2,
            "price_per_hour": 4,
            "bandwidth_mbps": 1,
        },
    ]
    weights = {"slowdown": 0, "makespan": 1, "cost": 0.1}
    problem = WorkflowProblem(spec(nodes=nodes, weights=weights), (diamond(), diamond()), held_out=(diamond(),))
    settings = replace(SETTINGS, episodes=2, trials=0, equivalence_margin=0.03)
    fields = evaluate(problem, [Candidate("agent 1", [Hindsight()])], settings).as_dict()
    fixed = fields["levels"][1]
    assert {"heft", "cpop", "peft", "level", "cheapest", "deadline", "heft at run time"} <= set(fixed["policies"])
    assert fixed["optimum"]["exact"]
    optimum = fixed["policies"]["optimum"]["return"]["mean"]
    assert all(row["return"]["mean"] <= optimum + 1e-6 for row in fixed["policies"].values())
    assert fields["candidates"][0]["class"] == "L4"
