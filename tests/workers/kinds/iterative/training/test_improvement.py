"""The improved rule: the tuned rule before it learns, better where runs change their pace, equal in torch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from app.kinds.iterative.heuristics import ImprovedRulePolicy, corrections
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import decide, load, save
from app.kinds.iterative.spec import Spec
from app.policies.base import Arrays, IncompatibleArtifact
from tests.planted import planted_spec, planted_table
from tests.workers.kinds.iterative.training.test_tuning import SHIFTING, SPEC, two_laws
from workers.evaluation.headroom import TUNED
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative import improvement
from workers.kinds.iterative.improvement import IMPROVED, Branching, Corrector, improve, label
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import NoOptimum
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator
from workers.kinds.iterative.training import IterativeTraining
from workers.kinds.iterative.tuning import NEUTRAL, artifact_of
from workers.learning.training.driver import PlannedPolicy

POINTS = NEUTRAL, np.array([-0.05, 0.8, np.log(4e-3), 0.6, 0.2])
TWO = planted_spec(
    name="two",
    iterations=12,
    metrics=[{"name": "iteration_seconds", "target": 150.0, "scope": "run"}],
    resources=[{"name": "gpus", "minimum": 1, "maximum": 6}, {"name": "cpus", "minimum": 1, "maximum": 4}],
)
BUDGET = 4_000
TUNES = 20_000  # enough to tune the rule too


def improved(spec: Spec, point: np.ndarray, arrays: Arrays) -> ImprovedRulePolicy:
    result = load(artifact_of(Layout(spec), point))
    config = {**result.policy.config, "algorithm": IMPROVED, "hysteresis": result.experience.hysteresis}
    return ImprovedRulePolicy.build(config, arrays)


def untrained(spec: Spec) -> Arrays:
    return Corrector(Layout(spec), np.random.default_rng(5)).arrays


def tables() -> list[tuple[Spec, ModelTable]]:
    return [(SHIFTING, planted_table(SHIFTING)), (TWO, planted_table(TWO)), (SPEC, two_laws(SPEC))]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("spec", "table"), tables())
def test_before_learning_it_decides_as_the_tuned_rule(spec: Spec, table: ModelTable, point: np.ndarray) -> None:
    layout = Layout(spec)
    rule, arrays = load(artifact_of(layout, point)), untrained(spec)
    same = load(save(improved(spec, point, arrays), layout))
    arrays["correction.bias"] = np.linspace(0, 2, len(layout.deltas), dtype=np.float32)
    other = load(save(improved(spec, point, arrays), layout))
    simulator = IterativeSimulator(layout, table, 128, 11, TRAINING)
    simulator.reset()
    moved = departed = 0
    for _ in range(layout.iterations):
        by_rule = decide(simulator.situation, rule).action
        np.testing.assert_array_equal(decide(simulator.situation, same).action, by_rule)
        moved += int((by_rule != layout.noop).sum())
        departed += int((decide(simulator.situation, other).action != by_rule).sum())
        simulator.step(by_rule)
    assert moved > 20
    assert departed > 20


@pytest.mark.parametrize("spec", [SHIFTING, TWO])
def test_torch_learns_what_numpy_serves(spec: Spec) -> None:
    random, arrays = np.random.default_rng(2), untrained(spec)
    arrays |= {name: random.normal(size=array.shape).astype(np.float32) for name, array in arrays.items()}
    arrays["scale"] = np.exp(arrays["scale"])
    inputs = random.normal(0, 3, (64, len(arrays["centre"]))).astype(np.float32)
    learned = corrections(torch.tensor(inputs), {name: torch.tensor(array) for name, array in arrays.items()})
    np.testing.assert_allclose(corrections(inputs, arrays), learned.numpy(), rtol=1e-5, atol=1e-5)


def test_copies_of_a_run_have_the_same_noise_and_leave_the_run_alone() -> None:
    simulator = Branching(Layout(SHIFTING), planted_table(SHIFTING), 1, 0, shaped=False)
    simulator.restart(8, 3)
    before, noop = simulator.state, simulator.layout.noop
    branches = simulator.branch(np.array([6, 1]), 2)
    steps = [branches.step(np.full(4, noop)).reward for _ in range(3)]
    for first, second, third, fourth in steps:
        assert (first, second) == (third, fourth)
        assert first != second
    assert branches.state.iteration.tolist() == [4] * 4
    assert simulator.state is before
    assert len(simulator.step(np.full(8, noop)).reward) == 8


def test_the_advantage_of_the_own_action_is_nothing_and_that_of_illegal_ones_is_none() -> None:
    simulator = Branching(Layout(TWO), planted_table(TWO), 1, 0, shaped=False)
    simulator.restart(32, 3)
    policy = improved(TWO, POINTS[1], untrained(TWO))
    result = label(simulator, policy, 16, np.random.default_rng(1))
    assert result.advantages.shape == result.values.shape == (16 * 11, len(Layout(TWO).deltas))
    own = result.advantages[np.arange(len(result.values)), result.values.argmax(axis=1)]
    np.testing.assert_array_equal(own, 0)
    illegal = np.isneginf(result.values)
    assert illegal.any()
    np.testing.assert_array_equal(result.advantages[illegal], 0)
    assert (result.advantages[~illegal] != 0).mean() > 0.5


@pytest.fixture
def tuned() -> bytes:
    return artifact_of(Layout(SHIFTING), NEUTRAL)


def test_it_gains_over_its_rule_where_runs_change_their_pace(tuned: bytes) -> None:
    table = planted_table(SHIFTING, noise=0.15)
    data = improve(SHIFTING, table, tuned, 1, 40_000)
    assert data is not None
    evaluator = Evaluator(SHIFTING, table, 9_100, 8_192)
    gain = evaluator.score_artifact(load(data)).returns - evaluator.score_artifact(load(tuned)).returns
    assert mean_interval(gain.reshape(64, -1).mean(axis=1))["low"] > 0


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixth of the rounds, each as long as ever."""
    monkeypatch.setattr(improvement, "ROUNDS", improvement.ROUNDS // 6)
    monkeypatch.setattr(improvement, "ROLLED", improvement.ROLLED / 6)


@pytest.mark.usefixtures("brief")
def test_equal_seeds_give_equal_rules_and_a_small_budget_none(tuned: bytes) -> None:
    table = planted_table(SHIFTING)
    first, again, other = (improve(SHIFTING, table, tuned, seed, BUDGET) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert improve(SHIFTING, table, tuned, 1, BUDGET // 20) is None


@pytest.fixture
def no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise NoOptimum("too large")

    for name, count in (("EPISODES", 16), ("VALIDATION_EPISODES", 64), ("HEADROOM_EPISODES", 128)):
        monkeypatch.setattr(f"workers.kinds.iterative.tuning.{name}", count)
    monkeypatch.setattr("workers.kinds.iterative.tuning.HINDSIGHT_EPISODES", 3)
    monkeypatch.setattr("workers.kinds.iterative.judge.JUDGE_EPISODES", 256)
    monkeypatch.setattr("workers.kinds.iterative.training.plan", none)


@pytest.mark.usefixtures("no_plan", "brief")
def test_the_better_of_tuned_and_improved_rule_competes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = IterativeTraining(SHIFTING, planted_table(SHIFTING), 1, improves=True)
    scores = {TUNED: 1.0, IMPROVED: 2.0}
    monkeypatch.setattr(problem, "score", lambda artifact: scores[load(artifact).policy.name])
    better = problem.plan(TUNES)
    assert (better.name, better.score) == (IMPROVED, 2.0)
    assert PlannedPolicy.unpack(better.pack()) == better
    assert TUNED in problem.judge(better.artifact, better, None, 0.01)["heuristics"]
    scores[IMPROVED] = 1.0
    assert problem.plan(TUNES).name == TUNED


@pytest.mark.usefixtures("no_plan")
def test_only_trainings_in_which_it_competes_improve_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improvement, "improve", lambda *_: pytest.fail("it was improved"))
    assert IterativeTraining(SHIFTING, planted_table(SHIFTING), 1).plan(TUNES).name == TUNED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": None}, "lacks scale"),
        ({"hidden.1.bias": None}, r"lacks hidden\.1\.bias"),
        ({"hidden.0.weight": np.zeros((32, 3), np.float32)}, "can't be read"),
        ({"scale": np.ones(2, np.float32)}, "can't be read"),
        ({"hidden.1.bias": np.zeros(7, np.float32)}, "not"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: Arrays, message: str) -> None:
    arrays = {name: array for name, array in (untrained(TWO) | change).items() if array is not None}
    with pytest.raises(IncompatibleArtifact, match=message):
        improved(TWO, NEUTRAL, arrays)
