"""Played clusters: what is compiled is what is served, and learners are told what their weights are worth."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pytest

from app.kinds.cluster.arrivals import DATA
from app.kinds.cluster.lookahead import UNLIMITED
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import Beliefs
from app.kinds.cluster.placement import slowdowns
from app.kinds.cluster.policies import ENTRIES, FACTORS, Network
from app.kinds.cluster.spec import Convergence
from app.kinds.cluster.throughput import Interference
from app.kinds.contract.policy import Policy
from app.policies.base import Arrays
from tests.app.kinds.cluster.test_members import MEMBER
from tests.contracts.learned_examples import documented
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import World
from workers.inputs import Conditions, Workload
from workers.kinds.cluster.episodes import TERMS, courses, lacking, remaining_share, usual
from workers.kinds.cluster.fit import Curve, classes, fit_class
from workers.kinds.cluster.kernels import THERE, allocate_gpus, observe_jobs
from workers.kinds.cluster.kind import KIND
from workers.kinds.cluster.world import ClusterWorld

BUSY = 6.0
LEFT, PLACE = ENTRIES.index("left"), ENTRIES.index("place")


@cache
def workload() -> Workload:
    """The documented one, of two queues that age, over an hour and a half."""
    workload = documented("cluster").workload
    spec = workload.spec.model_copy(update={"episode_intervals": 90})
    workload = replace(workload, spec=spec)
    return replace(workload, model=KIND.fit(workload, 0).model)


def busy(
    batch: int = 4,
    purpose: Literal["learning", "evaluation"] = "evaluation",
    seed: int = 5,
    values: Workload | None = None,
) -> ClusterWorld:
    """Clusters to which ``BUSY`` times as many jobs come, as fast as is believed; each its own."""
    world = KIND.world(values or workload(), Conditions(batch, seed, purpose))
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
    return Network.build({"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False}, arrays)


@cache
def burdened() -> Workload:
    """The same where jobs slow one another down, count by their data, and converge, and some are a member's runs."""
    values, names = workload(), ("bert", "resnet50")
    model = ClusterModel.from_bytes(values.model)
    pairs = Interference(np.log([[1.3, 1.8], [1.5, 1.2]]), np.zeros((2, 2)), np.array([0.2, 0.1]))
    grid = np.arange(1.0, 31.0)
    each = [Curve(grid, 1 - np.exp(-grid / scale) / 2) for scale in np.linspace(3, 9, 10)]
    curves = classes([model.positions[name] for name in names], [True, True], [fit_class(each, 0)] * 2)
    jobs = model.arrivals.jobs.copy()
    jobs[:, DATA] = np.random.default_rng(0).uniform(1, 100, len(jobs))
    model = replace(model, interference=pairs, curves=curves, arrivals=model.arrivals._replace(jobs=jobs))
    converging = Convergence(tolerance=0.1, window_seconds=300.0)
    return replace(
        values,
        spec=values.spec.model_copy(update={"data_power": 1.0, "convergence": converging}),
        model=model.to_bytes(),
        members={"bert": MEMBER, "other": MEMBER._replace(amounts=MEMBER.amounts + 8)},
    )


@pytest.mark.parametrize("fit", [workload, burdened])
def test_what_learners_see_is_what_the_service_sees(fit: Callable[[], Workload]) -> None:
    world, compared = busy(values=fit()), 0
    world.reset()
    for _ in range(60):
        state = world._state
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            there = state.clusters.there[b, : state.clusters.counts[b, THERE]]
            coming = world.source.coming(state.drawn.begins + state.clusters.now)
            served = world.layout.observe(world.source.moment(state, b), float(coming[b]))
            for at, job in enumerate(there):
                observed = observe_jobs(world.rules, state.clusters, np.where(np.arange(4) == b, job, -1), coming)[b]
                alike = served[np.abs(served[:, LEFT] - served[at, LEFT]) < 1e-9, PLACE]  # who is next of them is open
                assert np.abs(alike - observed[PLACE]).min() < 1e-6
                np.testing.assert_allclose(np.delete(observed, PLACE), np.delete(served[at], PLACE), atol=1e-6)
                compared += 1
        world.step(np.zeros(4, np.int64))
    assert compared > 500


@pytest.mark.parametrize("fit", [workload, burdened])
def test_gpus_are_given_as_the_served_rule_gives_them(fit: Callable[[], Workload]) -> None:
    world, same, compared = busy(values=fit()), 0, 0
    world.reset()
    for _ in range(60):
        state = world._state
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            rule = world.layout.rules["soonest"](world.source.moment(state, b)).gpus
            own = allocate_gpus(world.rules, state.clusters, b)
            assert own.sum() <= state.clusters.capacity[b].sum()
            same, compared = same + int((rule == own).all()), compared + 1
        world.step(np.zeros(4, np.int64))
    assert compared > 100
    assert same > 0.95 * compared  # apart from what a level leaves of a node


def test_neighbours_slow_jobs_down_and_their_pace_tells_what_they_would_do_alone() -> None:
    beliefs = Beliefs(ClusterModel.from_bytes(burdened().model), {"bert": MEMBER})
    world = busy(values=burdened())
    names, shared = np.array([*beliefs.applications, ""], object), 0
    world.reset()
    for _ in range(60):
        clusters = world._state.clusters
        done, restarts = clusters.done.copy(), clusters.restarts.copy()
        world.step(np.zeros(4, np.int64))
        clusters = world._state.clusters
        for b in range(4):
            jobs = np.flatnonzero((clusters.gpus[b] > 0) & (restarts[b] == clusters.restarts[b]))
            there = np.flatnonzero(clusters.gpus[b] > 0)
            if (clusters.completed[b] > clusters.now[b] - clusters.time[b] - 60).any():
                continue  # who has left was somebody's neighbour
            neighbours = beliefs.neighbours(names[world._state.drawn.believed[b, there]])
            assert neighbours is not None
            slower = dict(zip(there.tolist(), slowdowns(neighbours, clusters.held[b, there]).tolist(), strict=True))
            for job in jobs.tolist():
                rate = world.rules.rate[clusters.application[b, job], clusters.gpus[b, job], 0]
                assert clusters.done[b, job] - done[b, job] == pytest.approx(60 * rate / slower[job], rel=1e-6)
                assert world._state.pace[b, job] == pytest.approx(rate, rel=1e-6)
                shared += slower[job] > 1.1
    assert shared > 20


def test_jobs_of_a_member_last_as_its_runs_do() -> None:
    world = busy(values=burdened())
    world.reset()
    state, member = world._state, len(world.source.applications) - 1  # after those that were measured
    own = (state.drawn.believed == member) & (state.drawn.steps > 0)
    assert own.sum() > 5
    assert (state.drawn.steps[own] == MEMBER.iterations).all()
    rates = world.rules.rate[np.unique(state.clusters.application[own]), :, 0]
    np.testing.assert_allclose(rates[0, MEMBER.amounts], 1 / MEMBER.seconds)
    assert "other" not in world.source.applications  # it takes more GPUs than there are


def test_a_training_goes_on_with_another_episode_where_members_have_gone() -> None:
    world, other = busy(values=burdened()), busy(values=replace(burdened(), members={}, model=workload().model))
    world.reset(), other.reset()
    other.set_state(world.get_state())
    assert len(other.rules.epochs) < len(world.rules.epochs)
    assert other._state.clusters.application.max() < len(other.rules.epochs)
    other.step(np.zeros(4, np.int64))


def test_jobs_that_have_little_left_to_gain_are_halved_and_others_have_what_they_free() -> None:
    plain = replace(burdened(), spec=burdened().spec.model_copy(update={"convergence": None}))
    worlds, allocation = [busy(values=values) for values in (burdened(), plain)], np.zeros(2)
    limited = 0
    for world in worlds:
        world.reset()
    for _ in range(60):
        for at, world in enumerate(worlds):
            world.step(np.zeros(4, np.int64))
            clusters, drawn = world._state.clusters, world._state.drawn
            late = 1 - remaining_share(clusters, drawn) > 0.7
            allocation[at] += clusters.gpus[late & (drawn.steps > 0)].sum()
            assert (clusters.gpus <= np.maximum(clusters.ceiling, clusters.gpus * (clusters.restarting == 0))).all()
            limited += int((clusters.ceiling < UNLIMITED).sum())
    assert limited > 20
    assert allocation[0] < 0.95 * allocation[1]


def test_learners_and_the_rule_they_are_held_against_converge_alike() -> None:
    world = busy(purpose="learning", values=burdened())
    world.reset()
    assert all((world.step(np.zeros(4, np.int64)).reward == 0).all() for _ in range(world.steps))


def test_accuracy_is_what_jobs_lack_of_their_last_metric_and_it_is_paid_for() -> None:
    spec = workload().spec
    heavy = spec.model_copy(update={"weights": spec.weights.model_copy(update={"accuracy": 3.0})})
    plain, other = busy(), busy(values=replace(workload(), spec=heavy))
    plain.reset(), other.reset()
    total, lacked, column = 0.0, 0.0, TERMS.index("accuracy")
    for _ in range(plain.steps - 1):  # after the last another episode has begun
        plain.step(np.zeros(4, np.int64)), other.step(np.zeros(4, np.int64))
        np.testing.assert_allclose(plain.paid - other.paid, 3 * plain.terms[:, column], rtol=1e-5, atol=1e-7)
        total += float(plain.terms[0, column])
        state = plain._state
        rest = remaining_share(state.clusters, state.drawn)[0]
        worth = plain.layout.queue_weights[state.clusters.queue[0]]
        lacks = plain.source.lacking(state.clusters.application, 1 - rest[None])[0]
        lacked += float((worth * lacks)[rest > 0].sum()) / (state.drawn.steps[0] > 0).sum() / plain.steps
    assert 0 < total == pytest.approx(lacked, rel=1e-5)


def test_what_jobs_lack_falls_as_their_curves_rise() -> None:
    model = ClusterModel.from_bytes(burdened().model)
    table, none = courses(model, ("bert", "")), np.zeros(2, np.int64)
    assert (np.diff(table) <= 1e-9).all()
    np.testing.assert_allclose(table[:, [0, -1]], [[1, 0], [1, 0]], atol=1e-9)
    np.testing.assert_allclose(lacking(table, none + 1, np.array([0.5, 1.0])), usual(np.array([0.5, 1.0])), atol=1e-3)
    assert abs(lacking(table, none, np.array([0.25, 0.5])) - usual(np.array([0.25, 0.5]))).max() > 0.01


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
    values = {name: float(play(busy(2), Level.TRAIN, 5, Bare(rule)).returns.mean()) for name, rule in rules.items()}
    assert len({round(value, 6) for value in values.values()}) > 5
    assert values["soonest"] > values["fifo"]
