"""The rule's numbers where disturbances are declared: what is served, how it is tuned, and on which workloads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.kinds.iterative import declared
from app.kinds.iterative.declared import MODEL_NOISE, NEUTRAL, NUMBERS, numbers, shipped
from app.kinds.iterative.heuristics import (
    HEURISTICS,
    MODEL_PREDICTIVE,
    TunedNumbers,
    TunedPolicy,
    adjusted,
    foreseen,
    model_predictive,
)
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import Verdict, decide, load
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative import declared as tuning
from workers.kinds.iterative.declared import Arena, relative
from workers.kinds.iterative.generator import Generated, draw_disturbances, generate
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.simulator import IterativeSimulator
from workers.kinds.iterative.tuning import artifact_of

DEADLINE = [{"name": "iteration_seconds", "target": 110.0, "scope": "run"}]
SHIFT = {"pace_shift": {"probability": 0.6, "factor": [1.4, 2.0]}}
LOST = {"lost_capacity": {"probability": 0.5, "left": [0.2, 0.6]}}
PLAIN = planted_spec(iterations=10, metrics=DEADLINE)
SHIFTING = planted_spec(name="shifting", iterations=10, disturbances=SHIFT, metrics=DEADLINE)
LOSING = planted_spec(name="losing", iterations=10, disturbances=LOST, metrics=DEADLINE)
SURE = planted_spec(iterations=10, disturbances=SHIFT, metrics=[{**DEADLINE[0], "probability": 0.9}])
WEIGHTS = np.array([[-0.1, -0.5, 0.0], [0.2, 0.0, 0.4], [0.3, 0.1, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.2]])


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that make a difference, whatever is shipped."""
    monkeypatch.setattr(declared, "shipped", lambda: WEIGHTS)


def simulators(spec: Spec, table: ModelTable) -> Iterator[IterativeSimulator]:
    """Eight runs before each of their decisions."""
    simulator = IterativeSimulator(Layout(spec), table, 8, seed=3)
    simulator.reset()
    for _ in range(spec.iterations - 1):
        yield simulator
        simulator.step(HEURISTICS[MODEL_PREDICTIVE].act(simulator.situation).action)


def test_what_is_shipped_is_what_the_command_writes() -> None:
    made = json.loads(declared.SHIPPED.read_text())
    assert made["command"].startswith("steward pretrain --seed ")
    assert tuple(made["weights"]) == NUMBERS
    assert shipped().shape == (5, 3)
    assert np.isfinite(shipped()).all()
    assert shipped().any()


def test_milder_disturbances_change_the_numbers_less() -> None:
    assert np.array_equal(numbers(WEIGHTS, PLAIN), NEUTRAL)
    assert np.array_equal(numbers(0 * WEIGHTS, SHIFTING), NEUTRAL)
    mild = planted_spec(disturbances={"pace_shift": {"probability": 0.05, "factor": [1.01, 1.03]}})
    away = [np.abs(numbers(WEIGHTS, spec) - NEUTRAL).max() for spec in (mild, SHIFTING, LOSING)]
    assert 0 < away[0] < 0.05 < min(away[1:])
    assert (np.abs(numbers(100 * WEIGHTS, SHIFTING) - NEUTRAL) <= declared.REACH + 1e-9).all()


@pytest.mark.usefixtures("weights")
def test_without_disturbances_or_samples_or_with_a_probability_nothing_changes() -> None:
    table = planted_table(PLAIN)
    for spec, known, changed in (
        (PLAIN, table, False),
        (SURE, table, False),
        (SHIFTING, replace(table, prior=True), False),
        (SHIFTING, table, True),
        (LOSING, table, True),
    ):
        assert (Projector(Layout(spec), known).numbers is not None) == changed
    for simulator in simulators(PLAIN, table):
        situation = simulator.situation
        assert foreseen(situation) is situation


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("spec", [SHIFTING, LOSING], ids=["pace", "capacity"])
def test_the_rule_answers_as_one_tuned_to_its_numbers(spec: Spec) -> None:
    """In each decision, behind the guard; and these differ from those of the numbers without disturbances."""
    table, point, differ = planted_table(spec), numbers(WEIGHTS, spec), 0
    tuned, neutral = (load(artifact_of(Layout(spec), one)) for one in (point, NEUTRAL))
    for simulator in simulators(spec, table):
        answer, same = decide(simulator.situation, None), decide(simulator.situation, tuned)
        inside = same.verdict != Verdict.OUTSIDE_EXPERIENCE
        assert np.array_equal(answer.action[inside], same.action[inside])
        differ += int((answer.action != decide(simulator.situation, neutral).action).sum())
    assert differ


@pytest.mark.usefixtures("weights")
def test_the_guard_asks_for_the_gain_that_was_tuned() -> None:
    least = float(np.exp(numbers(WEIGHTS, SHIFTING)[2]))
    assert least > MODEL_NOISE
    simulator = next(simulators(SHIFTING, planted_table(SHIFTING)))
    situation = simulator.situation
    seen = foreseen(situation)
    noop = situation.projector.layout.noop
    choice = model_predictive(seen)
    assert choice.values is not None
    gains = choice.values[np.arange(8), choice.action] - choice.values[:, noop]
    held = decide(situation, None).action == noop
    assert np.array_equal(held, (choice.action == noop) | (gains <= least))


@pytest.mark.usefixtures("weights")
def test_nothing_changes_for_a_run_with_a_required_probability_of_its_own() -> None:
    situation = next(simulators(SHIFTING, planted_table(SHIFTING))).situation
    probabilities = situation.state.probabilities.copy()
    probabilities[::2, Layout(SHIFTING).seconds] = 0.9
    own = situation._replace(state=situation.state._replace(probabilities=probabilities))
    seen, usual = foreseen(own), foreseen(situation)
    assert np.array_equal(seen.state.targets[::2], situation.state.targets[::2])
    assert np.array_equal(seen.state.variance[::2], situation.state.variance[::2])
    np.testing.assert_allclose(seen.state.targets[1::2], usual.state.targets[1::2], rtol=1e-6)
    np.testing.assert_allclose(seen.view.outlook[1::2], usual.view.outlook[1::2], rtol=1e-5)
    assert not np.allclose(usual.state.targets, situation.state.targets)


def test_numbers_of_each_run_are_those_of_the_rule_for_all() -> None:
    points = np.stack([NEUTRAL, numbers(WEIGHTS, SHIFTING)])[np.arange(8) % 2]
    situation = next(simulators(SHIFTING, planted_table(SHIFTING))).situation
    together = model_predictive(adjusted(situation, TunedNumbers.at(points)))
    for which in range(2):
        alone = {name: float(value) for name, value in TunedNumbers.at(points[which])._asdict().items()}
        own = TunedPolicy({"algorithm": "tuned_rule", "numbers": alone}).act(situation)
        assert together.values is not None
        assert own.values is not None
        np.testing.assert_allclose(together.values[which::2], own.values[which::2], rtol=1e-5)


def test_drawn_workloads_are_broad_and_their_own() -> None:
    drawn = [generate(seed, disturbed=seed % 2 == 0) for seed in range(12)]
    assert [one.spec.disturbances.model_dump(exclude_none=True) != {} for one in drawn] == [True, False] * 6
    assert {len(one.spec.resources) for one in drawn} >= {1, 2}
    assert len({one.spec.iterations for one in drawn}) > 5
    assert all(one.table.fitted and one.table.log_mean.shape[1] == one.truth.log_mean.shape[1] for one in drawn)
    again = generate(4, disturbed=False)
    assert again.spec.disturbances.model_dump(exclude_none=True) == {}
    assert again.spec.model_copy(update={"disturbances": drawn[4].spec.disturbances}) == drawn[4].spec
    assert np.array_equal(again.table.log_mean, drawn[4].table.log_mean)
    mild, severe = (draw_disturbances(np.random.default_rng(5), *how) for how in ((0.05, 0.1, 0.2), (0.15, 0.8, 1.0)))
    changed = [numbers(WEIGHTS, PLAIN.model_copy(update={"disturbances": one})) for one in (mild, severe)]
    assert np.abs(changed[0] - NEUTRAL).max() < np.abs(changed[1] - NEUTRAL).max()


def test_an_arena_plays_as_the_evaluator_does() -> None:
    """Where what is true is what is believed, both return the same on average; all points play the same episodes."""
    table = planted_table(SHIFTING, effect=0.1, noise=0.1)
    arena = Arena(generate(0, disturbed=True)._replace(spec=SHIFTING, truth=table, table=table))
    points = np.stack([NEUTRAL, numbers(WEIGHTS, SHIFTING), NEUTRAL])
    returns = arena.play(points, 1, 4_096)
    assert np.array_equal(returns[0], returns[2])
    for point, mine in zip(points[:2], returns, strict=False):
        other = Evaluator(SHIFTING, table, 5, 4_096).score_artifact(load(artifact_of(Layout(SHIFTING), point))).returns
        error = np.hypot(mine.std(), other.std()) / 64
        assert abs(mine.mean() - other.mean()) < 4 * error
    assert relative(arena, points, 1, 64)[0] == 0


def test_tuning_finds_weights_that_gain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("WORKLOADS", 4), ("VALIDATION", 4), ("PART", 4), ("POPULATION", 12)):
        monkeypatch.setattr(tuning, name, value)
    monkeypatch.setattr(tuning, "generate", lambda seed, disturbed: _shifting(seed))
    found, again = (tuning.tune(1, 4) for _ in range(2))
    assert np.array_equal(found.point, again.point)
    assert found.generations == 4
    point = numbers(found.point.reshape(tuning.SHAPE), SHIFTING)
    assert relative(Arena(_shifting(99)), point[None], 7, 2_048)[0] > 0.01


def _shifting(seed: int) -> Generated:
    table = planted_table(SHIFTING, effect=0.1, noise=0.05 + 0.05 * (seed % 2))
    return Generated(SHIFTING, table, table)


def test_the_command_without_curves_tunes_the_rule(tmp_path: Path) -> None:
    out = tmp_path / "made.json"
    program = (
        "import sys; from workers.kinds.iterative import declared, pretrain\n"
        "declared.WORKLOADS, declared.VALIDATION, declared.PART, declared.POPULATION = 2, 2, 2, 4\n"
        "declared.GENERATIONS = 4; declared.tune.__defaults__ = (4,)\n"
        f"sys.argv = ['x', '--seed', '3', '--out', {str(out)!r}]; sys.exit(pretrain.main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"{out}: 4 generations on 4 workloads, not converged\n"
    made = json.loads(out.read_text())
    assert made["command"] == "steward pretrain --seed 3"
    assert tuple(made["weights"]) == NUMBERS
