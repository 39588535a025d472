"""A whole training of a workload: chunks, checkpoint, candidates, judgement."""

from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.policies.artifact import load
from tests.planted import planted_spec, planted_table
from workers.learning.train import Request, Training, Untrainable

SPEC = planted_spec(iterations=10, metrics=[{"name": "iteration_seconds", "target": 110.0, "scope": "run"}])
TABLE = planted_table(SPEC, effect=0.3, noise=0.1)


def request(algorithm: str = "auto", budget: int = 40_000, **more: Any) -> Request:
    return Request(algorithm, budget, seed=3, **more)


def finished(training: Training) -> Training:
    before = -1.0
    while not training.done:
        assert training.progress >= before
        before = training.progress
        training.advance()
    return training


@pytest.mark.parametrize(
    "algorithm", ["planner", "tabular_q", "dqn", "dueling_double_dqn", "n_step_dqn", "prioritised_dqn"]
)
def test_every_algorithm_is_exported_and_judged(algorithm: str) -> None:
    training = finished(Training(SPEC, TABLE, request(algorithm)))
    artifact, report = training.result().artifact, training.result().report
    made = load(artifact)
    made.check(Layout(SPEC))
    assert made.policy.name == report["algorithm"] == algorithm
    assert {"return", "terms", "heuristics", "optimum", "promoted", "reason"} <= set(report)
    assert training.progress == 1.0
    assert training.live["phase"] == "done"
    if algorithm != "planner":
        assert report["environment_steps"] >= 40_000
        assert report["curve"]


def test_auto_lets_the_planner_compete() -> None:
    report = finished(Training(SPEC, TABLE, request())).result().report
    assert set(report["candidates"]) == {"dueling_double_dqn", "planner"}
    assert report["candidates"][report["algorithm"]] == max(report["candidates"].values())
    assert report["promoted"], report["reason"]


def test_a_training_goes_on_from_its_checkpoint_to_the_bit() -> None:
    asked = request("double_dqn", 600_000)
    straight = Training(SPEC, TABLE, asked)
    straight.advance()
    resumed = Training(SPEC, TABLE, asked, straight.checkpoint())
    assert resumed.progress == straight.progress
    for training in (straight, resumed):
        while training.learning:
            training.advance()
    assert straight.learner is not None
    assert resumed.learner is not None
    for name, value in straight.learner.agent.export()[2].items():
        np.testing.assert_array_equal(resumed.learner.agent.export()[2][name], value, err_msg=name)


def test_what_cannot_be_trained_says_why() -> None:
    with pytest.raises(Untrainable, match="'sarsa'"):
        Training(SPEC, TABLE, request("sarsa"))
    spec = planted_spec(iterations=4, metrics=[{"name": "loss", "target": 1.0}])
    with pytest.raises(Untrainable, match="loss"):
        finished(Training(spec, planted_table(spec), request("planner")))


def test_a_result_before_the_end_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="advance"):
        Training(SPEC, TABLE, request("dqn")).result()
