import logging

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from tests.planted import planted_spec, planted_table
from workers.evaluation.arena import play
from workers.evaluation.candidate import RandomLegal, TuningResult, tune, tuner
from workers.evaluation.statistics import Level
from workers.kinds.iterative.problem import IterativeProblem

SPEC = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 130.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.2)


@pytest.fixture(scope="module")
def problem() -> IterativeProblem:
    return IterativeProblem(SPEC, TABLE)


def test_the_tuner_finds_the_best_static_setting(problem: IterativeProblem, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 33 settings, all tried: within one per cent of the best (40 trials may miss a flat optimum's very top)."""
    tuned = tune(problem, 40, 64, seed=1)
    every = [
        play(problem.world(64, 1), Level.TRAIN, 1, problem.player(problem.static({"executors": level}))).returns.mean()
        for level in range(33)
    ]
    assert tuned.mean == pytest.approx(every[tuned.settings["executors"]])
    assert tuned.mean is not None
    assert tuned.mean >= max(every) - 0.01 * abs(max(every))
    best = [value for _, value in tuned.history]
    assert (len(best), best, best[-1]) == (40, sorted(best), tuned.mean)
    assert tune(problem, 40, 64, seed=1).settings == tuned.settings
    assert TuningResult.from_dict(tuned.as_dict()) == tuned
    assert capsys.readouterr().err == ""


def test_a_tuner_without_trials_says_so(problem: IterativeProblem) -> None:
    tuned = tune(problem, 0, 64, seed=1)
    assert (tuned.settings, tuned.mean) == ({}, None)
    assert tuned.reason == "no trials were requested"
    assert tuner(problem, tuned) is None


def test_optuna_keeps_its_own_log_level(problem: IterativeProblem) -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    tune(problem, 2, 8, seed=1)
    assert optuna.logging.get_verbosity() == before
    assert logging.getLogger("optuna").level == before


def test_random_is_legal_and_all_alike(problem: IterativeProblem) -> None:
    world, policy = problem.world(4096, 0), RandomLegal()
    policy.begin(5)
    world.reset()
    situation: Situation = world.situation
    action = policy.act(situation).action
    mask = situation.view.mask[0]
    share = np.bincount(action, minlength=len(mask)) / 4096
    assert share[~mask].sum() == 0
    expected = 1 / mask.sum()
    assert np.abs(share[mask] - expected).max() < 4.5 * (expected / 4096) ** 0.5
    policy.begin(5)
    np.testing.assert_array_equal(policy.act(situation).action, action)
