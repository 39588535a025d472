"""A whole training of a workload: chunks, checkpoint, candidates, judgement."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from typing import Any

import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import check, load
from tests.planted import planted_spec, planted_table
from workers.inputs import Workload
from workers.kinds.iterative import KIND, judge
from workers.kinds.iterative.optimum import Optimum, plan
from workers.kinds.iterative.training import IterativeTraining, training
from workers.learning.execution import Executor
from workers.learning.training.competition import Competition
from workers.learning.training.driver import TrainedAgent, Training
from workers.learning.training.request import SEEDS, Bracket, Request, Start, Untrainable

SPEC = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 110.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.1)


def request(algorithm: str = "auto", budget: int = 40_000, **more: Any) -> Request:
    return Request(algorithm, budget, seed=3, **more)


def finished(training: Training) -> Training:
    before = -1.0
    while not training.done:
        assert training.progress >= before
        before = training.progress
        training.advance()
    return training


def competition(training: Training) -> Competition:
    assert isinstance(training.trainer, Competition)
    return training.trainer


def learner(training: Training) -> Executor:
    learner = competition(training).learner
    assert learner is not None
    return learner


FEW_EPISODES = 512


@cache
def planned() -> Optimum:
    return plan(Layout(SPEC), TABLE)


@contextmanager
def quick() -> Iterator[None]:
    """Verdicts on fewer episodes, beside a plan that is solved once: both take longer than most trainings here."""

    def solved(layout: Layout, table: ModelTable) -> Optimum:
        return planned() if (layout.spec, table.to_bytes()) == (SPEC, TABLE.to_bytes()) else plan(layout, table)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(judge, "JUDGE_EPISODES", FEW_EPISODES)
        patched.setattr("workers.kinds.iterative.training.plan", solved)
        yield


@pytest.fixture(autouse=True)
def every_training_is_quick() -> Iterator[None]:
    with quick():
        yield


@pytest.fixture(scope="module")
def exact() -> TrainedAgent:
    """The planner, that any gain promotes."""
    with quick():
        return finished(training(SPEC, TABLE, request("planner", equivalence_margin=0.0))).result()


@pytest.fixture(scope="module")
def auto() -> Training:
    """Learners and the planner in one bracket, to its end; any gain promotes."""
    with quick():
        return finished(training(SPEC, TABLE, request("auto", 60_000, equivalence_margin=0.0)))


def test_the_margin_that_is_asked_for_judges(exact: TrainedAgent) -> None:
    """The plan is the optimum, and 1 % above the rule that answers: of its own, that is a gain or none."""
    narrow = exact.report
    wide = finished(training(SPEC, TABLE, request("planner", equivalence_margin=0.5))).result().report
    assert (narrow["equivalence_margin"], wide["equivalence_margin"]) == (0.0, 0.5)
    assert narrow["gain"]["low"] > 0
    assert (narrow["promoted"], wide["promoted"]) == (True, False)


@pytest.mark.parametrize(
    "algorithm", ["planner", "tabular_q", "dqn", "dueling_double_dqn", "n_step_dqn", "prioritised_dqn"]
)
def test_every_algorithm_is_exported_and_judged(algorithm: str) -> None:
    done = finished(training(SPEC, TABLE, request(algorithm, 4_000)))
    artifact, report = done.result().artifact, done.result().report
    result = load(artifact)
    check(result, Layout(SPEC))
    assert result.policy.name == report["algorithm"] == algorithm
    assert {"return", "terms", "heuristics", "optimum", "promoted", "reason"} <= set(report)
    assert done.progress == 1.0
    assert done.live["phase"] == "done"
    if algorithm != "planner":
        assert report["environment_steps"] >= 4_000
        assert report["curve"]


def test_auto_lets_the_planner_compete(auto: Training) -> None:
    report = auto.result().report
    assert set(report["candidates"]) == {*IterativeTraining.competing, "planner"}
    assert report["candidates"][report["algorithm"]] == max(report["candidates"].values())
    assert report["promoted"], report["reason"]


@pytest.mark.slow
def test_a_training_goes_on_from_its_checkpoint_with_as_full_a_memory() -> None:
    """The memory is not in the checkpoint: the next advance fills it anew, so that no update is left out."""
    body = request("double_dqn", 200_000)
    straight = training(SPEC, TABLE, body)
    while not learner(straight).agent.buffer.size:
        straight.advance()
    resumed = training(SPEC, TABLE, body, straight.checkpoint())
    assert resumed.progress == straight.progress
    results = []
    for one in (straight, resumed):
        one.advance()
        results.append([learner(one).agent.buffer.size])
        while one.learning:
            one.advance()
        results[-1] += [learner(one).steps, learner(one).updates]
    assert results[0] == results[1]
    assert results[0][0] > 8_192
    assert results[0][1] >= 200_000


def test_what_cannot_be_trained_says_why() -> None:
    with pytest.raises(Untrainable, match="'sarsa'"):
        training(SPEC, TABLE, request("sarsa"))
    spec = planted_spec(iterations=4, metrics=[{"name": "loss", "target": 1.0}])
    with pytest.raises(Untrainable, match="loss"):
        finished(training(spec, planted_table(spec), request("planner")))


def test_a_result_before_the_end_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="advance"):
        training(SPEC, TABLE, request("dqn")).result()


TRIALS = len(IterativeTraining.competing) * SEEDS


def test_losers_of_auto_stop_early_and_are_told_of(auto: Training) -> None:
    report = auto.result().report
    assert [trial["algorithm"] for trial in report["bracket"]] == [*IterativeTraining.competing * SEEDS, "planner"]
    assert sum(trial["chosen"] for trial in report["bracket"]) == 1
    for trial in report["bracket"]:
        assert trial["score"] is not None
        assert trial["chosen"] or trial["ended"] or trial["share"] == 1.0
    assert report["environment_steps"] <= 60_000 * Bracket(TRIALS).work * 1.1
    assert auto.live["trials"] == TRIALS


def test_nobody_is_stopped_because_a_plan_is_exactly_optimal(auto: Training, exact: TrainedAgent) -> None:
    """A learner goes to its end, and what it reaches by itself is told, whoever is published."""
    report = auto.result().report
    assert report["algorithm"] == "planner"
    trials = [trial for trial in report["bracket"] if trial["algorithm"] != "planner"]
    (whole,) = (trial for trial in trials if trial["share"] == 1.0)
    learned = report["learned"]
    assert (learned["algorithm"], learned["optimum"]["mean"]) == (whole["algorithm"], report["optimum"]["mean"])
    assert learned["gap_to_optimum"] > 0
    assert exact.report["learned"] is None


def test_the_budget_is_steps_whatever_the_clock_says() -> None:
    """The same seed, on a machine a thousand times slower: the same agent."""
    reports = []
    for pace in (1e-6, 1e3):
        ticks = count()
        clock = partial(lambda ticks, pace: next(ticks) * pace, ticks, pace)
        reports.append(finished(training(SPEC, TABLE, request("ppo", 5_000), clock=clock)).result())
    assert reports[0].artifact == reports[1].artifact
    assert reports[0].report["environment_steps"] == reports[1].report["environment_steps"]


def test_a_bracket_goes_on_from_its_checkpoint() -> None:
    """Rungs, scores and kept policies: the same verdict as without a break."""
    body = request("tabular_q", 20_000, seeds=3)
    straight = training(SPEC, TABLE, body)
    for _ in range(3):  # the plan, and two trials
        straight.advance()
    resumed = training(SPEC, TABLE, body, straight.checkpoint())
    assert competition(resumed).records == competition(straight).records
    assert [record.rungs for record in competition(resumed).records] == [1, 1, 0]
    results = [finished(one).result() for one in (straight, resumed)]
    assert results[0].artifact == results[1].artifact
    chosen = [[trial["chosen"] for trial in result.report["bracket"]] for result in results]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("algorithm", ["dueling_double_dqn", "ppo", "tabular_q"])
def test_an_agent_is_gone_on_from(algorithm: str) -> None:
    """With next to nothing learned anew, it is about as good as what it went on from, and names it."""
    first = finished(training(SPEC, TABLE, request(algorithm, 10_000))).result()
    start = Start(7, algorithm, first.artifact)
    done = training(SPEC, TABLE, request("auto", 2_000, start=start))
    report = finished(done).result().report
    assert report["parent"] == 7
    assert list(report["candidates"]) == [algorithm, "planner"]
    before = IterativeTraining(SPEC, TABLE, 3).evaluator.score_artifact(load(first.artifact)).returns
    error = float(before.std()) / len(before) ** 0.5
    assert report["candidates"][algorithm] >= before.mean() - 4 * error


def test_what_does_not_fit_is_not_gone_on_from(exact: TrainedAgent) -> None:
    with pytest.raises(Untrainable, match="agent 3 is a planner"):
        finished(training(SPEC, TABLE, request("dqn", 2_000, start=Start(3, "dqn", exact.artifact))))
    plain = finished(training(SPEC, TABLE, request("dqn", 2_000))).result().artifact
    with pytest.raises(Untrainable, match=r"agent 4.*dueling"):
        finished(training(SPEC, TABLE, request("dueling_dqn", 2_000, start=Start(4, "dueling_dqn", plain))))


@pytest.mark.parametrize(("algorithm", "expert"), [("dqn", "planner"), ("ppo", "threshold"), ("tabular_q", "pid")])
def test_an_expert_is_imitated_before_learning(algorithm: str, expert: str) -> None:
    report = finished(training(SPEC, TABLE, request(algorithm, 5_000, imitate=expert))).result().report
    assert report["imitated"]["expert"] == expert
    assert report["imitated"]["updates"] > 0


def test_an_expert_that_is_not_there_is_named() -> None:
    with pytest.raises(Untrainable, match=r"'oracle'.*model_predictive"):
        finished(training(SPEC, TABLE, request("dqn", 2_000, imitate="oracle")))
    spec = planted_spec(iterations=4, metrics=[{"name": "loss", "target": 1.0}])
    with pytest.raises(Untrainable, match=r"imitated.*loss"):
        finished(training(spec, planted_table(spec), request("dqn", 2_000, imitate="planner")))


def test_a_workload_that_asks_for_a_probability_trains_nobody_and_says_why() -> None:
    metric = {"name": "iteration_seconds", "target": 110.0, "scope": "run", "probability": 0.95}
    workload = Workload(planted_spec(iterations=10, metrics=[metric]), model=TABLE.to_bytes())
    with pytest.raises(Untrainable, match=r"iteration_seconds \(0.95\).* PATCH the workload's probabilities to null"):
        KIND.training(workload, request())
