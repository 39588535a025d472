"""The tuned rule, the headroom, and trainings where there is nothing to win."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HEURISTICS, HeuristicPolicy, TunedNumbers, TunedPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import load, save
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.policies.base import IncompatibleArtifact
from tests.planted import planted_spec, planted_table
from workers.evaluation.headroom import TUNED, Headroom
from workers.evaluation.statistics import ratio_interval
from workers.kinds.iterative import tuning
from workers.kinds.iterative.judge import Evaluator, judge
from workers.kinds.iterative.optimum import NoOptimum, plan
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.simulator import IterativeSimulator
from workers.kinds.iterative.training import IterativeTraining, training
from workers.kinds.iterative.tuning import NEUTRAL, artifact_of, headroom, served, tune
from workers.learning.training.driver import PlannedPolicy, TrainedAgent
from workers.learning.training.request import Request, Untrainable

SHIFT = {"pace_shift": {"probability": 0.6, "factor": [1.4, 2.0]}}
DEADLINE = [{"name": "iteration_seconds", "target": 110.0, "scope": "run"}]
SHIFTING = planted_spec(name="shifting", iterations=10, disturbances=SHIFT, metrics=DEADLINE)
SPEC = planted_spec(iterations=10, metrics=DEADLINE)
BUDGET = 4 * 16 * 16 * 10


def two_laws(spec: Spec) -> ModelTable:
    """Half of the runs scale well, half of them not at all."""
    table = planted_table(spec, effect=0.1, noise=0.1)
    executors = Layout(spec).allocations[:, 0]
    laws = np.log([1 + 80 / executors, 8 + 0 * executors])
    middle = laws.mean(axis=0)
    return replace(
        table,
        log_mean=middle[None, :, None, None].astype(np.float32),
        members=(laws - middle)[:, None, :, None, None].astype(np.float32),
    )


@pytest.fixture(autouse=True)
def few_episodes() -> Iterator[None]:
    """A search that takes a second."""
    with pytest.MonkeyPatch.context() as patched:
        for name, count in (("EPISODES", 16), ("VALIDATION_EPISODES", 64), ("HEADROOM_EPISODES", 128)):
            patched.setattr(tuning, name, count)
        patched.setattr(tuning, "HINDSIGHT_EPISODES", 3)
        patched.setattr("workers.kinds.iterative.judge.JUDGE_EPISODES", 128)
        patched.setattr("workers.kinds.iterative.judge.BELIEF_EPISODES", 128)
        patched.setattr("workers.kinds.iterative.training.VALIDATION_EPISODES", 128)
        for name in ("training.plan", "judge.solve"):
            patched.setattr(f"workers.kinds.iterative.{name}", unsolved)
        yield


def unsolved(*_: Any) -> Any:
    """An optimum that can't be had."""
    raise NoOptimum("left out")


def situations(spec: Spec, table: ModelTable) -> Iterator[Situation]:
    """Those of eight runs, from their first decision to their last."""
    simulator = IterativeSimulator(Layout(spec), table, 8, seed=3)
    simulator.reset()
    for _ in range(spec.iterations - 1):
        yield simulator.situation
        simulator.step(HEURISTICS["model_predictive"].act(simulator.situation).action)


@pytest.mark.parametrize("table", [planted_table(SPEC), two_laws(SPEC)], ids=["one law", "two laws"])
def test_neutral_numbers_are_model_predictive_control(table: ModelTable) -> None:
    policy = load(artifact_of(Layout(SPEC), NEUTRAL)).policy
    for situation in situations(SPEC, table):
        actions, wanted = policy.act(situation), HEURISTICS["model_predictive"].act(situation)
        assert actions.action.tolist() == wanted.action.tolist()
        assert actions.values is not None
        assert wanted.values is not None
        assert np.allclose(actions.values, wanted.values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("table", [planted_table(SPEC), two_laws(SPEC)], ids=["one law", "two laws"])
def test_an_earlier_target_asks_for_more(table: ModelTable) -> None:
    deltas = Layout(SPEC).deltas[:, 0]
    early, plain = (TunedPolicy({"numbers": TunedNumbers(target=t)._asdict()}) for t in (0.7, 1.0))
    steps = [(deltas[early.act(one).action], deltas[plain.act(one).action]) for one in situations(SPEC, table)]
    assert all((more >= less).all() for more, less in steps)
    assert any((more > less).any() for more, less in steps)


def test_targets_to_be_reached_are_raised_and_others_left() -> None:
    metrics: list[dict[str, Any]] = [
        {"name": "iteration_seconds", "target": 110.0, "scope": "run"},
        {"name": "accuracy", "target": 2.0, "scope": "iteration", "goal": "at_least"},
        {"name": "rate", "target": 3.0, "scope": "iteration", "goal": "track"},
    ]
    spec = planted_spec(iterations=10, metrics=metrics)
    policy = TunedPolicy({"numbers": TunedNumbers(target=0.5)._asdict()})
    situation = next(situations(spec, planted_table(spec)))
    changed = policy._changed(situation.projector, situation.state)
    ratio = changed.targets[0] / situation.state.targets[0]
    assert dict(zip(Layout(spec).metrics, ratio.tolist(), strict=True)) == {
        "iteration_seconds": 0.5,
        "accuracy": 2.0,
        "rate": 1.0,
    }


def test_it_looks_at_more_of_a_run_than_its_observation() -> None:
    """So observations that are alike say nothing of what it confuses, as with other rules."""
    problem = IterativeProblem(SPEC, planted_table(SPEC))
    assert problem.encoder(artifact_of(Layout(SPEC), NEUTRAL)) is None
    assert problem.encoder(save(HeuristicPolicy({"heuristic": "pid"}), Layout(SPEC))) is None


NUMBERS = TunedNumbers()._asdict()


@pytest.mark.parametrize(
    "numbers", [None, {}, {**NUMBERS, "more": 1.0}, {**NUMBERS, "risk": float("nan")}, {**NUMBERS, "risk": "1"}]
)
def test_other_numbers_are_refused(numbers: Any) -> None:
    with pytest.raises(IncompatibleArtifact, match="a tuned rule needs finite target, risk, follow, ignored"):
        TunedPolicy.build({"algorithm": TUNED, "numbers": numbers}, {})


def test_too_small_a_budget_tunes_nothing() -> None:
    assert tune(SPEC, planted_table(SPEC), 1, BUDGET - 1) is None
    result, again = (tune(SPEC, planted_table(SPEC), 1, BUDGET) for _ in range(2))
    assert result is not None
    assert result.generations == 4
    assert result == again


def test_tuning_gains_where_the_pace_shifts() -> None:
    table = planted_table(SHIFTING, effect=0.1, noise=0.1)
    result = tune(SHIFTING, table, 1, 2 * BUDGET)
    assert result is not None
    evaluator, layout = Evaluator(SHIFTING, table, 99, 512), Layout(SHIFTING)
    artifacts = result.artifact, artifact_of(layout, served(Projector(layout, table))), artifact_of(layout, NEUTRAL)
    tuned, answers, neutral = (evaluator.score_artifact(load(artifact)).returns for artifact in artifacts)
    assert min(tuned.mean(), answers.mean()) > neutral.mean()
    assert tuned.mean() > answers.mean() - 0.005 * abs(answers.mean())  # other episodes than it was tuned on
    other = evaluator.score(HEURISTICS["model_predictive"])
    assert np.isclose(answers, other.returns, atol=1e-5).mean() > 0.95  # some choices are close


def test_to_know_the_law_is_worth_something_where_runs_follow_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "HINDSIGHT_EPISODES", 48)
    assert min(tuning._beyond(SPEC, two_laws(SPEC), artifact_of(Layout(SPEC), NEUTRAL), range(8))) > -1e-6
    room = headroom(SPEC, two_laws(SPEC), artifact_of(Layout(SPEC), NEUTRAL), 5)
    assert room.left["low"] > 0
    assert room.beyond is not None
    assert room.beyond["high"] > room.left["mean"]  # here the law is nearly all that noise hides: .0049 against .0047
    assert room.gain["mean"] == pytest.approx(0, abs=1e-6)
    assert not room.nothing_to_win()
    assert room.report()["text"] == room.text()


def test_where_hindsight_gains_nothing_there_is_nothing_to_win() -> None:
    """A target that every allocation meets, and no noise: the smallest allocation is best from the start."""
    easy = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 9_000.0, "scope": "run"}])
    room = headroom(easy, planted_table(easy, effect=0.001, noise=0.001), artifact_of(Layout(easy), NEUTRAL), 5)
    assert room.is_exhausted
    assert "nothing to gain here: with all noise known, the tuned rule loses at most 0.0 %" in room.nothing_to_win()


def test_disturbed_runs_have_no_bound_in_hindsight() -> None:
    room = headroom(SHIFTING, planted_table(SHIFTING), artifact_of(Layout(SHIFTING), NEUTRAL), 5)
    assert (room.beyond, room.nothing_to_win()) == (None, "")
    assert "runs are disturbed" in room.text()


def test_without_a_bound_in_hindsight_there_may_be_something_to_win() -> None:
    metrics = [{"name": name, "target": 110.0, "scope": "run"} for name in ("iteration_seconds", "energy")]
    spec = planted_spec(iterations=10, metrics=metrics)
    room = headroom(spec, planted_table(spec), artifact_of(Layout(spec), NEUTRAL), 5)
    assert (room.beyond, room.nothing_to_win()) == (None, "")
    assert "more than one target on a run's sum" in room.text()


def test_the_tuned_rule_is_one_more_rival_and_the_share_won_is_told() -> None:
    table, layout = two_laws(SPEC), Layout(SPEC)
    tuned, worse = artifact_of(layout, NEUTRAL), artifact_of(layout, NEUTRAL + np.array([-0.3, 0, 0, 0, 0]))
    report = judge(SPEC, table, worse, seed=3, tuned=tuned)
    assert TUNED in report["heuristics"]
    assert report["share_won"]["high"] < 0
    assert not report["promoted"]
    assert judge(SPEC, table, tuned, seed=3)["share_won"] is None


def trained(spec: Spec, table: ModelTable, request: Request) -> TrainedAgent:
    result = training(spec, table, request)
    while not result.done:
        result.advance()
    return result.result()


def nothing(*_: Any) -> Headroom:
    """A headroom without room."""
    none, some = {"mean": 0.0, "low": 0.0, "high": 0.0}, {"mean": -1.0, "low": -1.0, "high": -1.0}
    return Headroom("model_predictive", some, some, some, none, none, none, 0.01)


def test_nothing_is_learned_where_there_is_nothing_to_win_unless_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.kinds.iterative.training.headroom", nothing)
    table = planted_table(SPEC)
    request = Request("ppo", budget=BUDGET, seed=3)
    with pytest.raises(Untrainable, match=r'nothing to gain here: .* train all the same with "force": true'):
        trained(SPEC, table, request)
    auto = trained(SPEC, table, replace(request, algorithm="auto", seeds=1)).report
    assert auto["algorithm"] == TUNED
    assert [row["steps"] for row in auto["bracket"] if row["algorithm"] == "ppo"] == [0]
    forced = trained(SPEC, table, replace(request, force=True)).report
    assert forced["environment_steps"] > 0


def test_a_training_tells_the_headroom_first_and_judges_beside_the_tuned_rule() -> None:
    agent = trained(SHIFTING, planted_table(SHIFTING), Request("ppo", budget=BUDGET, seed=3))
    room = agent.report["headroom"]
    assert {"served", "tuned", "knowable", "beyond", "gain", "left", "text", "numbers", "share_won"} <= set(room)
    assert TUNED in agent.report["heuristics"]


def test_the_better_of_plan_and_tuned_rule_competes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.kinds.iterative.training.plan", plan)
    problem = IterativeTraining(SPEC, planted_table(SPEC), 1)
    scores = {"planner": 1.0, TUNED: 2.0}
    monkeypatch.setattr(problem, "score", lambda artifact: scores[load(artifact).policy.name])
    tuned = problem.plan(BUDGET)
    assert (tuned.name, tuned.score) == (TUNED, 2.0)
    assert problem.calibrate(tuned.artifact) == tuned.artifact
    scores["planner"] = 3.0
    planned = problem.plan(BUDGET)
    assert (planned.name, planned.score) == ("planner", 3.0)
    assert planned.details["tuned"] == tuned.details["tuned"]
    assert PlannedPolicy.unpack(planned.pack()) == planned


def test_a_share_says_nothing_where_the_whole_may_be_nothing() -> None:
    random = np.random.default_rng(0)
    wholes = 1 + 0.1 * random.standard_normal(400)
    interval = ratio_interval(0.5 * wholes, wholes)
    assert interval is not None
    assert interval.low <= 0.5 <= interval.high
    assert interval.high - interval.low < 1e-9
    noisy = ratio_interval(0.5 + random.standard_normal(400), wholes)
    assert noisy is not None
    assert noisy.low < 0.5 < noisy.high < 0.7
    assert ratio_interval(wholes, 0.01 * random.standard_normal(400)) is None
