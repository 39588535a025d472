"""The ready-made learning half, on a toy: a walk on a line towards a target that each episode draws."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Policy, Situation, View
from tests.planted import planted_spec
from workers import plugins
from workers.estimators.base import TooLittleData
from workers.evaluation.problem import SimulatedWorld
from workers.evaluation.protocol import Candidate, EvaluationRun, Settings
from workers.evaluation.wrappers import Conditions as Disturbances
from workers.evaluation.wrappers import World
from workers.inputs import Conditions, ExogenousSeries, HoldOut, Workload
from workers.kinds.contract import Competing, FittedModel, LearnedKind
from workers.kinds.simulated import SimulatedKind
from workers.learning.training.driver import Training
from workers.learning.training.request import Request

STEPS = 6


class State(NamedTuple):
    """Where walkers are, and where they want to be, [B] each."""

    place: NDArray[np.float64]
    target: NDArray[np.float64]


class Walk(SimulatedWorld):
    """A step left, none, or one right, of about the length that the model says; the distance is paid for."""

    terms_of: ClassVar[Sequence[str]] = ("distance", "steps")
    parameters: Sequence[str] = ("target.place",)

    def __init__(self, lengths: Sequence[float], layout: Any, batch: int, seed: int) -> None:
        super().__init__(layout, 2, 3, (1.0, 0.01), steps=STEPS, batch=batch, seed=seed, held_out=len(lengths) - 1)
        self.lengths = np.array(lengths)

    def begin(self) -> State:
        target = np.round(6 * self.uniform(1)[:, 0] - 3) * self.by_episode("target.place")
        return State(np.zeros(self.batch), target)

    def advance(
        self, state: State, actions: NDArray[np.integer], conditions: Disturbances
    ) -> tuple[State, NDArray[np.float64]]:
        length = self.lengths[0] if self.model is None else self.lengths[1 + self.model]
        place = state.place + (actions - 1) * length * np.exp(-conditions.slowdown) + 0.05 * self.normal(1)[:, 0]
        after = state._replace(place=place)
        return after, np.stack([np.abs(place - state.target), np.abs(actions - 1.0)], axis=1)

    def observe(self, state: State) -> View:
        observation = np.stack([state.target - state.place, state.target], axis=1).astype(np.float32)
        return View(observation, np.ones((self.batch, 3), np.bool_))


class Stay:
    """Never moves."""

    name = "stay"

    def act(self, situation: Situation) -> Choice:
        return Choice(np.ones(len(situation.view.mask), np.int64))


class Lean:
    """Goes right, whatever there is."""

    name = "lean"

    def act(self, situation: Situation) -> Choice:
        return Choice(np.full(len(situation.view.mask), 2))


class Walking(SimulatedKind):
    """The toy's learning half; another kind serves in its place."""

    name = "iterative"

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        del seed
        if not workload.samples:
            raise TooLittleData("a walk", "none")
        length = np.mean([values.mean() for _, values in workload.samples])
        return FittedModel(np.float64(length).tobytes(), {"family": "mean"})

    def world(self, workload: Workload, conditions: Conditions) -> World:
        models = (workload.model, *conditions.held_out)
        lengths = [float(np.frombuffer(model)[0]) for model in models]
        return Walk(lengths, self.layout(workload.spec), conditions.batch, conditions.seed)

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        del workload
        return {"stay": Stay(), "lean": Lean()}

    def entries(self, spec: Any) -> Sequence[str]:
        del spec
        return ("to_go", "target")


KIND = Walking()
SAMPLES = [(f"w{number}", np.full(3, 1.0)) for number in range(8)]
SPEC = planted_spec()
WORKLOAD = Workload(SPEC, KIND.fit(Workload(SPEC, samples=SAMPLES), 0).model, SAMPLES)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda _group, _name: KIND)


def trained(champion: bytes | None = None, *, breaks: bool = False, **requests: Any) -> Training:
    request = Request(**{"algorithm": "dqn", "budget": 20_000, "seed": 1, **requests})
    training = Training(KIND.trainer(WORKLOAD, request, champion))
    while not training.done:
        training.advance()
        if breaks and not training.done:
            checkpoint = training.checkpoint()
            training.close()
            training, breaks = Training(KIND.trainer(WORKLOAD, request, champion), checkpoint), False
    return training


def test_it_keeps_the_contract() -> None:
    assert isinstance(KIND, LearnedKind)
    assert isinstance(KIND, Competing)


def test_a_shared_learner_beats_the_baselines_and_its_equal_does_not_replace_it() -> None:
    result = trained().result()
    report = result.report
    assert report["promoted"], report["reason"]
    assert report["advantage"]["low"] > 1.0
    assert set(report["heuristics"]) == {"stay", "lean"}
    assert set(report["terms"]) == {"distance", "steps"}
    assert (report["optimum"], report["algorithm"]) == (None, "dqn")
    again = trained(result.artifact, breaks=True).result()
    assert not again.report["promoted"]
    assert "champion at that time" in again.report["reason"]


def test_a_baseline_can_be_imitated_and_seeds_compete() -> None:
    report = trained(algorithm="tabular_q", seeds=2, budget=4_000, imitate="lean").result().report
    assert report["imitated"]["expert"] == "lean"
    assert [row["seed"] for row in report["bracket"]] == [1, 2]


def test_without_a_plan_there_is_no_planner() -> None:
    with pytest.raises(ValueError, match="no plan is known"):
        trained(algorithm="planner")


def test_it_is_evaluated_on_all_levels() -> None:
    problem, result = KIND.evaluation(WORKLOAD, HoldOut(share=0.5, unseen={"w1"}), 0)
    assert (result["executions"], result["unseen"], result["reason"]) == (4, 1, None)
    settings = Settings(episodes=8, demonstrations=2)
    run = EvaluationRun(problem, [Candidate("agent", (trained(budget=4_000).result().artifact,))], settings)
    while not run.done:
        run.advance()
    report = run.result().as_dict()
    assert all(level["available"] for level in report["levels"])
    assert report["candidates"][0]["aliasing"]["checked"] is False
    parameters = next(level for level in report["levels"] if level["level"] == "L2")
    assert "parameters" in parameters["wrappers"]


def test_a_model_of_held_out_executions_is_fitted_with_the_series_from_outside() -> None:
    requests: list[Workload] = []

    class Weathered(Walking):
        def fit(self, workload: Workload, seed: int) -> FittedModel:
            requests.append(workload)
            return super().fit(workload, seed)

    moments = np.arange(3.0)
    series = {"wind": ExogenousSeries(moments, moments, moments, moments)}
    Weathered().evaluation(replace(WORKLOAD, exogenous=series), HoldOut(executions=["w1", "w3", "w4"]), 0)
    (values,) = requests
    assert (values.exogenous, values.model, [name for name, _ in values.samples]) == (series, b"", ["w1", "w3", "w4"])


def test_what_cannot_carry_a_model_is_no_l3() -> None:
    problem, result = KIND.evaluation(WORKLOAD, HoldOut(executions=["unknown"]), 0)
    assert "needs a walk" in result["reason"]
    assert problem.world(2, 0).held_out == 0


def test_a_world_goes_on_from_its_state() -> None:
    one, other = (KIND.simulator(WORKLOAD, Conditions(8, 3, "learning")) for _ in range(2))
    one.reset()
    other.reset()
    one.step(np.zeros(8, np.int64))
    other.set_state(one.get_state())
    for _ in range(2 * STEPS):
        ahead, again = one.step(np.full(8, 2)), other.step(np.full(8, 2))
        np.testing.assert_array_equal(ahead.observation, again.observation)
        np.testing.assert_array_equal(ahead.reward, again.reward)
