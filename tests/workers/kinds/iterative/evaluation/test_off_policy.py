"""Off-policy estimates against what the candidate really earns, and against closed forms."""

from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HEURISTICS, HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Log, from_reports
from app.kinds.iterative.observation import reward, terms, view
from app.kinds.iterative.policies import load, save
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import advance, begin
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative import off_policy
from workers.kinds.iterative.off_policy import TooFewRuns, score
from workers.kinds.iterative.simulator import IterativeSimulator

SPEC = planted_spec(iterations=6, metrics=[{"name": "iteration_seconds", "unit": "s", "target": 66.0, "scope": "run"}])
LAYOUT, TABLE = Layout(SPEC), planted_table(SPEC)


def artifact(name: str) -> Any:
    return load(save(HeuristicPolicy({"heuristic": name}), LAYOUT))


def played(softness: float, runs: int, seed: int, *, chances: bool = True, rule: str = "model_predictive") -> list[Log]:
    """Runs decided by a heuristic that takes an even draw over the legal actions with probability `softness`."""
    simulator = IterativeSimulator(LAYOUT, TABLE, runs, seed, shaped=False)
    simulator.reset()
    rng, rows = np.random.default_rng(seed + 1), np.arange(runs)
    levels, metrics = [simulator.state.levels], [simulator.state.measured]
    chance: list[Any] = [np.ones(runs)]
    for _ in range(LAYOUT.iterations - 1):
        situation = Situation(simulator.projector, simulator.state, simulator.view)
        best, mask = HEURISTICS[rule].act(situation).action, simulator.view.mask
        even = mask / mask.sum(axis=1, keepdims=True)
        drawn = (rng.random((runs, 1)) > np.cumsum(even, axis=1)).sum(axis=1).clip(0, mask.shape[1] - 1)
        action = np.where(rng.random(runs) < softness, drawn, best)
        chance.append(softness * even[rows, action] + (1 - softness) * (action == best))
        after = _stepped(simulator, action)
        levels.append(after[0])
        metrics.append(after[1])
    stacked = (np.stack(levels, 1), np.stack(metrics, 1).astype(np.float64), np.stack(chance, 1))
    return [
        Log(stacked[0][i], stacked[1][i], np.zeros((6, 0)), LAYOUT.targets, stacked[2][i] if chances else None)
        for i in range(runs)
    ]


def _stepped(simulator: IterativeSimulator, action: Any) -> tuple[Any, Any]:
    """Levels and metrics of the iteration that a step ran, whether or not its episode was then renewed."""
    ran: list[tuple[Any, Any]] = []
    renew = simulator._renew

    def noted(done: Any) -> None:
        ran.append((simulator.state.levels.copy(), simulator.state.measured.copy()))
        renew(done)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simulator, "_renew", noted)
        simulator.step(action)
    return ran[0] if ran else (simulator.state.levels.copy(), simulator.state.measured.copy())


@pytest.fixture(scope="module")
def soft_logs() -> list[Log]:
    return played(0.5, 4_000, 7)


@pytest.mark.parametrize("rule", ["hold", "threshold"])  # one changes nothing, the other pays for changes
def test_replay_of_what_was_done_is_what_was_earned(rule: str) -> None:
    logs = played(0.0, 50, 3, rule=rule)
    projector = Projector(LAYOUT, TABLE)
    earned = off_policy.follow(projector, artifact(rule), logs).rewards.sum(axis=1)
    np.testing.assert_allclose(off_policy.replay(projector, artifact(rule), logs), earned, rtol=1e-4, atol=1e-6)


def test_a_measured_pause_is_not_taken_for_slower_work() -> None:
    """As a launcher reports changes that take 40 s more than expected, of some runs."""
    logs, late = played(0.0, 20, 3, rule="threshold"), list[Log]()
    for log in logs:
        moved = np.append(False, (np.diff(log.levels, axis=0) != 0).any(axis=1))
        reports = [
            {
                "allocation": LAYOUT.allocation_dict(levels),
                "metrics": {"iteration_seconds": took[0] + 40.0 * changed},
                "features": {},
                **({"change_seconds": 42.0} if changed else {}),
            }
            for levels, took, changed in zip(log.levels, log.metrics, moved, strict=True)
        ]
        late.append(from_reports(LAYOUT, reports, {}))
    assert any(one.paused is not None and np.isfinite(one.paused).any() for one in late)
    projector = Projector(LAYOUT, TABLE)
    usual, result = (off_policy.replay(projector, artifact("hold"), each) for each in (logs, late))
    np.testing.assert_allclose(result, usual, rtol=1e-6)
    one, other = (off_policy.follow(projector, artifact("hold"), each).rewards.sum() for each in (logs, late))
    assert other < one  # the logged runs did wait


def test_replay_finds_what_the_candidate_earns(soft_logs: list[Log]) -> None:
    result = score(LAYOUT, TABLE, artifact("model_predictive"), soft_logs[:2_000])
    own = _earned(played(0.0, 4_000, 11))
    error = np.hypot(
        own.std() / 4_000**0.5, (result["replay"]["return"]["high"] - result["replay"]["return"]["low"]) / 3.92
    )
    assert abs(result["replay"]["return"]["mean"] - own.mean()) < 4 * error
    assert result["replay"]["advantage"]["low"] > 0  # half of the logged steps were random


@pytest.mark.slow
def test_importance_sampling_with_logged_chances_is_right(soft_logs: list[Log]) -> None:
    """All three estimates of the candidate, softened, against playing it so."""
    candidate = artifact("model_predictive")
    importance = score(LAYOUT, TABLE, candidate, soft_logs)["importance"]
    own = _earned(played(off_policy.SOFTNESS, 8_000, 23))
    assert importance["behaviour"] == "logged"
    assert importance["trusted"]
    for name in ("per_decision", "weighted", "doubly_robust"):
        error = np.hypot(own.std() / 8_000**0.5, (importance[name]["high"] - importance[name]["low"]) / 3.92)
        assert abs(importance[name]["mean"] - own.mean()) < 4 * error, name


def _earned(logs: list[Log]) -> Any:
    return off_policy.follow(Projector(LAYOUT, TABLE), artifact("hold"), logs).rewards.sum(axis=1)


def test_a_log_of_another_policy_is_not_trusted() -> None:
    """Every logged step held; a candidate that keeps changing has no support there."""
    logs = played(0.0, 40, 5, chances=False, rule="hold")
    importance = score(LAYOUT, TABLE, artifact("threshold"), logs)["importance"]
    assert importance["behaviour"] == "estimated"
    assert importance["effective_sample_size"] < off_policy.TRUSTED_SAMPLES
    assert importance["trusted"] is False


def test_a_log_of_the_candidate_itself_agrees_and_has_nothing_to_gain() -> None:
    logs = played(0.0, 40, 5, chances=False, rule="hold")
    short = logs[0]._replace(levels=logs[0].levels[:3])
    result = score(LAYOUT, TABLE, artifact("hold"), [*logs, short])
    earned = _earned(logs)
    assert (result["runs"], result["incomplete"], result["agreement"]) == (40, 1, 1.0)
    assert result["importance"]["trusted"] is True
    assert result["logged"]["mean"] == pytest.approx(earned.mean())
    assert result["replay"]["return"]["mean"] == pytest.approx(earned.mean(), rel=1e-5)
    assert max(map(abs, result["replay"]["advantage"].values())) < 1e-6


def test_agreement_is_the_share_of_like_decisions() -> None:
    logs = played(0.5, 300, 9)
    trace = off_policy.follow(Projector(LAYOUT, TABLE), artifact("model_predictive"), logs)
    alike = float((trace.actions == trace.chosen).mean())
    assert 0.5 < alike < 0.8  # half of the steps are the candidate's, and one in nine of the others
    assert score(LAYOUT, TABLE, artifact("model_predictive"), logs)["agreement"] == alike


def trace(rewards: Any, **changes: Any) -> off_policy.Trace:
    """Runs that hold, as the candidate would, where holding was the only legal action."""
    shape = (len(rewards), rewards.shape[1] - 1)
    whole = {name: np.zeros(shape, np.int64) for name in ("actions", "chosen", "advised")}
    whole |= {name: np.zeros(shape) for name in ("taken_value", "chosen_value", "mean_value")}
    legal = np.zeros((*shape, 3), np.bool_)
    legal[:, :, 0] = True
    return off_policy.Trace(**{**whole, "legal": legal, "chance": np.ones(shape), "rewards": rewards, **changes})


def test_intervals_hold_95_percent_of_the_estimates() -> None:
    """With the weights all one, every estimate is the mean return; its standard error is known."""
    rewards = np.random.default_rng(2).normal(1.0, 1.0, (400, 3))
    returns = rewards.sum(axis=1)
    half = 1.96 * returns.std() / 20
    importance = off_policy.importance(trace(rewards), 2)
    for estimate in (importance["per_decision"], importance["weighted"], importance["doubly_robust"]):
        assert estimate["mean"] == pytest.approx(returns.mean())
        assert [estimate["low"], estimate["high"]] == pytest.approx(
            [returns.mean() - half, returns.mean() + half], abs=0.12 * half
        )
    assert importance["effective_sample_size"] == pytest.approx(400)


def test_a_step_that_the_candidate_would_take_rarely_weighs_little() -> None:
    """Of three legal actions, each logged with 1/2: the candidate's own, another, and one that is no action."""
    actions = np.array([[0], [1], [-1]])
    importance = off_policy.importance(
        trace(
            np.tile([0.0, 1.0], (3, 1)),
            actions=actions,
            legal=np.ones((3, 1, 3), np.bool_),
            chance=np.full((3, 1), 0.5),
        ),
        3,
    )
    even = off_policy.SOFTNESS / 3
    ratios = [(even + 1 - off_policy.SOFTNESS) / 0.5, even / 0.5, 0.0]
    assert importance["per_decision"]["mean"] == pytest.approx(sum(ratios) / 3)
    assert importance["effective_sample_size"] == pytest.approx(off_policy.effective_sample_size(np.array(ratios)))


@pytest.mark.parametrize(("runs", "trusted"), [(9, False), (10, True)])
def test_ten_runs_of_equal_weight_are_trusted(runs: int, trusted: bool) -> None:
    importance = off_policy.importance(trace(np.ones((runs, 2))), 2)
    assert importance["trusted"] is trusted


def test_one_unknown_chance_makes_all_of_them_estimates() -> None:
    """Where 0 was advised: 3 of 4 took it; one step of each legal kind is added."""
    actions, advised = np.array([[0], [0], [0], [1], [1], [-1]]), np.array([[0], [0], [0], [0], [1], [1]])
    chance, legal = np.full((6, 1), 0.5), np.ones((6, 1, 2), np.bool_)
    chance[2] = np.nan
    logged = trace(np.ones((6, 2)), actions=actions, advised=advised, chance=chance, legal=legal)
    assert off_policy.importance(logged, 2)["behaviour"] == "estimated"
    behaviour = off_policy.estimated_behaviour(logged, 2)
    assert behaviour[:5, 0].tolist() == pytest.approx([4 / 6, 4 / 6, 4 / 6, 2 / 6, 2 / 3])


def test_no_probability_is_spent_on_actions_that_were_illegal() -> None:
    """Of nine actions two are legal in four runs, and all in another; every log holds, as was advised."""
    legal = np.ones((5, 1, 9), np.bool_)
    legal[:4, :, 2:] = False
    current = np.zeros((5, 1), np.int64)
    logged = trace(np.ones((5, 2)), actions=current, advised=current, legal=legal, chance=np.full((5, 1), np.nan))
    assert off_policy.estimated_behaviour(logged, 9)[:, 0].tolist() == pytest.approx([6 / 7] * 4 + [6 / 14])


def test_two_runs_are_enough() -> None:
    assert score(LAYOUT, TABLE, artifact("hold"), played(0.0, 2, 1, rule="hold"))["runs"] == 2


@pytest.mark.parametrize(
    ("weights", "size"), [([1.0, 1.0, 1.0, 1.0], 4.0), ([1.0, 0.0], 1.0), ([3.0, 1.0], 1.6), ([0.0], 0.0)]
)
def test_effective_sample_size(weights: list[int], size: float) -> None:
    assert off_policy.effective_sample_size(np.array(weights)) == pytest.approx(size)


def test_estimators_by_hand() -> None:
    """Two runs of two iterations, one decision each: ratios 2 and 0.5."""
    ratios = off_policy.cumulative(np.array([[2.0], [0.5]]))
    rewards = np.array([[1.0, 10.0], [2.0, 20.0]])
    assert off_policy.per_decision(ratios, rewards) == pytest.approx((1 + 20 + 2 + 10) / 2)
    assert off_policy.weighted_return(ratios, rewards) == pytest.approx(1.5 + (2 * 10 + 0.5 * 20) / 2.5)
    taken, expected = np.array([[9.0], [21.0]]), np.array([[8.0], [19.0]])
    correction = (0.8 * 9 + 0.2 * 21) - (0.5 * 8 + 0.5 * 19)
    assert off_policy.doubly_robust(ratios, rewards, taken, expected) == pytest.approx(1.5 + 12 - correction)


def test_exact_values_make_doubly_robust_exact() -> None:
    """With the true values as control variate, the estimate is the truth whatever the weights."""
    rng = np.random.default_rng(0)
    ratios = off_policy.cumulative(rng.uniform(0.1, 3.0, (20, 3)))
    rewards = np.tile([1.0, 2.0, 3.0, 4.0], (20, 1))
    ahead = np.tile([9.0, 7.0, 4.0], (20, 1))
    assert off_policy.doubly_robust(ratios, rewards, ahead, ahead) == pytest.approx(10.0)


def test_too_few_runs_are_told() -> None:
    log = played(0.0, 1, 1)[0]
    short = log._replace(levels=log.levels[:3], metrics=log.metrics[:3], features=log.features[:3])
    with pytest.raises(TooFewRuns, match=r"needs 2 or more finished runs of 6 iterations, has 1"):
        score(LAYOUT, TABLE, artifact("hold"), [log, short])


def test_a_change_that_is_no_action_is_marked() -> None:
    before = np.array([[0], [0]], np.int16)
    actions = off_policy.actions_of(LAYOUT, before, np.array([[1], [20]], np.int16)).tolist()
    assert actions == [LAYOUT.deltas[:, 0].tolist().index(1), -1]


def test_an_action_changes_every_resource_as_its_delta_says() -> None:
    one = {"minimum": 1, "maximum": 9, "max_steps": 1}
    layout = Layout(planted_spec(resources=[{"name": "gpus", **one}, {"name": "cpus", **one}]))
    for action, delta in enumerate(layout.deltas):
        assert off_policy.actions_of(layout, np.array([[4, 4]]), 4 + delta[None]).tolist() == [action]


def test_reports_become_a_log() -> None:
    reports = [{"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 11.5}, "features": {}}] * 2
    log = from_reports(LAYOUT, reports, {"iteration_seconds": 50.0})
    assert log.levels.tolist() == [[4], [4]]
    assert log.targets.tolist() == [50.0]


def test_a_log_without_pauses_expects_them_and_its_chances_are_its_own() -> None:
    """Two runs by hand: chances, best, mean and chosen values are those of the state before each iteration."""
    logs = played(0.5, 2, 3)
    projector, candidate = Projector(LAYOUT, TABLE), artifact("model_predictive")
    found = off_policy.follow(projector, candidate, logs)
    state = begin(projector, np.stack([log.levels[0] for log in logs]), targets=np.stack([log.targets for log in logs]))
    for t in range(LAYOUT.iterations):
        levels, metrics = (np.stack([getattr(log, name)[t] for log in logs]) for name in ("levels", "metrics"))
        if t:
            seen = view(projector, state)
            for run in range(2):
                legal = np.flatnonzero(seen.mask[run])
                values = seen.outlook[run]
                assert found.chance[run, t - 1] == logs[run].chances[t]  # type: ignore[index]
                assert found.advised[run, t - 1] == legal[values[legal].argmax()]
                assert found.mean_value[run, t - 1] == pytest.approx(values[legal].mean(), rel=1e-5)
                assert found.taken_value[run, t - 1] == values[found.actions[run, t - 1]]
                assert found.chosen_value[run, t - 1] == values[found.chosen[run, t - 1]]
                assert (LAYOUT.deltas[found.actions[run, t - 1]] == levels[run] - state.levels[run]).all()
        after = advance(projector, state, levels, metrics, np.zeros((2, 0)))
        paid = reward(state.weights, terms(projector, state, after))
        np.testing.assert_allclose(found.rewards[:, t], paid, rtol=1e-6)
        state = after


def test_a_change_that_is_no_action_is_valued_as_holding() -> None:
    logs = played(0.0, 2, 3, rule="hold")
    levels = logs[0].levels.copy()
    levels[3:] += 9
    trace = off_policy.follow(Projector(LAYOUT, TABLE), artifact("hold"), [logs[0]._replace(levels=levels), logs[1]])
    assert (trace.actions[:, 2].tolist(), trace.chosen[:, 2].tolist()) == ([-1, LAYOUT.noop], [LAYOUT.noop] * 2)
    np.testing.assert_array_equal(trace.taken_value, trace.chosen_value)


def test_of_iterations_without_weight_no_share_is_made() -> None:
    found = off_policy.normalise_weights(np.array([[1.0, 0.0], [3.0, 0.0]]))
    assert found.tolist() == [[0.25, 0.0], [0.75, 0.0]]
