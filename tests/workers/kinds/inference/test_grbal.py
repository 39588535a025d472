"""Meta-learning: what is learned adapts to a planted shift, is served as it was learned, and is judged as all are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.inference.dynamics import BATCHES, PARTS, PARTS_OF_INTERVAL, Dynamics, Transitions
from app.kinds.inference.heuristics import ALGORITHM, AdaptivePlanner
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from tests.workers.kinds.inference.systems import layout, service
from workers.inputs import Workload
from workers.kinds.inference.adaptation import AdaptiveTrainer
from workers.kinds.inference.kind import KIND
from workers.learning.training.driver import Training
from workers.learning.training.request import Request, Untrainable

pytestmark = pytest.mark.slow  # of a training to its end

RATE = (6.0, 3.0)
QUALITY = {"full_until": 0.3, "zero_at": 2.0}


def system(**changed: Any) -> tuple[Layout, ServiceModel]:
    """Two users, two variants, up to three servers; episodes of 30 s."""
    servers = [{"name": "cpu", "minimum": 1, "maximum": 3, "price_per_hour": 1, "startup_seconds": 2}]
    result = layout(
        2,
        2,
        servers,
        quality=QUALITY,
        batches=[1, 2, 4],
        control_seconds=4,
        episode_seconds=30,
        queue_limit=50,
        **changed,
    )
    seconds = np.array([[0.1, 0.16, 0.28], [0.25, 0.4, 0.7]])
    return result, service(result, seconds, RATE, spread=0.1)


def trainer(seed: int = 0, **changed: Any) -> AdaptiveTrainer:
    result, model = system(**changed)
    workload = Workload(result.spec, model.to_bytes())
    trainer = KIND.trainer(workload, Request(ALGORITHM, 10_000, seed), None)
    assert isinstance(trainer, AdaptiveTrainer)
    return trainer


@pytest.fixture(scope="module")
def trained() -> Any:
    """A training to its end, of two candidates, judged on few episodes."""
    adapting = trainer()
    adapting.problem.judged_episodes = 8  # type: ignore[attr-defined]
    training = Training(adapting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.kinds.inference.adaptation.SPREADS", (0.05, 0.5))
        while not training.done:
            training.advance()
    return training.result()


@pytest.fixture(scope="module")
def policy(trained: Any) -> AdaptivePlanner:
    policy = KIND.load(trained.artifact, system()[0].spec)
    assert isinstance(policy, AdaptivePlanner)
    return policy


def lately(layout: Layout, pace: float, rate: float, batches: int = BATCHES) -> Transitions:
    """The last batches, of all kinds in turn, took so much longer; requests came so much more often."""
    kinds = np.arange(BATCHES) % (len(layout.servers) * layout.shape[1] * layout.shape[2])
    known = np.arange(BATCHES) >= BATCHES - batches
    width = layout.spec.control_seconds / PARTS_OF_INTERVAL
    arrived = np.repeat(np.round(np.array(RATE) * rate * width)[:, None], PARTS, axis=1)
    return Transitions(
        np.where(known, kinds, -1)[None], np.where(known, pace, 1.0)[None], arrived[None].astype(np.int64)
    )


@pytest.mark.parametrize("pace", [0.7, 1.0, 1.8])
def test_one_step_finds_a_planted_pace(policy: AdaptivePlanner, pace: float) -> None:
    result, model = system()

    def after(batches: int) -> NDArray[np.float64]:
        """The logarithm of the pace that is expected."""
        predictions = policy.dynamics.predict(result, model.seconds(), lately(result, pace, 1.0, batches), 1)
        return np.asarray(np.log(predictions.seconds / model.seconds()))

    all_told, first, before = after(BATCHES), after(1), after(0)
    assert np.abs(all_told - np.log(pace)).max() < 0.2
    assert np.abs(first - before).mean() <= np.abs(all_told - before).mean() + 0.1  # one batch says less than sixteen


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_planted_load_is_foreseen(policy: AdaptivePlanner, rate: float) -> None:
    result, model = system()
    usual, planted = np.array(RATE), np.array(RATE) * rate
    outcome = policy.dynamics.predict(result, model.seconds(), lately(result, 1.0, rate), 1).rate[0]
    share = (outcome - usual) / (planted - usual)  # of a few requests in each part not all is believed
    assert (share > 0.3).all()
    assert (share < 1.3).all()


def test_of_a_run_that_has_only_begun_the_usual_load_is_expected(policy: AdaptivePlanner) -> None:
    result, model = system()
    rate = policy.dynamics.predict(result, model.seconds(), None, 1).rate[0]
    np.testing.assert_allclose(rate, RATE, rtol=0.25)


def test_without_a_step_nothing_is_adapted(policy: AdaptivePlanner) -> None:
    result, model = system()
    fixed = replace(policy.dynamics, steps=0)
    slow, fast = (fixed.predict(result, model.seconds(), lately(result, pace, 1.0), 1).seconds for pace in (0.5, 2.0))
    np.testing.assert_array_equal(slow, fast)


def test_runs_adapt_each_by_itself(policy: AdaptivePlanner) -> None:
    result, model = system()
    several = [lately(result, pace, rate) for pace, rate in ((0.7, 2.0), (1.6, 0.5), (1.0, 1.0))]
    together = Transitions(*(np.concatenate(parts) for parts in zip(*several, strict=True)))
    predictions = policy.dynamics.predict(result, model.seconds(), together, 3)
    for row, alone in enumerate(several):
        wanted = policy.dynamics.predict(result, model.seconds(), alone, 1)
        for part, own in zip(predictions, wanted, strict=True):
            np.testing.assert_allclose(part[row], own[0], rtol=1e-12)


def test_what_is_published_is_what_was_learned(trained: Any, policy: AdaptivePlanner) -> None:
    again = AdaptivePlanner.build(policy.config, policy.arrays)
    for name, array in policy.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert KIND.save(again, system()[0].spec) == trained.artifact
    assert Dynamics.build(policy.arrays).steps == 1


def test_its_choices_are_legal(policy: AdaptivePlanner) -> None:
    result, model = system()
    world = KIND.world(Workload(result.spec, model.to_bytes()), _conditions())
    world.reset()
    for _ in range(300):
        situation: Situation = world.situation
        action = policy.act(situation).action
        assert situation.view.mask[np.arange(8), action].all()
        world.step(action)


def _conditions() -> Any:
    from workers.inputs import Conditions

    return Conditions(8, 3)


def test_the_report_is_that_of_every_agent(trained: Any) -> None:
    report = trained.report
    assert report["algorithm"] == ALGORITHM
    assert set(report["heuristics"]) == set(KIND.baselines(Workload(system()[0].spec)))
    errors = report["config"]["errors"]
    assert errors["pace"]["adapted"] < 0.7 * errors["pace"]["unadapted"]
    assert errors["load"]["forecast"] < 0.9 * errors["load"]["usual"]
    assert report["environment_steps"] >= 10_000


def test_the_same_request_gives_the_same_agent() -> None:
    results = []
    for _ in range(2):
        adapting = trainer(1)
        adapting._budget = 1  # one world
        while not adapting.stages[0].advance():
            pass
        adapting.stages[1].advance()
        assert adapting._learner is not None
        results.append(adapting._learner.fit())
    for name, value in results[0].start.items():
        np.testing.assert_array_equal(results[1].start[name], value)


def test_each_user_can_not_have_its_own() -> None:
    with pytest.raises(Untrainable, match="policies must be 'one'"):
        trainer(policies="per_user")
