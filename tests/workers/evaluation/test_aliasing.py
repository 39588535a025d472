import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.policies import save
from app.policies.artifact import TablePolicy
from tests.planted import planted_spec, planted_table
from workers.evaluation.judge import check
from workers.evaluation.problem import Encoder
from workers.kinds.iterative.problem import IterativeProblem

SPEC = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 130.0, "scope": "run"}])


@pytest.fixture(scope="module")
def problem() -> IterativeProblem:
    return IterativeProblem(SPEC, planted_table(SPEC, effect=0.3, noise=0.2))


def without(problem: IterativeProblem, *prefixes: str) -> Encoder:
    """An encoder that drops entries."""
    selection = [i for i, name in enumerate(problem.entries) if not name.startswith(prefixes)]
    return Encoder(f"without {', '.join(prefixes)}", lambda s: s.view.observation[:, selection])


def test_the_full_observation_is_not_aliased(problem: IterativeProblem) -> None:
    result = check(problem, without(problem, "nothing"), seed=1)
    assert not result["aliased"]
    assert result["labels"] == "optimum"
    assert result["states"] == 6 * 32 * 11
    assert result["share_lost"] < 1e-3
    exact = check(problem, without(problem, "nothing"), seed=1, resolution=0)
    assert (exact["conflicting_observations"], exact["value_lost"]) == (0, 0.0)


def test_an_encoder_that_forgets_the_run_is_caught(problem: IterativeProblem) -> None:
    result = check(problem, without(problem, "left.", "effect.", "measured.", "advice."), seed=1)
    assert result["aliased"]
    assert result["observations"] < result["states"] / 10
    assert result["conflicting_states"] > result["states"] / 2
    assert result["share_lost"] > 0.05
    example = result["examples"][0]
    assert len(example["actions"]) > 1, "one observation, several best actions"
    assert sum(example["actions"].values()) == example["states"]
    assert example["value_lost"] > 0
    assert set(example["observation"]) == set(problem.entries)


def test_the_more_is_dropped_the_more_is_lost(problem: IterativeProblem) -> None:
    lost = [
        check(problem, without(problem, *prefixes), seed=1)["value_lost"]
        for prefixes in (["x"], ["advice."], ["advice.", "left.", "effect."], ["advice.", "left.", "effect.", "meas"])
    ]
    assert lost == sorted(lost)
    assert lost[-1] > 10 * max(lost[0], 1e-9)


def test_what_one_answer_must_lose_is_counted_by_hand() -> None:
    """Two states that look alike: 0 costs 0 and 0.4, 1 costs 0.2 and 0. The best single answer is 1: 0.1 a decision."""
    from workers.evaluation.judge import Demonstrations, _count_aliasing

    class Two:
        def action_name(self, action: int) -> str:
            return str(action)

        def named_observation(self, situation: Situation, row: int) -> dict[str, float]:
            return {"row": row}

    demonstrations = Demonstrations(Two(), Encoder("blind", lambda s: s.view), HeuristicPolicy({}), 10)  # type: ignore[arg-type]
    demonstrations.rows, demonstrations.masks = [np.zeros((2, 1), np.float32)], [np.ones((2, 2), np.bool_)]
    demonstrations.losses, demonstrations.count = [np.array([[0.0, 0.2], [0.4, 0.0]])], 2
    demonstrations.situations = [(None, 0), (None, 1)]  # type: ignore[list-item]
    count_aliasing = _count_aliasing(Two(), demonstrations, 0.05, 1.0, 5)  # type: ignore[arg-type]
    assert count_aliasing["value_lost"] == pytest.approx(0.1 * 5)
    assert (count_aliasing["conflicting_observations"], count_aliasing["conflicting_states"]) == (1, 2)
    assert count_aliasing["examples"][0]["actions"] == {"0": 1, "1": 1}
    demonstrations.masks = [np.array([[True, True], [True, False]])]
    assert _count_aliasing(Two(), demonstrations, 0.05, 1.0, 5)["observations"] == 2, "what is legal is seen too"  # type: ignore[arg-type]


def test_a_published_policy_is_checked_as_it_sees(problem: IterativeProblem) -> None:
    layout = problem.layout
    config = {"algorithm": "q_table", "entries": [0], "low": [0.0], "high": [1.0], "bins": [3], "advice": None}
    table = save(TablePolicy(config, {"q": np.zeros((3, len(layout.deltas)), np.float32)}), layout)
    encoder = problem.encoder(table)
    assert encoder is not None
    result = check(problem, encoder, seed=1)
    assert (result["encoder"], result["aliased"]) == ("table", True)
    rule = check(problem, problem.encoder(save(HeuristicPolicy({"heuristic": "hold"}), layout)), seed=1)
    assert not rule["checked"]
    assert "whole state" in rule["reason"]
