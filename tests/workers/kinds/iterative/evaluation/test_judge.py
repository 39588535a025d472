import numpy as np
import pytest

from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies.artifact import load, save
from app.kinds.iterative.policies.heuristic import HeuristicPolicy
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.evaluation.judge import Court, calibrated, judge
from workers.kinds.iterative.evaluation.optimum import Optimum, solve

SPEC = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 130.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.2)
LAYOUT = Layout(SPEC)


@pytest.fixture(scope="module")
def optimum() -> Optimum:
    return solve(LAYOUT, TABLE)


def test_the_planner_is_promoted_once(optimum: Optimum) -> None:
    artifact = save(optimum.policy, LAYOUT)
    report = judge(SPEC, TABLE, artifact, seed=1, optimum=optimum)
    assert report["promoted"], report["reason"]
    assert report["gap_to_optimum"] == pytest.approx(0, abs=1e-9)
    assert report["best_heuristic"] == "model_predictive"
    assert report["return"]["low"] < report["return"]["mean"] < report["return"]["high"]
    again = judge(SPEC, TABLE, artifact, seed=2, optimum=optimum, champion=artifact)
    assert not again["promoted"]
    assert "present champion" in again["reason"]


def test_a_bad_policy_is_refused_in_words(optimum: Optimum) -> None:
    report = judge(SPEC, TABLE, save(HeuristicPolicy({"heuristic": "pid"}), LAYOUT), seed=1, optimum=optimum)
    assert not report["promoted"]
    assert "the heuristic goes on answering" in report["reason"]
    assert report["gap_to_optimum"] > 0


def test_episodes_are_paired_and_terms_add_up() -> None:
    court = Court(SPEC, TABLE, seed=9, episodes=512)
    one, again = court.score(HEURISTICS["hold"]), court.score(HEURISTICS["hold"])
    np.testing.assert_array_equal(one.returns, again.returns)
    np.testing.assert_allclose(one.returns, -(one.terms @ LAYOUT.weights), rtol=1e-6)
    other = court.score(HEURISTICS["static_best"])
    assert np.corrcoef(one.returns, other.returns)[0, 1] > 0.9


def test_where_there_is_no_optimum_the_report_says_why() -> None:
    spec = planted_spec(iterations=4, metrics=[{"name": "loss", "target": 1.0}])
    artifact = save(HeuristicPolicy({"heuristic": "hold"}), Layout(spec))
    report = judge(spec, planted_table(spec), artifact, seed=1, episodes=64)
    assert report["optimum"] is None
    assert report["gap_to_optimum"] is None
    assert "loss" in report["optimum_reason"]


def test_calibration_keeps_the_return(optimum: Optimum) -> None:
    artifact = calibrated(SPEC, TABLE, save(optimum.policy, LAYOUT), seed=3, episodes=1024)
    court = Court(SPEC, TABLE, seed=4, episodes=2048)
    plain, steady = court.score(optimum.policy).returns, court.score_artifact(load(artifact)).returns
    assert steady.mean() > plain.mean() - 0.003 * abs(plain.mean()) - 2 * (steady - plain).std() / 2048**0.5
