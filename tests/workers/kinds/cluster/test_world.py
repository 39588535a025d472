"""Played clusters: what is compiled is what is served, and learners are told what their weights are worth."""

from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pytest

from app.kinds.cluster.interference import Interference
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.policies import FACTORS, Network
from app.kinds.contract.policy import Policy
from app.policies.base import Arrays
from tests.contracts.learned_examples import documented
from workers.evaluation.arena import Bare, play
from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World
from workers.inputs import Conditions, Workload
from workers.kinds.cluster.kind import KIND
from workers.kinds.cluster.simulator.deciding import decided
from workers.kinds.cluster.simulator.kernels import THERE
from workers.kinds.cluster.simulator.stepping import observed
from workers.kinds.cluster.world.world import ClusterWorld

BUSY = 6.0


@cache
def workload() -> Workload:
    """The documented one, of two queues that age, over an hour and a half."""
    given = documented("cluster").workload
    spec = given.spec.model_copy(update={"episode_intervals": 90})
    given = replace(given, spec=spec)
    return replace(given, model=KIND.fit(given, 0).model)


def busy(
    batch: int = 4,
    purpose: Literal["learning", "evaluation"] = "evaluation",
    seed: int = 5,
    given: Workload | None = None,
) -> ClusterWorld:
    """Clusters to which ``BUSY`` times as many jobs come, as fast as is believed; each its own."""
    world = KIND.world(given or workload(), Conditions(batch, seed, purpose))
    world.disturbances.append(Crowding(seed))
    return world


class Crowding:
    """See ``Disturbance``."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def begin(self, world: World) -> None:
        world.reseed(self._seed)
        world.scale({"rate.jobs": np.full(world.variety, BUSY), "effect.seconds": np.zeros(world.variety)})

    def conditions(self, world: World) -> None:
        del world


def network(bias: float = 0.0) -> Network:
    """A network of no layers that gives the last factor so much more than the others."""
    width = len(KIND.layout(workload().spec).entries)
    arrays: Arrays = {
        "advantage.weight": np.zeros((len(FACTORS), width)),
        "advantage.bias": bias * np.arange(len(FACTORS)),
    }
    return Network.build(
        {"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False, "advice": None}, arrays
    )


def test_what_learners_see_is_what_the_service_sees() -> None:
    world, compared = busy(), 0
    world.reset()
    for _ in range(60):
        state = world._state
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            there = state.clusters.there[b, : state.clusters.counts[b, THERE]]
            coming = world.source.coming(state.drawn.begins + state.clusters.now)
            served = world.layout.observe(world.source.moment(state, b), float(coming[b]))
            for at, job in enumerate(there):
                seen = observed(world.rules, state.clusters, np.where(np.arange(4) == b, job, -1), coming)[b]
                np.testing.assert_allclose(seen, served[at], atol=1e-6)
                compared += 1
        world.step(np.zeros(4, np.int64))
    assert compared > 500


def test_gpus_are_given_as_the_served_rule_gives_them() -> None:
    world, same, compared = busy(), 0, 0
    world.reset()
    for _ in range(60):
        state = world._state
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            rule = world.layout.rules["soonest"](world.source.moment(state, b)).gpus
            own = decided(world.rules, state.clusters, b)
            assert own.sum() <= state.clusters.capacity[b].sum()
            same, compared = same + int((rule == own).all()), compared + 1
        world.step(np.zeros(4, np.int64))
    assert compared > 100
    assert same > 0.95 * compared  # apart from what a level leaves of a node


def test_the_pace_that_was_measured_is_a_jobs_own_whatever_neighbours_do_elsewhere() -> None:
    """In played clusters nobody slows anybody down, also where the domain model has measured that."""
    model = ClusterModel.from_bytes(workload().model)
    beside = Interference(np.ones((model.measured,) * 2), np.zeros((model.measured,) * 2), np.array([1.0, 0.1]))
    slowed = replace(workload(), model=replace(model, interference=beside).to_bytes())
    plain, other = busy(), busy(given=slowed)
    plain.reset(), other.reset()
    for _ in range(60):
        one, same = (world.source.moment(world._state, 0) for world in (plain, other))
        asked = one.jobs.asked[:, None]
        np.testing.assert_array_equal(one.outlook.seconds_left(asked), same.outlook.seconds_left(asked))
        plain.step(np.zeros(4, np.int64)), other.step(np.zeros(4, np.int64))


def test_weights_that_change_nothing_are_worth_nothing() -> None:
    world = busy(purpose="learning")
    world.reset()
    assert all((world.step(np.zeros(4, np.int64)).reward == 0).all() for _ in range(world.steps))


def test_learners_are_paid_the_difference_to_the_rule() -> None:
    random, other, own = np.random.default_rng(0), busy(), busy(purpose="learning")
    own.reset(), other.reset()
    pay, paid, plain = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(own.steps):
        pay += own.step(random.integers(0, len(FACTORS), 4)).reward
        paid += own.paid
        other.step(np.zeros(4, np.int64))
        plain += other.paid
    np.testing.assert_allclose(pay, 100 * (paid - plain), rtol=1e-3, atol=1e-3)
    assert np.abs(pay).max() > 0.1


def test_an_agent_that_has_learned_nothing_is_the_rule() -> None:
    both: list[Policy] = [network(), KIND.baselines(workload())["soonest"]]
    returns = [play(busy(), Level.TRAIN, 5, Bare(one)).returns for one in both]
    np.testing.assert_array_equal(returns[0], returns[1])


def test_weights_that_all_jobs_share_change_nothing() -> None:
    heavy = play(busy(), Level.TRAIN, 5, Bare(network(1.0))).returns
    np.testing.assert_allclose(heavy, play(busy(), Level.TRAIN, 5, Bare(network())).returns)


@pytest.mark.parametrize("name", ["soonest", "fifo", "priority"])
def test_a_rule_answers_where_it_watches(name: str) -> None:
    policy: Policy = KIND.baselines(workload())[name]
    scores = play(busy(2), Level.SEEDS, 1, Bare(policy))
    assert (scores.returns < 0).all()
    assert scores.outcomes[:, 1].sum() > 0


def test_rules_differ() -> None:
    rules = KIND.baselines(workload())
    found = {name: float(play(busy(), Level.TRAIN, 5, Bare(rule)).returns.mean()) for name, rule in rules.items()}
    assert len({round(value, 6) for value in found.values()}) > 5
    assert found["soonest"] > found["fifo"]
