from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import HEURISTICS, HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import MODEL_NOISE, experience_of, load, save
from app.policies.base import IncompatibleArtifact
from tests.planted import planted_spec, planted_table
from workers.evaluation.arena import play
from workers.evaluation.headroom import TUNED, share_won
from workers.evaluation.statistics import Level
from workers.kinds.iterative.judge import (
    Evaluator,
    _largest_hysteresis,
    calibrate_hysteresis,
    evaluate_unguarded,
    judge,
)
from workers.kinds.iterative.optimum import COARSER, Optimum, solve
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.tuning import NEUTRAL, artifact_of

SPEC = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 130.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.2)
LAYOUT = Layout(SPEC)


@pytest.fixture(scope="module")
def optimum() -> Optimum:
    return solve(LAYOUT, TABLE)


def test_the_planner_is_promoted_once(optimum: Optimum) -> None:
    artifact = save(optimum.policy, LAYOUT)
    report = judge(SPEC, TABLE, artifact, seed=1, optimum=optimum, margin=0.0)
    assert report["promoted"], report["reason"]
    assert report["gap_to_optimum"] == pytest.approx(0, abs=1e-9)
    assert report["best_heuristic"] == "model_predictive"
    assert report["return"]["low"] < report["return"]["mean"] < report["return"]["high"]
    again = judge(SPEC, TABLE, artifact, seed=2, optimum=optimum, champion=artifact, margin=0.0)
    assert not again["promoted"]
    assert "champion at that time" in again["reason"]


def test_a_sure_gain_of_a_hundredth_is_within_the_margin(optimum: Optimum) -> None:
    """The optimum is 1 % above the rule that answers, with confidence: in practice it is level."""
    report = judge(SPEC, TABLE, save(optimum.policy, LAYOUT), seed=1, optimum=optimum)
    assert report["gain"]["low"] > 0
    assert report["gain"]["mean"] < 0.015 * abs(report["heuristics"]["model_predictive"]["mean"])
    assert not report["promoted"]
    assert "not better than model_predictive, the policy in use at that time" in report["reason"]


def heuristic(name: str) -> bytes:
    return save(HeuristicPolicy({"heuristic": name}), LAYOUT)


def test_a_better_agent_replaces_a_champion(optimum: Optimum) -> None:
    better = judge(SPEC, TABLE, save(optimum.policy, LAYOUT), seed=3, optimum=optimum, champion=heuristic("hold"))
    assert better["promoted"], better["reason"]


def test_an_agent_that_equals_what_answers_replaces_neither_a_rule_nor_a_champion() -> None:
    """Played on the same episodes, it differs by nothing at all: a gain of nothing."""
    policy = HeuristicPolicy({"heuristic": "model_predictive"})
    same = save(policy, LAYOUT, experience_of(LAYOUT, MODEL_NOISE))
    report = judge(SPEC, TABLE, same, seed=4, episodes=64)
    assert report["advantage"] == report["gain"] == {"mean": 0, "low": 0, "high": 0}
    assert (report["promoted"], report["incumbent"]) == (False, "model_predictive")
    assert "not better than model_predictive, the policy in use at that time" in report["reason"]
    again = judge(SPEC, TABLE, same, seed=4, episodes=64, champion=same)
    assert not again["promoted"]
    assert "difference 0.00000" in again["reason"]


def test_the_figures_of_a_report_agree(optimum: Optimum) -> None:
    report = judge(SPEC, TABLE, heuristic("threshold"), seed=5, episodes=256, optimum=optimum)
    mean, best = report["return"]["mean"], report["heuristics"]["model_predictive"]["mean"]
    assert best == max(rule["mean"] for rule in report["heuristics"].values())
    assert report["advantage"]["mean"] == pytest.approx(mean - best)
    assert report["advantage"]["high"] < 0
    assert not report["promoted"]
    assert f"difference {mean - best:+.5f}" in report["reason"]
    possible = report["optimum"]["mean"]
    assert report["gap_to_optimum"] == pytest.approx((possible - mean) / abs(possible))
    assert report["optimum"]["expected"] == optimum.expected
    assert report["episodes"] == 256
    weighed = sum(w * report["terms"][name] for w, name in zip(LAYOUT.weights, ("sla", "cost", "change"), strict=True))
    assert weighed == pytest.approx(-mean, rel=1e-5)


def test_a_coarser_plan_is_no_yardstick(optimum: Optimum) -> None:
    coarse = replace(optimum, grid=COARSER[-1], expected=99.0)
    report = judge(SPEC, TABLE, heuristic("hold"), seed=6, episodes=16, optimum=coarse)
    assert report["optimum"]["expected"] == pytest.approx(optimum.expected)


def test_the_first_iteration_counts() -> None:
    """Almost without noise, a run that holds: its share of the largest allocation's cost, iteration by iteration."""
    table = planted_table(SPEC, effect=0.0, noise=0.0)
    score = Evaluator(SPEC, table, seed=1, episodes=3).score(HEURISTICS["hold"])
    units = LAYOUT.allocations[:, 0]
    spent = np.exp(table.log_mean[0, :, 0, 0]) * units
    assert (score.terms[:, 2] == 0).all()
    place = int(np.abs(spent / spent[-1] - score.terms[0, 1]).argmin())
    np.testing.assert_allclose(score.terms[:, 1], spent[place] / spent[-1], rtol=2e-3)
    elapsed = 12 * np.exp(table.log_mean[0, place, 0, 0])
    np.testing.assert_allclose(score.terms[:, 0], max(elapsed / 130.0 - 1, 0), atol=2e-3)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([0.0, 0.0, 0.0], 2),
        ([0.0, 0.0005, 0.0009], 2),  # a tenth of a per cent is within the noise of the model
        ([0.0, 0.0011, 0.0], 0),  # the first that costs something ends it
        ([0.0, -0.01, 0.0011], 1),
    ],
)
def test_the_steadiest_candidate_that_costs_nothing_is_taken(losses: list[float], expected: int) -> None:
    base = -1 + np.random.default_rng(0).normal(0, 0.1, 500)
    base *= -1 / base.mean()
    spread = np.tile([-1e-6, 1e-6], 250)
    assert _largest_hysteresis([base - loss + (spread if loss else 0) for loss in losses]) == expected


def test_a_loss_within_the_noise_is_accepted() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(-1, 0.1, 200)
    noise = rng.normal(0, 1, 200)
    noisy = base - 0.05 + (noise - noise.mean())  # 5 % worse, within a standard error of 7 %
    assert _largest_hysteresis([base, noisy]) == 1


def test_a_bad_policy_is_refused_in_words(optimum: Optimum) -> None:
    report = judge(SPEC, TABLE, save(HeuristicPolicy({"heuristic": "pid"}), LAYOUT), seed=1, optimum=optimum)
    assert not report["promoted"]
    assert "the heuristic stayed in use" in report["reason"]
    assert report["gap_to_optimum"] > 0


def test_episodes_are_paired_and_terms_add_up() -> None:
    evaluator = Evaluator(SPEC, TABLE, seed=9, episodes=512)
    one, again = evaluator.score(HEURISTICS["hold"]), evaluator.score(HEURISTICS["hold"])
    np.testing.assert_array_equal(one.returns, again.returns)
    np.testing.assert_allclose(one.returns, -(one.terms @ LAYOUT.weights), rtol=1e-6)
    other = evaluator.score(HEURISTICS["static_best"])
    assert np.corrcoef(one.returns, other.returns)[0, 1] > 0.9


@dataclass(frozen=True)
class Unguarded:
    """A heuristic without what the service puts around it."""

    name: str

    def act(self, situation: Situation) -> Choice:
        return HEURISTICS[self.name].act(situation)


def test_rules_are_judged_as_the_service_lets_them_decide() -> None:
    """Behind the guard, whose hysteresis spares changes: in this problem that makes a difference."""
    rule, evaluator = HEURISTICS["model_predictive"], Evaluator(SPEC, TABLE, seed=9, episodes=512)
    bare = evaluator.score(Unguarded("model_predictive")).returns
    served = evaluator.score(rule).returns
    assert not np.array_equal(bare, served)
    as_agent = replace(load(heuristic("model_predictive")), experience=experience_of(LAYOUT, MODEL_NOISE))
    np.testing.assert_array_equal(served, evaluator.score_artifact(as_agent).returns)
    report = judge(SPEC, TABLE, heuristic("hold"), seed=9, episodes=512)
    assert report["heuristics"]["model_predictive"]["mean"] == pytest.approx(served.mean())
    problem = IterativeProblem(SPEC, TABLE)
    played = {
        name: play(problem.world(512, 9), Level.SEEDS, 9, problem.player(policy)).returns
        for name, policy in (("served", rule), ("bare", Unguarded("model_predictive")))
    }
    assert not np.array_equal(played["served"], played["bare"])


def test_where_there_is_no_optimum_the_report_says_why() -> None:
    spec = planted_spec(iterations=4, metrics=[{"name": "loss", "target": 1.0}])
    artifact = save(HeuristicPolicy({"heuristic": "hold"}), Layout(spec))
    report = judge(spec, planted_table(spec), artifact, seed=1, episodes=64)
    assert report["optimum"] is None
    assert report["gap_to_optimum"] is None
    assert "loss" in report["optimum_reason"]


def test_calibration_keeps_the_return(optimum: Optimum) -> None:
    artifact = calibrate_hysteresis(SPEC, TABLE, save(optimum.policy, LAYOUT), seed=3, episodes=1024)
    evaluator = Evaluator(SPEC, TABLE, seed=4, episodes=2048)
    plain, steady = evaluator.score(optimum.policy).returns, evaluator.score_artifact(load(artifact)).returns
    assert steady.mean() > plain.mean() - 0.003 * abs(plain.mean()) - 2 * (steady - plain).std() / 2048**0.5


def test_a_tuned_rule_is_one_more_heuristic_and_says_what_knowledge_would_have_won(optimum: Optimum) -> None:
    """The candidate is the tuned rule that knows nothing more: it has won nothing of what there was to win."""
    tuned = artifact_of(LAYOUT, NEUTRAL)
    plain = judge(SPEC, TABLE, tuned, seed=4, episodes=512, optimum=optimum)
    assert plain["share_won"] is None
    assert TUNED not in plain["heuristics"]
    report = judge(SPEC, TABLE, tuned, seed=4, episodes=512, optimum=optimum, tuned=tuned)
    assert report["heuristics"][TUNED]["mean"] == report["return"]["mean"] == plain["return"]["mean"]
    evaluator = Evaluator(SPEC, TABLE, 4, 512)
    rule = load(tuned)
    ours, known = evaluator.score_artifact(rule).returns, evaluator.score_artifact(rule, informed=True).returns
    assert known.mean() > ours.mean()
    assert report["share_won"] == share_won(ours, ours, known)


def test_a_policy_without_the_guard_is_told_with_what_was_possible(optimum: Optimum) -> None:
    report = evaluate_unguarded(SPEC, TABLE, save(optimum.policy, LAYOUT), seed=2, optimum=optimum)
    assert report["return"] == Evaluator(SPEC, TABLE, 2).score(optimum.policy).interval()
    assert report["gap_to_optimum"] == pytest.approx(0, abs=1e-9)
    assert report["optimum"] == {
        **report["return"],
        "expected": optimum.expected,
        "grid_error": optimum.error,
    }
    assert report["optimum_reason"] is None


def test_a_champion_of_another_spec_is_refused() -> None:
    other = planted_spec(features=[{"name": "batch", "minimum": 32, "maximum": 512}])
    champion = save(HeuristicPolicy({"heuristic": "hold"}), Layout(other))
    with pytest.raises(IncompatibleArtifact):
        judge(SPEC, TABLE, heuristic("hold"), seed=1, episodes=8, champion=champion)


def test_as_many_episodes_are_played_as_were_asked_for_and_fewer_under_a_belief() -> None:
    believed = replace(TABLE, members=np.zeros((2, *TABLE.log_mean.shape), np.float32))
    found = [Evaluator(SPEC, table, 0, count).episodes for table in (TABLE, believed) for count in (None, 7)]
    assert found == [4_096, 7, 1_024, 7]
    outcomes = Evaluator(SPEC, TABLE, 0, 7).score(HEURISTICS["hold"]).outcomes
    assert outcomes.shape == (7, 4)  # missed deadlines, lateness, executor-hours, changes
    assert (outcomes[:, 3] == 0).all()
    assert (outcomes[:, 2] > 0).all()
