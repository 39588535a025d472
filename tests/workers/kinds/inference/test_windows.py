"""Windows of what runs reported: what is learned from, what is judged on, and how much slower batches were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.policies.network import NetworkPolicy
from tests.workers.kinds.inference.systems import layout, service
from workers.estimators.base import TooLittleData
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level, estimate
from workers.inputs import Conditions, LoggedRun, Workload
from workers.kinds.contract import Online
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.windows import Stretch, Window, rebuilt, stretch
from workers.learning.execution import base as blob
from workers.learning.training.request import Bracket, Entry, Request
from workers.learning.training.trial import NO_PLAN, Trial, learn_window

SECONDS = 300.0
SLOWER = 1.3


def run(on: Layout, model: ServiceModel, seed: int, slower: float = SLOWER) -> LoggedRun:
    """Reports of every second from 1,000 s after the run's beginning on, of two requests a second and some batches."""
    random = np.random.default_rng(seed)
    reports: list[dict[str, Any]] = []
    for second in range(int(SECONDS)):
        at = 1_000.0 + second
        arrived = [{"user": on.users[i % len(on.users)], "at": at + 0.3 * i} for i in range(2)]
        size = int(random.integers(len(on.batches)))
        seconds = float(np.exp(model.log_seconds[:, 0, 0, size].mean())) * slower
        ended = {"server": f"{on.servers[0]}-0", "at": at + 0.5, "variant": on.variants[0]}
        finished = [{**ended, "batch": int(on.batches[size]), "seconds": seconds}]
        reports.append({"at": at + 1, "arrived": arrived, "finished": finished})
    return LoggedRun(reports, {})


def policy(on: Layout) -> NetworkPolicy:
    """It prefers the last action that is legal."""
    arrays: dict[str, NDArray[Any]] = {
        "advantage.weight": np.zeros((on.actions, len(on.entries)), np.float32),
        "advantage.bias": np.arange(on.actions, dtype=np.float32),
    }
    return NetworkPolicy.build({"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False}, arrays)


@pytest.fixture
def fitted() -> tuple[Layout, ServiceModel]:
    result = layout(users=2, variants=2, batches=[1, 4], episode_seconds=60)
    return result, service(result, np.array([[0.02, 0.05], [0.05, 0.12]]), spread=0.1)


def test_the_kind_can_go_on_learning() -> None:
    assert isinstance(KIND, Online)


def test_a_stretch_is_what_a_run_reported(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    result = stretch(on, run(on, model, 0))
    assert (result.since, result.until) == (1_000.0, 1_300.0)
    assert sum(map(len, result.times)) == 600
    assert len(result.batches.seconds) == 300


def test_nothing_that_is_judged_on_is_learned_from(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    window = rebuilt(on, model, [stretch(on, run(on, model, seed)) for seed in range(2)])
    spans = {
        name: np.stack([np.asarray(log.begins), np.asarray(log.begins) + window.episode_seconds], axis=1)
        for name, log in (("learning", window.learning), ("judged", window.judged))
    }
    apart = (spans["learning"][:, None, 1] <= spans["judged"][None, :, 0] + 1e-9) | (
        spans["judged"][None, :, 1] <= spans["learning"][:, None, 0] + 1e-9
    )
    assert apart.all()
    requests = np.sort(np.concatenate(window.learning.times))
    for begin, end in np.concatenate([*spans.values()]):
        assert np.searchsorted(requests, end) > np.searchsorted(requests, begin)


def test_judged_episodes_have_nothing_in_common(fitted: tuple[Layout, ServiceModel]) -> None:
    """Two runs, of which one is shorter: eight of the longest, fewer of the other, none of one that is too short."""
    on, model = fitted
    whole = stretch(on, run(on, model, 0))
    shorter = [
        Stretch([own[own < 1_000 + until] for own in whole.times], 1_000.0, 1_000.0 + until, whole.batches)
        for until in (150.0, 30.0)
    ]
    window = rebuilt(on, model, [whole, *shorter])
    begins = np.asarray(window.judged.begins)
    assert len(begins) == 8 + 3
    assert (np.diff(begins) >= 2.5 * window.episode_seconds - 1e-9).all()
    assert window.episode_seconds == pytest.approx(290 / 21.5)


def test_judged_episodes_of_one_beginning_are_one_cluster(fitted: tuple[Layout, ServiceModel]) -> None:
    """Sixteen of each, and a verdict counts the beginnings."""
    on, model = fitted
    workload = Workload(on.spec, model.to_bytes())
    window = KIND.window(workload, [run(on, model, seed) for seed in range(2)])
    world = KIND.world(workload, Conditions(128, 1, options={"window": window}))
    scores = play(world, Level.SEEDS, 1, Bare(next(iter(KIND.baselines(workload).values()))))
    assert scores.clusters is not None
    assert np.bincount(scores.clusters).tolist() == [8] * 16
    assert set(world.load.origin) == set(np.asarray(Window.from_bytes(window).judged.begins))
    problem = KIND.online(workload, Request("online", 2_000, 0, look=3), window)
    artifact = KIND.save(policy(on), on.spec)
    report = problem.judge(artifact, NO_PLAN, None, 0.01)
    assert report["confidence"] == pytest.approx(1 - 0.05 / 12)
    returns = play(
        KIND.world(workload, Conditions(128, 3, options={"window": window})), Level.SEEDS, 3, Bare(policy(on))
    )
    result = estimate(returns.returns.astype(np.float64), returns.clusters)
    assert result.freedom == pytest.approx(15)
    assert report["return"] == pytest.approx(result.interval(report["confidence"]).as_dict())


def test_windows_of_a_log_don_t_overlap() -> None:
    """Half an hour has 29 minutes beside one in which the last begins."""
    log = RecordedArrivals([np.arange(1_800.0)], 0.0, 1_740.0)
    count = log.apart(60.0)
    begins, _ = log.at((np.arange(count) + 0.5) / count)
    assert count == 29
    assert (np.diff(begins) >= 60 - 1e-9).all()
    assert (begins[0], begins[-1]) == (30.0, 1_710.0)


def test_what_was_slower_is_found(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    window = rebuilt(on, model, [stretch(on, run(on, model, 0))])
    assert window.slower[0, 0] == pytest.approx(np.log(SLOWER), abs=0.02)
    assert (window.slower[:, 1:] > 0.2).all()  # the others were not measured, and share what slows all of them down
    assert window.adapt(model).seconds()[0, 0] == pytest.approx(model.seconds()[0, 0] * SLOWER, rel=0.02)


def test_it_is_the_same_after_a_trip_through_bytes(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    window = rebuilt(on, model, [stretch(on, run(on, model, 0))])
    again = Window.from_bytes(window.to_bytes())
    assert (again.slower == window.slower).all()
    assert again.episode_seconds == window.episode_seconds
    for log, other in ((window.learning, again.learning), (window.judged, again.judged)):
        assert (log.first, log.last) == (other.first, other.last)
        assert all((a == b).all() for a, b in zip(log.times, other.times, strict=True))
        assert (log.begins == other.begins).all()  # type: ignore[union-attr]
        assert (log.late == other.late).all()  # type: ignore[union-attr]


def test_too_little_is_said_with_its_terms(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    with pytest.raises(TooLittleData, match=r"needs 50 requests in the window, .*; has 0 and 0 s"):
        rebuilt(on, model, [])
    whole = stretch(on, run(on, model, 0))
    short = Stretch([own[own < 1_040] for own in whole.times], whole.since, 1_040.0, whole.batches)
    with pytest.raises(TooLittleData, match="and 40 s") as caught:
        rebuilt(on, model, [short])
    assert caught.value.pointer == "/online/window_seconds"


def test_worlds_of_a_window_follow_it_and_policies_go_by_the_model(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    workload = Workload(on.spec, model.to_bytes())
    options = {"window": KIND.window(workload, [run(on, model, 0)])}
    purposes: tuple[Literal["learning", "evaluation"], ...] = ("learning", "evaluation")
    for purpose in purposes:
        world = KIND.world(workload, Conditions(4, 1, purpose, options=options))
        world.reset()
        assert world.projector.seconds == pytest.approx(model.seconds())
        assert np.exp(world.constants.log_seconds - model.log_seconds)[:, 0, 0] == pytest.approx(SLOWER, rel=0.02)
        assert world.state.rate.sum(axis=1) == pytest.approx(2.0, abs=0.5)


def test_episodes_know_the_rates_of_late() -> None:
    times = [np.arange(0.25, 100.0, 0.5), np.arange(0.125, 100.0, 0.25)]
    log = RecordedArrivals(times, 0.0, 90.0).beginning(np.array([10.0, 50.0]), 10.0)
    assert np.asarray(log.late) == pytest.approx(np.array([[2.0, 4.0]] * 2), rel=0.02)
    begins, late = log.at(np.array([0.0, 0.49, 0.5, 1.0]))
    assert begins.tolist() == [10.0, 10.0, 50.0, 50.0]
    assert np.asarray(late).shape == (4, 2)


def test_a_window_begins_with_what_was_exported_of_the_last_and_an_average_of_its_own(
    fitted: tuple[Layout, ServiceModel],
) -> None:
    on, model = fitted
    workload, request = Workload(on.spec, model.to_bytes()), Request("online", 2_000, 0)
    problem = KIND.online(workload, request, KIND.window(workload, [run(on, model, 0)]))
    begun: list[bool] = []
    first = learn_window(problem, request, 0, b"", lambda trial: begun.append(trial.imitated is not None))
    assert set(begun) == {False, True}
    trial = Trial(problem, replace(request, algorithm="ppo"), Entry("ppo", 0), Bracket(1))
    trial.runner.agent.restore(*blob.unpack(first.learner))
    assert trial.artifact == first.artifact
    assert trial.runner.agent.learned.values["averaging"] == 0


@pytest.mark.slow
def test_a_learner_that_a_window_made_worse_goes_on_from_where_it_was(
    fitted: tuple[Layout, ServiceModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    on, model = fitted
    workload, request = Workload(on.spec, model.to_bytes()), Request("online", 2_000, 0)
    problem = KIND.online(workload, request, KIND.window(workload, [run(on, model, 0)]))
    scores = iter([0.0, -1.0, -2.0, -2.0, -1.0, 0.0, -2.0, -2.0])
    monkeypatch.setattr(problem, "score", lambda _: next(scores))
    worse = learn_window(problem, request, 0, b"", lambda _: None)
    assert worse.report["validation"] == {"before": 0.0, "after": -1.0}
    better = learn_window(problem, request, 1, worse.learner, lambda _: None)
    assert better.report["validation"] == {"before": -1.0, "after": 0.0}
    assert worse.artifact != better.artifact


def test_what_is_learned_from_is_what_learners_are_compared_on(fitted: tuple[Layout, ServiceModel]) -> None:
    on, model = fitted
    workload = Workload(on.spec, model.to_bytes())
    options = {"window": KIND.window(workload, [run(on, model, 0)])}
    window = Window.from_bytes(options["window"])
    for more, log in ((options, window.judged), ({**options, "part": "learning"}, window.learning)):
        world = KIND.world(workload, Conditions(8, 1, options=more))
        world.reset()
        assert set(world.load.origin) <= set(np.asarray(log.begins))


@pytest.mark.parametrize("steps", [2_000, 100_000, 2_000_000])
def test_each_environment_of_a_training_gets_through_an_episode(
    fitted: tuple[Layout, ServiceModel], steps: int
) -> None:
    on, model = fitted
    problem = KIND.training(Workload(on.spec, model.to_bytes()), Request("ppo", steps))
    trial = Trial(problem, Request("ppo", steps), Entry("ppo", 0), Bracket(1))
    runner: Any = trial.runner
    batch = runner.environment.batch
    assert batch == 16 or steps / batch >= problem.length
    assert batch <= 512
    trial.close()
