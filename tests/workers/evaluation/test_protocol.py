"""Planted candidates come out in the class that they were made for."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.iterative.heuristics import HEURISTICS, HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import save
from app.kinds.iterative.state import State
from app.policies.base import IncompatibleArtifact
from tests.planted import planted_spec, planted_table
from workers.evaluation.candidate import Candidate, Settings
from workers.evaluation.protocol import Evaluation, EvaluationRun, evaluate
from workers.evaluation.statistics import Level, Record
from workers.evaluation.summary import LevelScores
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.world import IterativeWorld

SPEC = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 130.0, "scope": "run"}])
SHORT = planted_spec(iterations=5, metrics=[{"name": "iteration_seconds", "target": 54.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.2)
HELD_OUT = planted_table(SPEC, effect=0.4, noise=0.15)
SETTINGS = Settings(episodes=128, trials=6, tuning_episodes=32, demonstrations=8)


class Worse:
    """A heuristic that does anything legal one time in three."""

    name = "worse"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def begin(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def act(self, situation: Situation) -> Choice:
        action = self.policy.act(situation).action
        drawn = np.where(situation.view.mask, self.random.random(situation.view.mask.shape), -1).argmax(axis=1)
        return Choice(np.where(self.random.random(len(action)) < 1 / 3, drawn, action))


class Informed:
    """Model-predictive control that is told each run's model and effect, which all others have to read."""

    name = "told"

    def watch(self, world: IterativeWorld) -> None:
        self.world = world

    def act(self, situation: Situation) -> Choice:
        truth, state = self.world.truth, situation.state
        known = state._replace(effect=truth.effect, effects=truth.effect, variance=np.zeros_like(state.variance))
        action = np.zeros(len(state.iteration), np.intp)
        for index, projector in enumerate(truth.projectors):
            rows = np.flatnonzero(truth.model == index)
            there = State(*(field[rows] for field in known))
            action[rows] = (
                HEURISTICS["model_predictive"].act(Situation(projector, there, view(projector, there))).action
            )
        return Choice(action)


class Ticking:
    """A clock that moves when it is looked at."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 0.04
        return self.now


def build(heuristics: Mapping[str, Policy] = HEURISTICS, held_out: tuple[Any, ...] = (HELD_OUT,)) -> IterativeProblem:
    problem = IterativeProblem(SPEC, TABLE, held_out)
    problem.heuristics = heuristics
    return problem


def only(*names: str) -> dict[str, Policy]:
    """A few of the heuristics: playing one takes as long as playing any candidate."""
    return {name: HEURISTICS[name] for name in names}


def artifact(heuristic: str, spec: Any = SPEC) -> bytes:
    return save(HeuristicPolicy({"heuristic": heuristic}), Layout(spec))


@pytest.fixture(scope="module")
def problem() -> IterativeProblem:
    return build()


@pytest.fixture(scope="module")
def small() -> IterativeProblem:
    """Shorter runs and few baselines, for what does not hang on how good anybody is."""
    problem = IterativeProblem(SHORT, planted_table(SHORT, effect=0.3, noise=0.2), (planted_table(SHORT, effect=0.4),))
    problem.heuristics = only("hold", "pid")
    return problem


@pytest.fixture(scope="module")
def planted(problem: IterativeProblem) -> Evaluation:
    memoriser = problem.optimum(Level.FIXED, SETTINGS.seed).policy
    plan = problem.optimum(Level.SEEDS, SETTINGS.seed).policy
    assert memoriser is not None
    assert plan is not None
    candidates = [
        Candidate("memoriser", [memoriser]),
        Candidate("told", [Informed()]),
        Candidate("rule", [HEURISTICS["model_predictive"]]),
        Candidate("planner", [save(plan, problem.layout)], [(1000, -0.2), (2000, -0.1)]),  # type: ignore[arg-type]
        Candidate("pid agent", [artifact("pid")]),
    ]
    return evaluate(problem, candidates, SETTINGS)


def candidate(evaluation: Evaluation, name: str) -> dict[str, Any]:
    return next(c for c in evaluation.as_dict()["candidates"] if c["name"] == name)


def test_a_memoriser_is_classed_l0(planted: Evaluation) -> None:
    assert planted.class_of("memoriser") == "L0"
    levels = candidate(planted, "memoriser")["levels"]
    assert levels[0]["advantage"]["low"] >= 0
    assert levels[0]["gap_to_optimum"] == 0
    assert [level["passed"] for level in levels] == [True, False, False, False, False]
    assert levels[1]["advantage"]["high"] < 0
    assert levels[0]["gap"]["return"]["high"] < 0, "better in the one episode than in training's"
    assert candidate(planted, "memoriser")["aliasing"]["aliased"], "it sees the time alone"


def test_what_is_level_with_the_best_rule_everywhere_is_classed_l4(planted: Evaluation) -> None:
    """A loss of nothing fails no level."""
    assert planted.class_of("rule") == "L4"
    assert "the highest" in candidate(planted, "rule")["verdict"]
    levels = candidate(planted, "rule")["levels"]
    assert all(level["passed"] for level in levels)
    assert {level["advantage"]["mean"] for level in levels} == {0}


def test_who_is_told_model_and_effect_is_ahead_until_runs_are_disturbed(planted: Evaluation) -> None:
    levels = candidate(planted, "told")["levels"]
    assert planted.class_of("told") in {"L3", "L4"}
    assert min(level["advantage"]["low"] for level in levels[1:4]) > 0


def test_what_users_count_is_told_of_everybody_and_first_in_words(planted: Evaluation) -> None:
    details = planted.as_dict()
    names = [outcome["name"] for outcome in details["outcomes"]]
    assert names == ["missed deadlines", "lateness", "executor-hours", "changes"]
    for level in details["levels"]:
        for row in level["policies"].values():
            assert list(row["outcomes"]) == names
            assert 0 <= row["outcomes"]["missed deadlines"]["low"] <= row["outcomes"]["missed deadlines"]["high"] <= 1
    rows = details["levels"][2]["policies"]
    assert rows["hold"]["outcomes"]["changes"]["mean"] == 0
    assert rows["random"]["outcomes"]["changes"]["mean"] > 5
    reason = candidate(planted, "pid agent")["levels"][1]["reason"]
    assert reason.index("missed deadlines") < reason.index("changes") < reason.index("return")


def test_intervals_of_times_and_amounts_are_not_negative_and_those_of_losses_are() -> None:
    lateness, gain = [0, 0, 0, 0, 0, 90], [-1, 0, 0, 0, 0, 90]
    records = [Record(np.zeros(1, np.float32), np.array([row], np.float32)) for row in zip(lateness, gain, strict=True)]
    scores = LevelScores(Level.SEEDS, {"hold": records}, ["hold"], SETTINGS, {})
    late, gained = scores.outcome_intervals("hold", [Outcome("lateness", "s"), Outcome("gain")]).values()
    assert (late["low"], late["mean"]) == (0, 15)
    assert late["high"] > 30
    assert gained["low"] < -1


def test_the_exact_plan_passes_l1_and_has_no_gap_to_itself(planted: Evaluation) -> None:
    levels = {level["level"]: level for level in candidate(planted, "planner")["levels"]}
    assert planted.class_of("planner") in {"L1", "L2", "L3", "L4"}, "its lead at L2 is too small for so few episodes"
    assert levels["L2"]["gap_to_optimum"] is None, "no exact optimum where parameters change"
    assert candidate(planted, "planner")["curve"] == [[1000, -0.2], [2000, -0.1]]


def test_nothing_that_is_beaten_is_called_an_optimum(planted: Evaluation, problem: IterativeProblem) -> None:
    """One candidate is told what others must infer: beside it the plan is no optimum even where it is exact."""
    levels = {level["level"]: level for level in planted.as_dict()["levels"]}
    named = {name: {"optimum", "plan"} & set(level["policies"]) for name, level in levels.items()}
    assert named == {"train": {"plan"}, "L0": {"optimum"}, **{name: {"plan"} for name in ("L1", "L2", "L3", "L4")}}
    assert [levels[name]["optimum"]["policy"] for name in ("L0", "L1", "L2")] == ["optimum", "plan", "plan"]
    assert "told returns" not in str(levels["L0"]["optimum"]["reason"])
    assert "it is not the optimum of what is compared" in levels["L1"]["optimum"]["reason"]
    assert "they change" in levels["L2"]["optimum"]["reason"]
    quick = replace(SETTINGS, trials=0, level="L1")
    by_rules = evaluate(problem, [Candidate("rule", [HEURISTICS["model_predictive"]])], quick)
    first = next(level for level in by_rules.as_dict()["levels"] if level["level"] == "L1")
    best = max(first["policies"], key=lambda name: first["policies"][name]["return"]["mean"])
    assert (best, first["optimum"]["exact"]) == ("optimum", True)
    assert 0 < candidate(by_rules, "rule")["levels"][1]["gap_to_optimum"] < 0.1


def test_a_bad_policy_is_of_no_class(planted: Evaluation) -> None:
    assert planted.class_of("pid agent") == "none"
    assert "reaches no robustness level" in candidate(planted, "pid agent")["verdict"]


def test_the_document_is_plain_and_whole(planted: Evaluation, problem: IterativeProblem) -> None:
    details = planted.as_dict()
    assert json.loads(json.dumps(details, allow_nan=False)) == details
    names = [one["name"] for one in details["policies"]]
    references = ["optimum", "plan", "tuner", "random"]
    assert names == ["memoriser", "told", "rule", "planner", "pid agent", *HEURISTICS, *references]
    assert [level["level"] for level in details["levels"]] == ["train", "L0", "L1", "L2", "L3", "L4"]
    for level in details["levels"]:
        assert level["available"]
        other = "plan" if level["optimum"]["exact"] else "optimum"
        assert list(level["policies"]) == [name for name in names if name != other]
        for name, row in level["policies"].items():
            assert row["return"]["low"] <= row["return"]["mean"] + 1e-9, name
            assert 0 <= row["probability_of_improvement"]["low"] <= row["probability_of_improvement"]["high"] <= 1
        best = level["policies"][level["best_heuristic"]]
        assert best["return"]["mean"] == max(level["policies"][name]["return"]["mean"] for name in HEURISTICS)
        assert best["advantage"] == {"mean": 0, "low": 0, "high": 0}
        assert (best["normalised"], level["policies"]["random"]["normalised"]) == pytest.approx((1, 0))
        if level["level"] in {"train", "L0", "L1"}:
            terms = level["policies"]["planner"]["terms"]
            weighted = -sum(details["term_weights"][term] * terms[term] for term in details["terms"])
            assert weighted == pytest.approx(level["policies"]["planner"]["return"]["mean"], rel=1e-4)
    assert details["levels"][5]["wrappers"] == [
        *("seeds", "parameters", "held_out", "noise", "drift", "capacity", "failures")
    ]
    assert [drawn["level"] for drawn in details["profiles"]] == ["L1", "L2", "L3", "L4"]


def test_returns_fall_as_more_is_random(planted: Evaluation) -> None:
    levels = {level["level"]: level["policies"]["model_predictive"]["return"] for level in planted.as_dict()["levels"]}
    assert levels["L4"]["mean"] < levels["L3"]["mean"] < levels["L1"]["mean"]
    train = levels["train"]
    assert train["low"] - 0.01 < levels["L1"]["mean"] < train["high"] + 0.01


def test_heat_maps_count_every_decision(planted: Evaluation) -> None:
    heat = candidate(planted, "planner")["heat_map"]
    count, mean = np.array(heat["count"]), heat["value"]["mean"]
    assert count.sum() == 5 * 128 * 11
    assert count.shape == (len(heat["y"]["edges"]) - 1, len(heat["x"]["edges"]) - 1)
    np.testing.assert_array_equal(np.isnan(np.array(mean, np.float64)), count == 0)
    late = [row[:8] for row in mean[:4]]
    early = [row[:8] for row in mean[-4:]]
    averages = [np.mean([v for row in part for v in row if v is not None]) for part in (late, early)]
    assert averages[0] > 0 > averages[1], "more where little time is left, less where much is"


def test_a_heuristic_made_worse_is_beaten_and_one_made_better_is_not() -> None:
    """The rule itself is the candidate; what it is compared with was made worse or better on purpose."""
    rule, quick = HEURISTICS["model_predictive"], replace(SETTINGS, episodes=64, trials=0)
    worse = evaluate(build({"rival": Worse(rule)}), [Candidate("rule", [rule])], quick)
    assert worse.class_of("rule") == "L4"
    better_than = {level["level"]: level["advantage"]["low"] for level in candidate(worse, "rule")["levels"]}
    assert min(better_than[level] for level in ("L1", "L2", "L3", "L4")) > 0
    beaten = evaluate(build({"rival": Informed()}), [Candidate("rule", [rule])], replace(quick, level="L1"))
    assert beaten.class_of("rule") in {"none", "L0"}
    assert not candidate(beaten, "rule")["levels"][1]["passed"]
    assert candidate(beaten, "rule")["levels"][1]["advantage"]["high"] < 0


def test_without_held_out_executions_the_class_ends_at_l2() -> None:
    problem = build(only("model_predictive"), held_out=())
    result = evaluate(problem, [Candidate("told", [Informed()])], replace(SETTINGS, episodes=64, trials=0))
    assert result.class_of("told") == "L2"
    level = result.as_dict()["levels"][4]
    assert (level["available"], level["policies"]) == (False, {})
    assert "held-out" in level["reason"]
    assert "held-out" in candidate(result, "told")["verdict"]
    assert result.as_dict()["levels"][5]["available"], "what comes after is still measured"


RESOURCE = {"minimum": 1, "maximum": 6, "max_steps": 2, "change_seconds": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"iterations": 1},
        {"iterations": 3, "features": [{"name": "batch", "minimum": 1, "maximum": 8}], "metrics": []},
        {
            "iterations": 3,
            "resources": [RESOURCE | {"name": "gpus", "price_per_hour": 0}, RESOURCE | {"name": "cpus"}],
            "metrics": [{"name": "iteration_seconds", "target": 9.0}, {"name": "loss", "target": 0.9, "scope": "run"}],
        },
        {"iterations": 3, "resources": [{"name": "gpus", "minimum": 4, "maximum": 4}]},
    ],
)
def test_any_workload_goes_through(changes: dict[str, Any]) -> None:
    spec = planted_spec(**changes)
    problem = IterativeProblem(spec, planted_table(spec, effect=0.3), (planted_table(spec, effect=0.4),))
    settings = Settings(episodes=8, trials=2, tuning_episodes=4, demonstrations=2)
    details = evaluate(problem, [Candidate("told", [Informed()])], settings).as_dict()
    assert json.loads(json.dumps(details, allow_nan=False)) == details
    assert candidate(Evaluation(details), "told")["class"] in {"none", "L0", "L1", "L2", "L3", "L4"}
    assert all(level["available"] for level in details["levels"])


def test_in_chunks_and_resumed_it_is_the_same(small: IterativeProblem) -> None:
    """By a clock that makes a chunk of a dozen units; a run is cut off after each of them and goes on elsewhere."""
    settings = replace(SETTINGS, episodes=16, trials=2)
    candidates = [Candidate("agents", [artifact("hold", SHORT), artifact("model_predictive", SHORT)])]
    whole = evaluate(small, candidates, settings).as_dict()
    selection, visited, shares = None, set(), []
    while True:
        run = EvaluationRun(small, candidates, settings, selection, clock=Ticking())
        run.advance()
        selection = run.checkpoint()
        visited.add((run.live["phase"], run.live["level"]))
        shares.append(run.progress)
        if run.done:
            break
    resumed = run.result().as_dict()
    for details in (whole, resumed):
        details.pop("seconds")
        details["tuner"].pop("seconds")
    assert resumed == whole
    assert shares == sorted(shares)
    assert {"playing", "summing up", "done"} <= {phase for phase, _ in visited}
    assert {level for _, level in visited} == {None, "train", "L0", "L1", "L2", "L3", "L4"}


def test_artifacts_take_turns_over_the_seeds(small: IterativeProblem) -> None:
    settings = replace(SETTINGS, episodes=16, trials=0, level="L1")
    turns = [artifact("hold", SHORT), artifact("pid", SHORT)]
    details = evaluate(small, [Candidate("agents", turns)], settings).as_dict()
    rows = details["levels"][2]["policies"]
    mixed, hold, pid = (rows[name]["return"]["mean"] for name in ("agents", "hold", "pid"))
    assert min(hold, pid) < mixed < max(hold, pid)
    assert details["tuner"]["reason"] == "no trials were requested"
    assert "tuner" not in rows


def test_what_is_refused(problem: IterativeProblem) -> None:
    hold = HEURISTICS["hold"]
    with pytest.raises(ValueError, match="at least 5"):
        Settings(seeds=4)
    for wrong, word in (
        ([], "no candidate"),
        ([Candidate("a", [])], "neither"),
        ([Candidate("a", [hold]), Candidate("a", [hold])], "unique"),
        ([Candidate("pid", [hold])], "baseline"),
    ):
        with pytest.raises(ValueError, match=word):
            EvaluationRun(problem, wrong, SETTINGS)
    run = EvaluationRun(problem, [Candidate("a", [hold])], SETTINGS)
    with pytest.raises(RuntimeError, match="not done"):
        run.result()
    with pytest.raises(ValueError, match="another evaluation"):
        EvaluationRun(problem, [Candidate("b", [hold])], SETTINGS, run.checkpoint())
    other = planted_spec(metrics=[{"name": "loss", "target": 1.0}])
    foreign = save(HeuristicPolicy({"heuristic": "hold"}), IterativeProblem(other, planted_table(other)).layout)
    with pytest.raises(IncompatibleArtifact):
        EvaluationRun(problem, [Candidate("a", [foreign])], SETTINGS)


def test_an_agent_that_the_guard_replaces_is_of_no_class() -> None:
    """The heuristics would be judged under its name, and are as good as themselves."""
    dearer = SPEC.model_copy(update={"resources": (SPEC.resources[0].model_copy(update={"price_per_hour": 1.3}),)})
    policy = HeuristicPolicy({"heuristic": "model_predictive"})
    result = [Candidate("present", [save(policy, Layout(SPEC))]), Candidate("past", [save(policy, Layout(dearer))])]
    settings = replace(SETTINGS, episodes=16, trials=0, level="L1")
    problem = IterativeProblem(SPEC, TABLE)
    problem.heuristics = only("model_predictive", "hold")
    candidates = evaluate(problem, result, settings).as_dict()["candidates"]
    present, past = candidates
    assert (present["class"], present["outdated"]) == ("L1", None)
    text = "outdated: retrain (the guard answered in its place in 100.0 % of decisions)"
    assert (past["class"], past["outdated"]) == ("none", text)
    assert past["verdict"] == f"past is {text}. Nothing of it is assessed."
    assert past["levels"] == []


def test_candidates_that_are_outdated_do_not_play() -> None:
    policy = HEURISTICS["model_predictive"]
    result = [Candidate("past", [policy], outdated="it is old"), Candidate("other", [policy], outdated="so is it")]
    run = EvaluationRun(IterativeProblem(SPEC, TABLE), result, replace(SETTINGS, level="L1"))
    assert run.units == []
    run.advance()
    document = run.result().as_dict()
    assert [(one["class"], one["outdated"]) for one in document["candidates"]] == [
        ("none", "it is old"),
        ("none", "so is it"),
    ]
    assert not any(level["available"] for level in document["levels"])


class Earlier:
    """Model-predictive control that aims at a share of the deadline: dearer, and late less often."""

    name = "earlier"

    def act(self, situation: Situation) -> Choice:
        projector, state = situation.projector, situation.state
        there = state._replace(targets=0.85 * state.targets)
        return HEURISTICS["model_predictive"].act(Situation(projector, there, view(projector, there)))


def test_who_is_cheaper_and_late_more_often_passes_only_where_a_miss_is_weighted_below_cost() -> None:
    quick = replace(SETTINGS, episodes=64, trials=0, level="L1")
    result = {}
    for cost in (0.6, 1.5):
        spec = planted_spec(**SPEC.model_dump(include={"iterations", "metrics"}), weights={"cost": cost})
        problem = IterativeProblem(spec, planted_table(spec, effect=0.3, noise=0.2), ())
        problem.heuristics = {"earlier": Earlier()}
        entered = [Candidate("thrifty", [HEURISTICS["model_predictive"]]), Candidate("as late", [Earlier()])]
        result[cost] = evaluate(problem, entered, quick)
        levels = candidate(result[cost], "thrifty")["levels"]
        assert levels[1]["advantage"]["low"] > 0, "by the return it is better in both"
        assert result[cost].class_of("as late") == "L1"
    assert [one.class_of("thrifty") for one in result.values()] == ["L0", "L1"]
    reason = candidate(result[0.6], "thrifty")["levels"][1]["reason"]
    assert reason.startswith("more targets missed: missed deadlines ")
    assert "with 95 % confidence, tolerance 1.0 %" in reason
    assert reason in candidate(result[0.6], "thrifty")["verdict"]
