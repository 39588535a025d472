"""Promotions on models fitted without the executions on which they are judged."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.kinds.iterative.heuristics import HEURISTICS, HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import save
from tests.planted import planted_spec, planted_table
from workers.evaluation.protocol import HeldOutChoice
from workers.evaluation.statistics import MARGIN
from workers.inputs import HoldOut, Samples
from workers.kinds.iterative import judge
from workers.kinds.iterative.judge import CrossFit, Half, TooFewHalves, chosen_rule, halves
from workers.kinds.iterative.optimum import Grid, solve
from workers.kinds.iterative.training import UNSEEN, IterativeTraining
from workers.learning.training.driver import PlannedPolicy

SPEC = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 110.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.1, noise=0.05)
NOTHING = PlannedPolicy(why_not="not requested")


def executions(law: Callable[[float], float], count: int, seed: int = 0) -> Samples:
    """Runs of ten iterations, each at one allocation, whose durations follow a law."""
    rng, executions = np.random.default_rng(seed), []
    for i in range(count):
        allocation = float(4 + 4 * (i % 9))
        seconds = law(allocation) * np.exp(0.1 * rng.standard_normal() + 0.05 * rng.standard_normal(10))
        rows = np.column_stack([np.arange(10.0), np.full(10, allocation), seconds])
        executions.append((f"run-{i}", rows))
    return tuple(executions)


def planted(allocation: float) -> float:
    return 2 + 60 / allocation + 0.1 * allocation


@cache
def planner() -> bytes:
    """The plan for the planted law."""
    return save(solve(Layout(SPEC), TABLE, Grid(41, 9, 7), with_error=False).policy, Layout(SPEC))


def test_a_belief_has_not_seen_the_executions_that_runs_follow() -> None:
    """What half of the executions say changes nothing of what is believed where they are followed."""
    samples = executions(planted, 18)
    one, other = halves(SPEC, samples, seed=3)
    moved = np.random.default_rng(3).permutation(18)[1::2]
    changed = [(n, rows * [1, 1, 1 + (i in moved)]) for i, (n, rows) in enumerate(samples)]
    again, _ = halves(SPEC, changed, seed=3)
    assert one.believed.to_bytes() == again.believed.to_bytes() == other.followed.to_bytes()
    assert one.followed.to_bytes() == other.believed.to_bytes() != again.followed.to_bytes()


def test_a_plan_for_what_is_true_is_as_good_on_unseen_executions() -> None:
    report = CrossFit(SPEC, executions(planted, 18), seed=1).judged(planner())
    assert report["executions"] == 18
    assert report["episodes"] == 2 * judge.DEALS * judge.MEMBERS * judge.EPISODES
    assert report["advantage"]["low"] > -0.02 * abs(report["return"]["mean"])


def test_what_is_only_good_under_its_own_model_is_not_promoted() -> None:
    """The model says that executors help; the executions say that they hurt."""
    problem = IterativeTraining(SPEC, TABLE, 1)
    assert problem.judge(planner(), NOTHING, None, MARGIN)["promoted"]
    against = executions(lambda allocation: 1 + 0.5 * allocation, 18)
    report = IterativeTraining(SPEC, TABLE, 1, against).judge(planner(), NOTHING, None, MARGIN)
    assert not report["promoted"]
    assert report["reason"].startswith(UNSEEN)
    assert not report["cross_fitted"]["promoted"]


def test_too_few_executions_say_so() -> None:
    with pytest.raises(TooFewHalves, match="needs 6 executions, has 5"):
        halves(SPEC, executions(planted, 5), seed=0)
    alike = [(name, rows * [1, 0, 1] + [0, 8, 0]) for name, rows in executions(planted, 8)]
    with pytest.raises(TooFewHalves, match="half of the 8 executions"):
        halves(SPEC, alike, seed=0)
    report = IterativeTraining(SPEC, TABLE, 1).judge(planner(), NOTHING, None, MARGIN)
    assert report["cross_fitted"] == {"reason": "needs 6 executions, has 0"}


def test_no_deal_counts_twice_and_one_that_cannot_be_judged_is_dealt_again() -> None:
    """Six executions at four allocations: in some deals a half has seen only two of them."""
    levels = (8, 8, 16, 16, 24, 32)
    some = [
        (name, rows * [1, 0, 1] + [0, level, 0])
        for (name, rows), level in zip(executions(planted, 6), levels, strict=True)
    ]

    def works(seed: int) -> bool:
        try:
            halves(SPEC, some, seed)
        except TooFewHalves:
            return False
        return True

    seeds = [works(seed) for seed in range(12)]
    first = seeds.index(False)
    assert True in seeds[first:]
    cross_fit = CrossFit(SPEC, some, seed=first, episodes=16)
    assert cross_fit.halves.max() + 1 >= 2
    every = CrossFit(SPEC, executions(planted, 6), seed=0, episodes=16, deals=20)
    assert every.halves.max() + 1 == 20  # six executions are dealt in ten ways


def test_everybody_plays_the_same_episodes() -> None:
    tables = Half(TABLE, replace(TABLE, log_mean=TABLE.log_mean + np.float32(0.2)))
    arena = judge._Arena(SPEC, tables, seed=5, episodes=64)
    np.testing.assert_array_equal(arena.returns(planner()), arena.returns(planner()))
    slower = judge._Arena(SPEC, Half(TABLE, TABLE), seed=5, episodes=64)
    assert slower.returns(planner()).mean() > arena.returns(planner()).mean()


def belief(table: ModelTable, *offsets: float) -> ModelTable:
    """A table whose belief holds models that are slower by each of these logs."""
    members = np.array(offsets, np.float32)[:, None, None, None, None]
    return replace(table, members=members * np.ones((1, *table.log_mean.shape), np.float32))


def test_intervals_are_over_the_halves_that_runs_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the episodes say no more about other executions; halves that differ make the interval wide."""
    unlike = Half(TABLE, belief(TABLE, -0.3, -0.1)), Half(TABLE, belief(TABLE, 0.1, 0.3))
    alike = Half(TABLE, belief(TABLE, 0.0, 0.0)), Half(TABLE, belief(TABLE, 0.0, 0.0))
    width = {}
    for name, both in (("unlike", unlike), ("alike", alike)):
        monkeypatch.setattr(judge, "halves", lambda *_, both=both: both)
        for episodes in (64, 256):
            arena = CrossFit(SPEC, executions(planted, 12), seed=1, episodes=episodes)
            assert np.bincount(arena.models).tolist() == [episodes] * 4 * judge.DEALS
            assert np.bincount(arena.halves).tolist() == [2 * episodes] * 2 * judge.DEALS
            gain = arena.judged(planner())["gain"]
            width[name, episodes] = gain["high"] - gain["low"]
    assert width["unlike", 256] > 3 * width["alike", 256]
    assert width["unlike", 256] > 0.6 * width["unlike", 64]


def test_a_gain_that_the_whole_model_finds_needs_no_margin_on_unseen_executions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two returns that differ by half the margin, the higher is enough here, and the lower is not."""
    monkeypatch.setattr(judge, "halves", lambda *_: (Half(TABLE, TABLE), Half(TABLE, TABLE)))
    arena = CrossFit(SPEC, executions(planted, 12), seed=1, episodes=32)
    best = max(float(returns.mean()) for returns in arena.rules.values())
    usual = arena.rules["model_predictive"]
    luck = np.random.default_rng(1).normal(0, 1e-6, len(usual))
    for share, promoted in ((0.5, True), (-0.5, False)):
        returns = usual + max(0.0, best - float(usual.mean())) + share * MARGIN * abs(best) + luck
        monkeypatch.setattr(arena, "returns", lambda _, returns=returns: returns)
        report = arena.judged(b"")
        assert report["promoted"] is promoted
    assert "any difference counts" in arena.judged(b"")["reason"]


def test_the_rule_that_is_better_on_unseen_executions_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beliefs say that executors help a lot, runs that they hardly do: whoever buys them pays for nothing."""
    steep = np.log(100 / Layout(SPEC).allocations[:, 0]).astype(np.float32)
    hopeful = replace(TABLE, log_mean=steep[None, :, None, None])
    flat = replace(TABLE, log_mean=np.full_like(TABLE.log_mean, np.log(12.0)))
    both = Half(hopeful, belief(flat, -0.02, 0.0, 0.02)), Half(hopeful, belief(flat, -0.01, 0.0, 0.01))
    monkeypatch.setattr(judge, "halves", lambda *_: both)
    table, answers = chosen_rule(SPEC, executions(planted, 12), TABLE, seed=1)
    assert answers["rule"] == table.rule != "model_predictive"
    assert answers["returns"][table.rule]["mean"] > answers["returns"]["model_predictive"]["mean"]
    assert table.evidence == answers["reason"]
    assert "98.3 % interval" in table.evidence  # the best of four is tested as such
    assert table.terms["target of iteration_seconds"] == [110.0, 55.0, 220.0]
    assert "of model_predictive (difference +" in table.evidence
    arena = CrossFit(SPEC, executions(planted, 12), seed=1, rule=table.rule)
    report = arena.judged(save(HeuristicPolicy({"heuristic": "model_predictive"}), Layout(SPEC)))
    assert (report["incumbent"], report["promoted"]) == (table.rule, False)


def test_model_predictive_control_answers_where_no_rule_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    same = belief(TABLE, -0.02, 0.0, 0.02)
    monkeypatch.setattr(judge, "halves", lambda *_: (Half(TABLE, same), Half(TABLE, same)))
    table, answers = chosen_rule(SPEC, executions(planted, 12), TABLE, seed=1)
    assert (table.rule, answers["rule"]) == (None, "model_predictive")
    assert set(answers["returns"]) == {*HEURISTICS} - {"static_best"}


def test_too_few_executions_leave_model_predictive_control() -> None:
    table, answers = chosen_rule(SPEC, executions(planted, 11), TABLE, seed=1)
    assert (table.rule, answers["rule"], answers["returns"]) == (None, "model_predictive", {})
    assert answers["reason"] == "not compared with other heuristics: needs 12 executions, has 11"


def test_runs_that_would_take_minutes_to_compare_leave_model_predictive_control() -> None:
    longest = SPEC.model_copy(update={"iterations": judge.LONGEST_COMPARED + 1})
    table, answers = chosen_rule(longest, executions(planted, 12), TABLE, seed=1)
    assert (table.rule, answers["rule"], answers["returns"]) == (None, "model_predictive", {})
    assert answers["reason"].endswith("runs of 5,001 iterations are too long to compare, at most 5,000 are")


def test_a_probability_leaves_the_one_rule_that_knows_it() -> None:
    metric = {"name": "iteration_seconds", "target": 110.0, "scope": "run", "probability": 0.9}
    spec = planted_spec(iterations=10, metrics=[metric])
    table, answers = chosen_rule(spec, executions(planted, 12), planted_table(spec), seed=1)
    assert (table.rule, answers["rule"], answers["returns"]) == (None, "model_predictive", {})
    assert answers["reason"] == "no other heuristic knows of probabilities"


def test_executions_that_are_too_few_carry_no_model_of_their_own() -> None:
    names = ("run-2", "run-0")
    found = judge.held_out_model(SPEC, executions(planted, 8), HoldOut(names, unseen=frozenset(names[:1])), 0)
    assert found.table is None
    assert (found.report["executions"], found.report["unseen"], found.report["names"]) == (2, 1, [*names])
    assert found.report["reason"].startswith("the 2 held-out executions can't carry a domain model of their own: ")
    assert found.report["note"] is None


def test_a_model_is_fitted_to_the_executions_that_are_held_out_and_to_no_others() -> None:
    """Those take twice as long as all the others."""
    samples = [(name, rows * [1, 1, 1 + (i < 9)]) for i, (name, rows) in enumerate(executions(planted, 14))]
    held = tuple(name for name, _ in samples[:9])
    found = judge.held_out_model(SPEC, samples, HoldOut(held, unseen=frozenset(held)), 0)
    assert found.table is not None
    allocations = Layout(SPEC).allocations[:, 0]
    seconds = np.exp(found.table.log_mean[0, :, 0, 0])[allocations == 16]
    np.testing.assert_allclose(seconds, 2 * planted(16.0), rtol=0.15)
    assert (found.report["reason"], found.report["unseen"]) == (None, 9)


@pytest.mark.parametrize(
    ("unseen", "words"),
    [
        (3, "of 3 executions that no agent's domain model had been fitted on"),
        (1, "fitted on 3 executions alone; 2 of them were also among those"),
        (0, "fitted on 3 executions alone; all of them were also among those"),
    ],
)
def test_a_report_says_how_unknown_its_held_out_executions_are(unseen: int, words: str) -> None:
    assert words in judge._note(HeldOutChoice(("a", "b", "c"), unseen))


def test_episodes_are_as_many_as_their_iterations_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two halves follows two members in turn; the models are numbered over both."""
    monkeypatch.setattr(judge, "halves", lambda *_: (Half(TABLE, belief(TABLE, 0.0, 0.1)), Half(TABLE, TABLE)))
    for iterations, episodes in ((10, 128), (64, 64), (1_000, 16)):
        spec = SPEC.model_copy(update={"iterations": iterations})
        arena = CrossFit(spec, executions(planted, 12), seed=1, deals=1)
        assert np.bincount(arena.models).tolist() == [episodes] * 3
        assert np.bincount(arena.halves).tolist() == [2 * episodes, episodes]
        assert arena.models[:4].tolist() == [0, 1, 0, 1]
        assert arena.executions == 12
