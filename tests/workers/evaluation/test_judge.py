"""The verdict on a trained agent: who may answer, and what is said of it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.kind import Outcome
from workers.evaluation.judge import Judgement, OutcomeValues, gap
from workers.evaluation.statistics import confidence_at, mean_interval

RANDOM = np.random.default_rng(0)
EPISODES = RANDOM.normal(-10.0, 3.0, 400)  # what luck makes of each; the same for everybody


def earns(more: float) -> NDArray[np.float64]:
    """Returns that lie above the episodes' own by so much, and a little luck of their own."""
    luck: NDArray[np.float64] = EPISODES + more + RANDOM.normal(0.0, 0.1, len(EPISODES))
    return luck


LATE = (("agent", 0.042, 3.1), ("good", 0.06, 3.0), ("poor", 0.5, 1900.0))
RULES = {"poor": earns(-2.0), "good": earns(0.0)}


def test_an_interval_is_the_mean_and_its_standard_errors() -> None:
    values = np.array([1.0, 2.0, 3.0, 6.0])
    half = 3.182446 * np.sqrt(14 / 3) / 2  # Student's t of three degrees of freedom
    assert mean_interval(values) == pytest.approx({"mean": 3.0, "low": 3.0 - half, "high": 3.0 + half})
    assert mean_interval(values[:1]) == {"mean": 1.0, "low": -np.inf, "high": np.inf}


@pytest.mark.parametrize(
    ("agent", "champion", "promoted", "text"),
    [
        (1.0, None, True, "promoted: better than good, the policy in use at that time: return -9.1"),
        (0.0, None, False, "not at least as good as the best heuristic, good, with 95 % confidence"),
        (-1.0, None, False, "the heuristic stayed in use"),
        (1.0, 0.5, True, "promoted: better than the champion at that time: return"),
        (1.0, 1.0, False, "not better than the champion at that time"),
        (1.0, 1.5, False, "(difference -0.5"),
        (-1.0, -1.5, False, "the champion stayed in use"),
        (
            0.05,
            None,
            False,
            "not better than good, the policy in use at that time: return",
        ),  # a gain of half the margin
        (-0.05, -1.5, True, "promoted: better than the champion at that time"),  # a loss of half of it
        (1.0, 0.95, False, "not better than the champion at that time: return"),
    ],
)
def test_who_is_as_good_as_the_rules_and_better_than_the_champion_may_answer(
    agent: float, champion: float | None, promoted: bool, text: str
) -> None:
    ours = earns(agent) if agent else np.where(np.arange(len(EPISODES)) % 2, RULES["good"] - 2, RULES["good"] + 2)
    theirs = None if champion is None else ours if champion == agent else earns(champion)
    verdict = Judgement(ours, RULES, champion=theirs)
    assert verdict.promoted == promoted
    assert text in verdict.reason
    assert verdict.report()["promoted"] == promoted


def test_episodes_that_vary_together_count_once() -> None:
    """Eight clusters share a gain of their own: in none of the report's intervals are episodes independent."""
    clusters = np.repeat(np.arange(8), 50)
    own = np.array([-0.6, 0.2, 1.2, 0.1, 0.9, -0.3, 0.8, 0.5])[clusters]
    late = (own > 0.4).astype(np.float64)[:, None]
    counted = OutcomeValues((Outcome("missed deadlines", "share"),), late, dict.fromkeys(RULES, late), late)
    shared = Judgement(RULES["good"] + own, RULES, "good", RULES["good"] + 0.5 * own, 0.0, counted, clusters)
    apart = Judgement(shared.returns, RULES, "good", shared.champion, 0.0, counted)
    assert apart.promoted
    assert not shared.promoted
    together, alone = shared.report(), apart.report()

    def width(values: dict[str, float]) -> float:
        return values["high"] - values["low"]

    for name in ("advantage", "gain", "champion_advantage"):
        assert width(together[name]) > 4 * width(alone[name]), name
    assert width(together["heuristics"]["good"]) != pytest.approx(width(alone["heuristics"]["good"]))
    assert width(together["return"]) != pytest.approx(width(alone["return"]))
    rows = [report["outcomes"][0]["policies"]["agent"] for report in (together, alone)]
    assert width(rows[0]) > 4 * width(rows[1])
    assert 0 <= rows[0]["low"] <= rows[0]["high"] <= 1
    assert together["gain"] == pytest.approx(mean_interval(0.5 * own, clusters))


def test_a_verdict_says_which_gain_it_could_have_seen() -> None:
    """A gain so large is found to be better in eight of ten judgings, whatever the margin."""
    for margin in (0.0, 0.01):
        first = Judgement(
            RULES["good"] + np.random.default_rng(0).normal(0, 0.5, 400), RULES, equivalence_margin=margin
        )
        detectable = first.report()["detectable"]
        assert detectable == pytest.approx(first.equivalence.margin + 2.81 * 0.5 / 20, rel=0.1)
        assert f"a gain of {detectable:.5f} would be detected in 80 % of evaluations" in first.reason
        judgements = [
            Judgement(
                RULES["good"] + np.random.default_rng(seed).normal(detectable, 0.5, 400),
                RULES,
                equivalence_margin=margin,
            )
            for seed in range(1, 201)
        ]
        assert np.mean([one.better for one in judgements]) == pytest.approx(0.8, abs=0.12)


def test_what_was_judged_before_is_judged_with_more_confidence() -> None:
    gained = RULES["good"] + 0.11 + RANDOM.normal(0, 0.1, 400)
    first, tenth = (Judgement(gained, RULES, confidence=confidence_at(look)) for look in (1, 10))
    assert (first.report()["confidence"], tenth.report()["confidence"]) == pytest.approx((0.975, 1 - 0.05 / 110))
    assert tenth.gain["low"] < first.gain["low"]
    assert "97.5 % interval" in first.reason
    assert "99.955 % interval" in tenth.reason


def test_a_champion_is_worse_where_the_whole_interval_says_so() -> None:
    ours = earns(0.0)
    for champion, worse in (
        (earns(-1.0), True),
        (earns(-0.05), False),
        (RULES["good"] - RANDOM.choice([-9.0, 9.5], 400), False),
    ):
        verdict = Judgement(ours, RULES, champion=champion)
        assert verdict.report()["champion_worse"] is worse
    assert not Judgement(ours, RULES).champion_worse


def test_differences_are_paired_and_signed() -> None:
    verdict = Judgement(earns(1.0), RULES, champion=earns(0.5))
    report = verdict.report()
    assert (report["best_heuristic"], report["episodes"]) == ("good", 400)
    assert report["advantage"]["mean"] == pytest.approx(1.0, abs=0.03)
    assert report["advantage"]["high"] - report["advantage"]["low"] < 0.06  # of the returns themselves it is 0.6
    assert verdict.gain["mean"] == pytest.approx(0.5, abs=0.03)
    assert set(report["heuristics"]) == {"poor", "good"}


def test_what_users_count_is_told_before_returns() -> None:
    """Of the agent and of what it is held against: the best rule where it loses to that, else what answers."""
    late = {name: np.stack([np.full(400, share), np.full(400, hours)], axis=1) for name, share, hours in LATE}
    counted = OutcomeValues((Outcome("missed deadlines", "share"), Outcome("GPU-hours")), late.pop("agent"), late)
    better = Judgement(earns(1.0), RULES, "poor", outcome_values=counted)
    assert "better than poor, the policy in use at that time: missed deadlines 4.2 % against 50.0 %, " in better.reason
    assert "GPU-hours 3.1 against 1,900, return -" in better.reason
    assert [row["name"] for row in better.report()["outcomes"]] == ["missed deadlines", "GPU-hours"]
    assert better.report()["outcomes"][0]["unit"] == "share"
    policies = better.report()["outcomes"][0]["policies"]
    assert {name: match["mean"] for name, match in policies.items()} == pytest.approx(
        {"agent": 0.042, "good": 0.06, "poor": 0.5}
    )
    worse = Judgement(earns(-1.0), RULES, "poor", outcome_values=counted)
    assert "best heuristic, good, with 95 % confidence: missed deadlines 4.2 % against 6.0 %" in worse.reason


def test_no_gain_promotes_who_misses_more_targets() -> None:
    """Neither against the best rule nor against what is in use; a miss of what does not bind is a matter of weights."""
    rates = {"agent": 0.2, "good": 0.05, "poor": 0.1, "champion": 0.1}
    missed = {name: (RANDOM.random((400, 1)) < rate).astype(float) for name, rate in rates.items()}
    rules = {name: missed[name] for name in RULES}

    def judged(agent: str, *, binding: bool = True, champion: str | None = None, margin: float = 0.01) -> Judgement:
        present = None if champion is None else missed[champion]
        outcomes = [Outcome("missed deadlines", "share", binding)]
        counted = OutcomeValues(outcomes, missed[agent], rules, present)
        ours = None if champion is None else earns(0.5)
        return Judgement(earns(1.0), RULES, "good", ours, margin, counted)

    late = judged("agent")
    assert (late.as_good, late.better, late.promoted, late.report()["promoted"]) == (False, False, False, False)
    assert "more targets missed than by the best heuristic, good: missed deadlines" in late.reason
    assert judged("agent", binding=False).promoted
    assert judged("agent", margin=0.25).as_good, "within the tolerance of 25 points"
    assert judged("good").promoted
    assert "promoted: better than good" in judged("good").reason
    missed["champion"][:] = 0.0
    behind = judged("good", champion="champion")
    assert (behind.as_good, behind.promoted) == (True, False)
    assert "more targets missed than by the champion at that time: missed deadlines" in behind.reason


def test_what_is_level_with_the_best_rule_still_replaces_a_worse_one_that_answers() -> None:
    level = earns(0.0)
    assert Judgement(level, RULES, "poor").promoted
    assert "better than poor, the policy in use at that time" in Judgement(level, RULES, "poor").reason
    assert not Judgement(level, RULES, "good").promoted
    assert (Judgement(level, RULES, "poor").incumbent, Judgement(level, RULES).incumbent) == ("poor", "good")


def test_the_margin_decides_both_ways() -> None:
    small = np.asarray(RULES["good"] + 0.05)  # less than a hundredth of a return of 10, and sure
    assert not Judgement(small, RULES).promoted
    assert Judgement(small, RULES, equivalence_margin=0.0).promoted
    lost = np.asarray(RULES["good"] - 0.05)
    assert Judgement(lost, RULES).as_good
    assert not Judgement(lost, RULES, equivalence_margin=0.0).as_good


def test_a_gap_is_above_zero_for_who_is_behind_whatever_the_sign_of_the_return() -> None:
    assert gap(np.array([-3.0, -1.0]), np.array([-1.0, -1.0])) == pytest.approx(1.0)
    assert gap(np.array([3.0]), np.array([4.0])) == pytest.approx(0.25)
    assert gap(np.array([5.0]), np.array([4.0])) == pytest.approx(-0.25)
