"""The contract of a kind's learning half, over every kind that is registered; see ``workers.kinds.contract``."""

from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest

from app.kinds.registry import KINDS
from app.kinds.registry import load_artifact as load
from tests.contracts.learned_examples import EXAMPLES
from workers.estimators.base import TooLittleData
from workers.evaluation.protocol import Candidate, EvaluationRun, Settings
from workers.evaluation.wrappers import World
from workers.inputs import Conditions, HoldOut, Workload
from workers.kinds.contract import Competing, FittedModel, LearnedKind, Online, learned_kind, learned_kinds
from workers.learning.simulator import SimulatorSpec
from workers.learning.training.driver import PlannedPolicy, Training
from workers.learning.training.request import Request

BATCH = 4


@pytest.fixture(params=learned_kinds())
def kind(request: pytest.FixtureRequest) -> LearnedKind:
    return learned_kind(request.param)


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts on fewer episodes: every rule plays each of them."""
    monkeypatch.setattr("workers.kinds.iterative.judge.JUDGE_EPISODES", 512)
    for kind in map(learned_kind, learned_kinds()):
        if hasattr(kind, "judged_episodes"):
            monkeypatch.setattr(type(kind), "judged_episodes", 16)


@cache
def _fitted(name: str) -> FittedModel:
    return learned_kind(name).fit(EXAMPLES[name]().workload, 0)


def workload(kind: LearnedKind) -> Workload:
    """The example, with its domain model where agents learn from one."""
    workload = EXAMPLES[kind.name]().workload
    return replace(workload, model=_fitted(kind.name).model) if KINDS[kind.name].simulated else workload


def world(kind: LearnedKind, seed: int = 3, batch: int = BATCH) -> World:
    simulator: World = kind.simulator(workload(kind), Conditions(batch, seed))  # type: ignore[assignment]
    return simulator


def test_every_kind_that_serves_learns() -> None:
    assert set(learned_kinds()) == set(KINDS)


def test_it_is_a_learned_kind(kind: LearnedKind) -> None:
    assert isinstance(kind, LearnedKind)
    assert "auto" in kind.algorithms
    assert KINDS[kind.name].training.online == isinstance(kind, Online)


def test_a_fit_gives_what_the_serving_half_reads(kind: LearnedKind) -> None:
    fitted = _fitted(kind.name)
    assert fitted.report["family"]
    assert KINDS[kind.name].model(fitted.model) is not None
    assert kind.fit(EXAMPLES[kind.name]().workload, 0).model == fitted.model


def test_too_little_data_is_said_with_its_terms(kind: LearnedKind) -> None:
    with pytest.raises(TooLittleData, match="needs") as caught:
        kind.fit(Workload(workload(kind).spec), 0)
    assert caught.value.has


def test_a_world_is_the_same_episode_in_all_places_until_it_is_reseeded(kind: LearnedKind) -> None:
    one, again = world(kind), world(kind)
    observation, mask = one.reset()
    np.testing.assert_array_equal(observation, again.reset()[0])
    np.testing.assert_array_equal(observation, np.broadcast_to(observation[0], observation.shape))
    assert observation.shape == (BATCH, *one.observation_space.shape)
    assert mask.shape == (BATCH, int(one.action_space.n))
    assert mask.any(axis=1).all()


def test_what_is_paid_are_the_weighted_terms(kind: LearnedKind) -> None:
    values, problem = world(kind), kind.evaluation(workload(kind), None, 0).problem
    _, mask = values.reset()
    done = np.zeros(BATCH, bool)
    for _ in range(values.steps):
        step = values.step(mask.argmax(axis=1))
        np.testing.assert_allclose(values.paid, -(values.terms @ np.asarray(problem.weights)), rtol=1e-4, atol=1e-5)
        mask, done = step.mask, step.done
    assert done.all()
    assert values.terms.shape == (BATCH, len(problem.terms))


def test_a_world_goes_on_from_its_state(kind: LearnedKind) -> None:
    first, second = world(kind), world(kind)
    _, mask = first.reset()
    second.step(second.reset()[1].argmax(axis=1))
    second.set_state(first.get_state())
    for _ in range(2 * first.steps):
        ahead, again = first.step(mask.argmax(axis=1)), second.step(mask.argmax(axis=1))
        np.testing.assert_array_equal(ahead.reward, again.reward)
        mask = ahead.mask


def test_learners_get_a_simulator_by_its_description_or_are_told_why_not(kind: LearnedKind) -> None:
    own = workload(kind)
    described = SimulatorSpec(kind.name, own.spec.model_dump_json().encode(), own.model, BATCH, 5)
    answer = msgspec.msgpack.decode(msgspec.msgpack.encode(described), type=SimulatorSpec)
    if not isinstance(kind, Competing):
        with pytest.raises(ValueError, match=r"\w"):
            answer.make()
        return
    one, other, spaces = described.make(), answer.make(), kind.spaces(own.spec)
    assert (one.observation_space, one.action_space, one.advice) == (spaces.observation, spaces.action, spaces.advice)
    np.testing.assert_array_equal(one.reset()[0], other.reset()[0])


def test_baselines_choose_legal_actions(kind: LearnedKind) -> None:
    simulated = world(kind)
    baselines = kind.baselines(workload(kind))
    assert baselines
    for name, policy in baselines.items():
        assert policy.name == name
        _, mask = simulated.reset()
        action = policy.act(simulated.situation).action
        assert mask[np.arange(BATCH), action].all()


def test_a_reference_is_an_artifact_or_says_why_there_is_none(kind: LearnedKind) -> None:
    planned = kind.reference(workload(kind))
    assert bool(planned.artifact) != bool(planned.why_not)
    assert PlannedPolicy.unpack(planned.pack()) == planned
    if planned.artifact:
        assert load(planned.artifact).policy is not None


def trained(kind: LearnedKind, *, broken_off: bool = False, champion: bytes | None = None) -> Training:
    """The example's training; ``broken_off``: resumed from the first checkpoint that there is."""
    example = EXAMPLES[kind.name]()
    request = Request(example.algorithm, example.budget, seed=2)

    def make(checkpoint: bytes | None = None) -> Training:
        return Training(kind.trainer(workload(kind), request, champion), checkpoint)

    training, before = make(), 0.0
    while not training.done:
        training.advance()
        assert before <= training.progress <= 1.0
        assert training.live["phase"]
        before = training.progress
        selection = b"" if training.done else training.checkpoint()
        if broken_off and selection:
            broken_off = False
            training.close()
            training = make(selection)
            assert training.progress == pytest.approx(before)
    return training


@cache
def _trained(name: str) -> Training:
    return trained(learned_kind(name))


@cache
def _again(name: str) -> Training:
    """The same training, broken off, with the first one's agent as champion."""
    return trained(learned_kind(name), broken_off=True, champion=_trained(name).result().artifact)


@pytest.mark.parametrize("broken_off", [False, True])
def test_a_training_ends_in_an_artifact_and_a_verdict(kind: LearnedKind, broken_off: bool) -> None:
    training = _again(kind.name) if broken_off else _trained(kind.name)
    result = training.result()
    assert (training.progress, training.live["phase"]) == (1.0, "done")
    assert load(result.artifact).kind == kind.name
    judged = {"algorithm", "seed", "return", "terms", "heuristics", "best_heuristic", "promoted", "reason"}
    assert judged <= set(result.report)
    assert result.report["best_heuristic"] in result.report["heuristics"]
    assert result.report["return"]["low"] <= result.report["return"]["mean"] <= result.report["return"]["high"]


def test_a_champion_is_not_replaced_by_its_equal(kind: LearnedKind) -> None:
    first = _trained(kind.name).result()
    again = _again(kind.name).result()
    assert again.artifact == first.artifact
    assert not again.report["promoted"]
    assert ("champion" in again.report["reason"]) >= first.report["promoted"]


@pytest.mark.slow
def test_an_evaluation_plays_what_the_kind_gives(kind: LearnedKind) -> None:
    problem, result = kind.evaluation(workload(kind), HoldOut(share=0.34), 0)
    assert {"of", "executions", "unseen", "names", "reason", "note"} == set(result)
    assert (result["executions"] > 0, result["reason"]) == (True, None)
    candidate = Candidate("first", (next(iter(problem.heuristics.values())),))
    settings = Settings(episodes=2, trials=0, demonstrations=2, level="L3")
    run = EvaluationRun(problem, [candidate], settings)
    while not run.done:
        run.advance()
    report = run.result().as_dict()
    assert report["kind"] == kind.name
    assert [level["level"] for level in report["levels"] if level["available"]] == ["train", "L0", "L1", "L2", "L3"]


def test_runs_that_were_not_there_score_nobody(kind: LearnedKind) -> None:
    assert kind.off_policy(workload(kind), kind.reference(workload(kind)).artifact, [])["reason"]
