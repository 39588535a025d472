"""The fairness of an episode: Jain's index of the jobs' slow-downs, which is a matter of who gets the GPUs."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.placement import Situation, TargetAllocation, in_order
from app.kinds.cluster.spec import ClusterSpec
from tests.pollux.tables import moment
from workers.evaluation.wrappers import World
from workers.inputs import Conditions
from workers.kinds.cluster.episodes import TERMS, Episodes, HiddenJobs, usual
from workers.kinds.cluster.kernels import Clusters, Rules
from workers.kinds.cluster.world import ClusterWorld, empty

GPUS, INTERVAL, INTERVALS = 4, 60.0, 20
FAIRNESS = TERMS.index("fairness")
Share = Callable[[int], list[int]]


class Planted:
    """See ``Source``: jobs of two users, as many of each, which come at once; the seconds of each on all four GPUs.

    On fewer GPUs a job takes so much longer, and restarts cost nothing.
    """

    def __init__(self, alone: Sequence[float]) -> None:
        self.alone, jobs = np.array(alone), len(alone)
        self.applications: Sequence[str] = ["job"]
        self.rules = Rules(
            sizes=np.arange(GPUS + 1),
            rate=np.tile(np.arange(GPUS + 1.0) / GPUS, (jobs, 1))[:, :, None],
            ends=self.alone[:, None],
            epochs=np.ones(jobs, np.int64),
            most=np.full(jobs, GPUS),
            interval=INTERVAL,
            restart=0.0,
            growth=0,
            weight=np.ones(2),
            ageing=np.full(2, np.inf),
            patience=np.inf,
        )

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, HiddenJobs]:
        del model, random
        shape = len(load), len(self.alone)
        result = empty(np.full(shape, INTERVAL), np.array([GPUS]))
        result.application[:], result.queue[:] = np.arange(shape[1]), np.arange(shape[1]) % 2
        zeros, alone = np.zeros(shape), np.tile(self.alone, (len(load), 1))
        none = np.full(shape, -1)
        return result, HiddenJobs(zeros, alone, alone, result.application, zeros[:, 0], zeros + np.nan, none)

    def coming(self, second_of_day: Floats) -> Floats:
        return np.zeros_like(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        return moment(self.rules, episodes, b)

    def ahead(self, drawn: HiddenJobs, part: Floats) -> None:
        return None

    def lacking(self, application: Integers, part: Floats) -> Floats:
        return usual(part)


class AsBelieved:
    """See ``Disturbance``: all steps last as long as the tables say."""

    def begin(self, world: World) -> None:
        world.scale({"effect.seconds": np.zeros(world.variety)})

    def conditions(self, world: World) -> None:
        del world


def unfair(alone: Sequence[float], share: Share, intervals: int = INTERVALS) -> list[float]:
    """What each interval costs for want of fairness, where ``share`` says how many GPUs each of J jobs has."""
    spec = {
        "name": "two-users",
        "kind": "cluster",
        "nodes": [{"name": "n", "count": 1, "gpus": GPUS}],
        "queues": [{"name": "first"}, {"name": "second"}],
        "restart_seconds": 0,
        "interval_seconds": INTERVAL,
        "episode_intervals": intervals,
    }
    world = ClusterWorld(Layout(ClusterSpec.model_validate(spec)), Planted(alone), Conditions(2, 0))

    def rule(situation: Situation) -> TargetAllocation:
        return in_order(np.array(share(len(situation.jobs.requested)), np.int64))

    world.disturbances.append(AsBelieved())
    world._answering = lambda coming: rule
    world.reset()
    unfair = []
    for _ in range(intervals):
        world.step(np.zeros(2, np.int64))
        unfair.append(float(world.terms[0, FAIRNESS]))
    return unfair


def index(slowdowns: Sequence[float]) -> float:
    """Jain's index."""
    x = np.array(slowdowns)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def test_a_starved_job_beside_one_that_is_served_is_unfair() -> None:
    """The one has all GPUs and goes on at full speed; the other, as long, waits for the whole episode."""
    waited = INTERVAL * INTERVALS / 1_200.0
    starved = unfair([1_200.0, 1_200.0], lambda jobs: [GPUS, 0][:jobs])
    assert sum(starved) == pytest.approx(1.0 - index([1.0, 1.0 + waited]))
    assert min(starved) > 0


def test_equal_shares_of_two_users_are_fair() -> None:
    """Each of four jobs has a GPU, and takes four times as long as alone."""
    assert np.abs(unfair([600.0] * 4, lambda jobs: [1] * jobs)).max() < 1e-9


def test_a_user_whose_jobs_get_less_is_worse_off() -> None:
    def total(each: list[int]) -> float:
        return sum(unfair([600.0] * 4, lambda jobs: each[:jobs]))

    assert total([1, 1, 1, 1]) < total([2, 0, 2, 0]) < total([4, 0, 0, 0])


def test_a_job_that_waits_and_is_then_served_counts_by_when_it_ends() -> None:
    """One after the other: of two jobs of 300 s the second ends after 600 s, at twice the time that it takes alone."""
    assert sum(unfair([300.0, 300.0], lambda jobs: [GPUS, 0][:jobs])) == pytest.approx(1.0 - index([1.0, 2.0]))


def test_short_and_long_jobs_are_fair_where_both_take_as_many_times_as_long() -> None:
    assert sum(unfair([120.0, 2_400.0], lambda jobs: [2, 2][:jobs])) < sum(
        unfair([120.0, 2_400.0], lambda jobs: [1, 3] if jobs == 2 else [GPUS])
    )
