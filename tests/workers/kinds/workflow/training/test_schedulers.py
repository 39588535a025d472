"""Schedulers in simulation: the same in NumPy and compiled, steps in lock-step, search, gate, training."""

from pathlib import Path

import numpy as np
import pytest

from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies.artifact import SHIPPED, Scheduler, load
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.policies.scheduling import view_of
from app.kinds.workflow.scheduling.dispatch import EASY, NONE, RLS
from app.kinds.workflow.scheduling.observation import STATE_WIDTH
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace, independent
from workers.kinds.workflow.simulator.agents import parameters, play_agent
from workers.kinds.workflow.simulator.environment import Episode, WorkflowSimulator
from workers.kinds.workflow.simulator.pool import NOW, QUEUED, Play, advance, choose, opened
from workers.kinds.workflow.training.gate import NEVER, Forks, calibrated, fitted
from workers.kinds.workflow.training.judge import compiled, measured, point_of
from workers.kinds.workflow.training.objective import charged, objective_weights, rates
from workers.kinds.workflow.training.pretrain import joined, narrow
from workers.kinds.workflow.training.proximal import flat, named
from workers.kinds.workflow.training.search import Search, Settings
from workers.kinds.workflow.training.sequences import WHOLE, Sequence, Source, drawn, loss, piece
from workers.kinds.workflow.training.train import SchedulerTrainer, network, scorer_of, training
from workers.kinds.workflow.training.widths import JOINT, WIDE
from workers.learning.training.driver import Training
from workers.learning.training.request import Untrainable

MACHINE = 16
SHIPPED_AGENT = compiled(load(SHIPPED.read_bytes()))
SJF, SAF = StrategyPolicy({"rule": "sjf"}), StrategyPolicy({"rule": "saf"})


def trace(seed: int, count: int = 60) -> Trace:
    """Jobs that crowd a machine of 16 processors, of three users who ask for more time than they need."""
    rng = np.random.default_rng(seed)
    runtime = np.exp(rng.uniform(1.0, 8.0, count)).round()
    return independent(
        np.cumsum(rng.exponential(150.0, count)).round(),
        runtime,
        (runtime * rng.uniform(1.0, 4.0, count)).round(),
        2 ** rng.integers(0, 5, count),
        rng.integers(-1, 3, count),
    )


def sequences(mechanism: int, count: int = 4, first: int = 0) -> list[Sequence]:
    return [Sequence(trace(first + seed), MACHINE, mechanism) for seed in range(count)]


def random_scorer(seed: int, *, advice: bool = True) -> ScorerPolicy:
    point = np.random.default_rng(seed).normal(0.0, 0.3, parameters(WIDE, JOINT))
    return scorer_of(point, advice=advice)


FAMILIES: list[Scheduler] = [
    SAF,
    random_scorer(0),
    PortfolioPolicy((SJF, random_scorer(1)), np.random.default_rng(2).normal(size=(2, STATE_WIDTH)), np.zeros(2)),
    InspectorPolicy(SAF, random_scorer(3, advice=False)),
]


def served(policy: Scheduler, sequence: Sequence) -> Play:
    """The sequence by the service's code: every pick in NumPy, from what stands in the play."""
    play, mechanism = opened(sequence.trace, MACHINE), sequence.mechanism
    while advance(play, mechanism, sequence.fill):
        queue = play.queue[: play.counts[QUEUED]]
        now = float(play.clock[NOW])
        task, view = view_of(mechanism, now, queue, play.tasks, play.pool, MACHINE, play.recent)
        picked = policy.pick(view).candidate
        choose(play, mechanism, sequence.fill, -1 if picked < 0 else int(task[picked]))
    return play


@pytest.mark.parametrize("mechanism", [NONE, RLS, EASY])
@pytest.mark.parametrize("policy", FAMILIES, ids=lambda policy: policy.name)
def test_simulators_play_what_is_served(policy: Scheduler, mechanism: int) -> None:
    for sequence in sequences(mechanism, 2):
        play, member = opened(sequence.trace, MACHINE), np.full(60, -1, np.int64)
        play_agent(play, compiled(policy), mechanism, sequence.fill, MACHINE, WHOLE, member)
        np.testing.assert_array_equal(play.begun, served(policy, sequence).begun)


def simulator(seed: int = 0, batch: int = 8) -> WorkflowSimulator:
    played = [*sequences(RLS, 3), *sequences(EASY, 3, first=3)]
    episodes = [Episode(s.trace, s.processors, s.mechanism, s.fill) for s in played]
    return WorkflowSimulator(episodes, batch, network(np.zeros(parameters(WIDE, JOINT))), seed, candidates=64)


def test_who_does_as_the_baseline_earns_nothing_on_any_arrivals() -> None:
    lanes = simulator()
    observation, mask = lanes.reset()
    returns, ended = np.zeros(8), []
    for _ in range(150):
        step = lanes.step(np.where(mask, observation[:, :, 0], -np.inf).argmax(axis=1))
        observation, mask = step.observation, step.mask
        returns += step.reward
        ended += returns[step.done].tolist()
        returns[step.done] = 0.0
    assert len(ended) >= 8
    np.testing.assert_allclose(ended, 0.0, atol=1e-4)


def test_a_return_is_the_gain_over_the_baseline() -> None:
    sequence = sequences(RLS, 1)[0]
    episode = Episode(sequence.trace, MACHINE, RLS, sequence.fill)
    base = network(np.zeros(parameters(WIDE, JOINT)))
    lanes, paid, done = WorkflowSimulator([episode], 1, base, 0, candidates=64), 0.0, False
    _, mask = lanes.reset()
    while not done:
        step = lanes.step(np.array([mask[0].sum() - 1]))
        mask, done, paid = step.mask, bool(step.done[0]), paid + float(step.reward[0])
    play = opened(sequence.trace, MACHINE)
    while advance(play, RLS, sequence.fill):
        choose(play, RLS, sequence.fill, int(play.queue[play.counts[QUEUED] - 1]))
    wait = (play.begun - sequence.trace.submit) / np.maximum(sequence.trace.runtime, 10.0)
    other, member = opened(sequence.trace, MACHINE), np.full(60, -1, np.int64)
    play_agent(other, base, RLS, sequence.fill, MACHINE, WHOLE, member)
    usual = (other.begun - sequence.trace.submit) / np.maximum(sequence.trace.runtime, 10.0)
    assert paid == pytest.approx(float((usual - wait).mean()), rel=1e-4)


def test_a_simulator_goes_on_from_its_state() -> None:
    first, second = simulator(1), simulator(1)
    _, mask = first.reset()
    for _ in range(30):
        mask = first.step(mask.argmax(axis=1)).mask
    second.set_state(first.get_state())
    for _ in range(60):
        ahead, again = first.step(mask.argmax(axis=1)), second.step(mask.argmax(axis=1))
        for one, other in zip(ahead, again, strict=True):
            np.testing.assert_array_equal(one, other)
        mask = ahead.mask


def test_joined_networks_are_each_under_its_own_mechanism() -> None:
    rng = np.random.default_rng(5)
    half = parameters(WIDE // 2, JOINT // 2)
    committed, reserving = rng.normal(0.0, 0.3, half), rng.normal(0.0, 0.3, half)
    both = network(joined(committed, reserving))
    for mechanism, alone in ((NONE, committed), (RLS, committed), (EASY, reserving)):
        played = sequences(mechanism, 2)
        np.testing.assert_allclose(measured(both, played), measured(narrow(alone), played), rtol=1e-12)


def test_parameters_go_to_arrays_and_back() -> None:
    point = np.random.default_rng(0).normal(size=parameters(WIDE, JOINT))
    np.testing.assert_array_equal(flat(named(point, WIDE, JOINT)), point)
    np.testing.assert_array_equal(point_of(scorer_of(point)), point)


def test_a_search_betters_a_network_that_was_spoilt() -> None:
    """Planted: a network that starts the longest first; the search has to find its way back."""
    spoilt = np.zeros(parameters(WIDE, JOINT))
    rng = np.random.default_rng(0)
    spoilt[: parameters(WIDE, JOINT) - 1] = rng.normal(0.0, 0.4, parameters(WIDE, JOINT) - 1)
    source = Source(trace(7, 200), MACHINE, whole=False)

    def draw(count: int) -> list[Sequence]:
        return [Sequence(drawn(source, 60, rng), MACHINE, RLS) for _ in range(count)]

    search = Search(network, draw, draw(12), spoilt, rng, Settings(4, 4, 0.15, 0.15))
    before = search.measured(search.best)
    for step in range(20):
        search.advance(step / 20)
    fresh = draw(40)
    gains = np.array([loss(s, network(spoilt)) - loss(s, network(search.best)) for s in fresh])
    assert search.ratio < 1.0
    assert search.measured(search.best).mean() < before.mean()
    assert gains.mean() > 1.645 * gains.std(ddof=1) / np.sqrt(len(gains))


def planted(rng: np.random.Generator, count: int) -> Forks:
    """The second member gains where the second entry of the state is high, and loses elsewhere; the third is noise."""
    states = rng.uniform(size=(count, STATE_WIDTH))
    states[:, 0] = 1.0
    second = 0.5 - states[:, 1] + rng.normal(0.0, 0.1, count)
    return Forks(states, np.stack((np.zeros(count), second, rng.normal(0.3, 0.1, count)), axis=1))


def test_a_gate_fires_both_ways_and_is_held_to_its_word() -> None:
    rng = np.random.default_rng(0)
    gate, fresh = fitted(planted(rng, 200), planted(rng, 200)), planted(rng, 400)
    losses = fresh.states @ gate.weights.T + gate.margin
    losses[:, 0] = 0.0
    asked = losses.argmin(axis=1)
    share = (asked == 1).mean()
    assert 0.2 < share < 0.9
    assert not (asked == 2).any()
    realised = fresh.losses[np.arange(400), asked]
    assert realised.mean() + 1.96 * realised.std() / 20 < 0.0


def test_a_member_that_only_promises_is_never_asked() -> None:
    rng = np.random.default_rng(1)
    margin, told = calibrated(-rng.uniform(size=100), rng.normal(0.2, 0.5, 100))
    assert (margin, told["fires"]) == (NEVER, 0.0)


def spec(**changed: object) -> Spec:
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1}
    return Spec.model_validate({"name": "w", "kind": "workflow", "nodes": [node], "backfilling": "rls", **changed})


def trainer(given: Training) -> SchedulerTrainer:
    assert isinstance(given.trainer, SchedulerTrainer)
    return given.trainer


def test_a_training_goes_on_from_its_checkpoint_and_ends_in_a_verdict() -> None:
    traces = (("a", trace(0, 300)),)
    first = training(spec(), traces, 0, 40_000)
    first.advance()
    assert 0.0 < first.progress < 0.2
    assert first.live["phase"] == "proximal"
    assert training(spec(), traces, 0, 40_000, first.checkpoint()).progress == 0.0  # PPO begins anew
    while trainer(first).search.steps < 1:
        first.advance()
    again = training(spec(), traces, 0, 40_000, first.checkpoint())
    assert (again.progress, again.live) == (first.progress, first.live)
    while not again.done:
        again.advance()
    result = again.result()
    report = result.report
    assert report["algorithm"] == load(result.artifact).name or report["algorithm"] in ("strategy", "scorer")
    margin = 0.01 * report["heuristics"][report["best_heuristic"]]["mean"]
    assert report["promoted"] == (report["advantage"]["low"] >= -margin and report["gain"]["low"] > margin)
    assert (report["incumbent"], report["equivalence_margin"]) == ("sjf", 0.01)
    assert report["best_heuristic"] in report["reason"]
    assert report["return"]["mean"] == -report["terms"]["slowdown"]["mean"]
    assert set(report["candidates"]) == {"scorer", "strategy", "portfolio", "inspector"}
    names = [one["name"] for one in report["pictures"]["schedules"]]
    assert names[:2] == ["agent", f"{report['best_heuristic']}+rls"]


def test_a_training_minds_what_the_workload_pays_for() -> None:
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0}
    own = spec(nodes=[node], weights={"slowdown": 0.0, "wait": 0.5, "cost": 1.0})
    whole = training(own, (("a", trace(0, 300)),), 0, 30_000)
    while not whole.done:
        whole.advance()
    report = whole.result().report
    assert report["return"]["mean"] == -report["terms"]["objective"]["mean"]
    assert min(rule["mean"] for rule in report["heuristics"].values()) >= 1.5  # the sum of the weights is the best


def test_what_is_charged_are_the_weighted_terms_and_their_weights() -> None:
    jobs = independent(
        np.array([0.0, 0.0]), np.array([3600.0, 3600.0]), np.full(2, 3600.0), np.array([16, 16]), np.full(2, -1)
    )
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0}
    weights = {"slowdown": 1.0, "wait": 10.0, "makespan": 100.0, "utilisation": 1_000.0, "cost": 10_000.0}
    objective = objective_weights(spec(nodes=[node], weights=weights))
    assert objective is not None
    first, second = (charged(objective, jobs, np.array([0.0, begun])) for begun in (3600.0, 7200.0))
    # slowdowns 1 and 2, waits 0 and 1 h, 2 h are the least, all of them busy, 2 h of the node are the work's price
    assert first == pytest.approx(11_111.0 + 0.5 + 10 * 0.5 + 0.0 + 0.0 + 10_000.0)
    assert second == pytest.approx(11_111.0 + 1.0 + 10 * 1.0 + 100 * 0.5 + 1_000 / 3 + 15_000.0)
    assert objective_weights(spec()) is None
    assert rates(objective, jobs) == pytest.approx(np.full(2, 11 / 3600.0))


def test_too_little_is_said_with_its_numbers() -> None:
    with pytest.raises(Untrainable, match=r"at least 64 finished tasks.*16 processors.*has 20"):
        training(spec(), (("a", trace(0, 20)),), 0)


TEN = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)  # of Lublin-1, as published


@pytest.mark.parametrize(("mechanism", "most"), [(NONE, 0.9 * 258.37), (RLS, 0.9 * 53.64)])
def test_what_ships_beats_the_best_published_rule_by_a_tenth(shared_data: Path, mechanism: int, most: float) -> None:
    log = read_swf(shared_data / "swf" / "lublin_256.swf.gz").trace
    played = [Sequence(piece(log, start, 1024), 256, mechanism) for start in TEN]
    assert measured(SHIPPED_AGENT, played).mean() < most


def test_what_ships_beats_the_best_learned_peer_on_a_whole_log(shared_data: Path) -> None:
    log = read_swf(shared_data / "swf" / "pyss-schedules" / "KTH-SP2.EASY.swf.gz", sort=True).trace
    assert loss(Sequence(piece(log, 0, log.tasks), 100, EASY), SHIPPED_AGENT) < 45.80
