"""Agents of kind `inference`: beside the exact optimum on small systems, and beside published rules on test loads.

``STEWARD_DATA=… python -m benchmarks.inference_agents [small] [loads] [--seeds N] [--steps N] [--algorithms A …]
[--loads L …]``

**small**: one server, two users, two variants, queues of up to 8: the optimum by semi-Markov policy iteration. Told
first: what the best static leaves of it: where that is nothing, a high score means nothing. Settings of algorithms were
chosen on ``balanced``, so what is recorded is of another system.

**loads**: three ResNets on one to three servers of four cores. Capacities and accuracies are InfAdapter's and
torchvision's; that a batch of b takes 0.4 + 0.6·b times as long as one is planted. Requests of two users: Twitter's;
Poisson; in bursts; those of an hour of a language model of Azure's that writes code, on servers of one core. Everything
is tuned, and every agent trained and chosen, on the first days, or the first half; figures are of what comes later, in
windows of a minute that all players share, with 95 % intervals of paired differences over windows, of the rule that
looks ahead and answers by default against each. For quality at equal cost, and cost at equal quality, all are chosen,
or behave, under five weights of cost (``inference_frontier``). Beside each stands the bound of hindsight, which knows
the requests (see ``evaluation.hindsight``; batches take as long as expected there and here). A load is three parts,
each recorded by itself: rules (``azure``), the learner (``azure-ppo``), weights of cost (``azure-frontier``).
"""

import argparse
import csv
import gzip
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES, statics
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS, LASTING, ServiceModel
from app.kinds.inference.spec import InferenceSpec, InferenceWeights
from app.policies.artifact import SHARED
from benchmarks.inference_frontier import PRICES, Point, compared
from benchmarks.inference_peers import families
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.levels import Level
from workers.evaluation.statistics import mean_interval
from workers.evaluation.wrappers import wrapped
from workers.inputs import Conditions
from workers.kinds.inference.estimation.arrivals import Series, fit_arrivals
from workers.kinds.inference.evaluation.hindsight import bounded
from workers.kinds.inference.evaluation.optimum import solve
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.recorded import Recorded
from workers.kinds.inference.simulator.world import OUTCOMES, InferenceWorld
from workers.learning.algorithms.registry import names
from workers.learning.execution.serial import Plan, Serial
from workers.learning.training.request import Request, configured

ENVIRONMENTS, EPISODES, TEST_SEED = 512, 256, 2_027
GOAL_SMALL, GOAL_SERVED, GOAL_QUALITY = 0.03, 0.01, 0.9
SHARE = 0.6  # of the requests that are the first user's
WINDOWS, CHOOSING = 32, 64  # of test days, and of training days that choose: a dozen choose a poor static
CORES, FEW_CORES, SLA = 4, 1, 750
ACCURACY = {"resnet18": 0.69758, "resnet50": 0.76130, "resnet152": 0.78312}  # torchvision's first weights
OWN, STATIC = "look ahead", "best static"
DAY = int(DAY_SECONDS)
LOADS = ("twitter", "poisson", "bursty", "azure")
PLAYED = ("", "-ppo", "-frontier")  # of a load
PARTS = ("small", *(f"{load}{part}" for load in LOADS for part in PLAYED))
RECORDED_STEPS = 250_000
SERVED = "ppo"  # what trainings try where no algorithm is named
SMALL_SEEDS = 10
SMALL_STEPS = {  # a3c learns here as a2c does
    **dict.fromkeys(("dqn", "double_dqn", "dueling_double_dqn", "a2c", "vtrace"), RECORDED_STEPS),
    "tabular_q": 2_000_000,
    "ppo": 1_000_000,
}
Row = dict[str, Any]


def trained(world: InferenceWorld, name: str, steps: int, seed: int, entries: tuple[int, ...]) -> Policy:
    """What an algorithm learns in a world of learners."""
    config = configured(name, Request(name, steps), entries, continuing=KIND.continuing)
    runner = Serial(config, world, Plan(steps, 1 << 17), seed)
    while not runner.done:
        runner.advance()
    kind, described, arrays = runner.agent.export()
    policy: Policy = SHARED[kind].build({"algorithm": name, **described}, dict(arrays))
    return policy


def small(share: float, first: float, second: float) -> tuple[Layout, ServiceModel]:
    """A system whose fast variant is worth ``share``; users' requests come ``first`` and ``second`` times a second."""
    quality = {"full_until": 300, "zero_at": 600}
    spec = {
        "name": "small",
        "kind": "inference",
        "variants": [{"name": "fast", "accuracy": share}, {"name": "accurate", "accuracy": 1.0}],
        "servers": [{"name": "cpu", "maximum": 1, "switch_seconds": 0.1}],
        "users": [{"name": "a", "weight": 3, "quality": quality}, {"name": "b", "quality": quality}],
        "batches": [1, 2, 4],
        "queue_limit": 8,
        "episode_seconds": 300,
        "weights": {"cost": 0, "fairness": 0, "switching": 0.05},
    }
    layout = Layout(InferenceSpec.model_validate(spec))
    log = np.log([[[0.3, 0.42, 0.65], [0.7, 1.05, 1.8]]])
    rate, measured = np.array([[first], [second]]), np.ones((1, 2), np.bool_)
    return layout, ServiceModel(log[None], np.full(2, 0.2), rate, np.zeros(2), measured)


SMALL = {"balanced": (0.75, 1.6, 1.4), "crowded": (0.6, 2.2, 2.2), "uneven": (0.85, 2.4, 0.7)}


def on_small(seeds: int, steps: Mapping[str, int], systems: Sequence[str] = tuple(SMALL)) -> list[Row]:
    """Gaps to the optimum, as shares of what it loses, of algorithms that learn for so many steps."""
    rows = []
    for name in systems:
        layout, model = small(*SMALL[name])
        solution, entries = solve(layout, model), (0, 1, layout.entries.index("loaded.fast"))

        def returned(policy: Policy, layout: Layout = layout, model: ServiceModel = model) -> NDArray[np.float64]:
            world = InferenceWorld(layout, [model], Conditions(EPISODES, TEST_SEED))
            return play(world, Level.SEEDS, TEST_SEED, Bare(policy)).returns.astype(np.float64)

        best = returned(solution.policy(layout))
        static = max(statics(layout).values(), key=lambda one: float(returned(one).mean()))
        print(f"{name}: optimum {best.mean():.5f} (promised {-solution.loss / solution.rate:.5f}), ", flush=True)
        rows.append(_row(f"{name}: headroom over the best static ({static.name})", _gap(best, returned(static)), ""))
        rule = max(BASELINES, key=lambda one: float(returned(one).mean()))
        rows.append(_row(f"{name}: gap of the best rule ({rule.name})", _gap(best, returned(rule)), ""))
        for learner, budget in steps.items():
            gaps = []
            for seed in range(seeds):
                world = InferenceWorld(layout, [model], Conditions(ENVIRONMENTS, seed, "learning"))
                gaps.append(_gap(best, returned(trained(world, learner, budget, seed, entries))))
            spread = f"{min(gaps):.3f} to {max(gaps):.3f}, {seeds} seeds, {budget:,} steps"
            aim = GOAL_SERVED if learner == SERVED else GOAL_SMALL
            goal = f"≤ {aim:.0%}: {'met' if max(gaps) <= aim else 'missed'}"
            rows.append(_row(f"{name}: gap of {learner} ({spread})", float(np.mean(gaps)), goal))
            print(rows[-1]["name"], f"{rows[-1]['value']:.4f}", flush=True)
    return rows


def _gap(best: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float((best.mean() - other.mean()) / abs(best.mean()))


def _row(name: str, value: float, goal: str, peer: str = "", peer_value: float | None = None) -> Row:
    ratio = None if not peer_value else value / peer_value
    return {
        "name": name,
        "value": value,
        "unit": "",
        "peer": peer or None,
        "peer_value": peer_value,
        "ratio": ratio,
        "goal": goal,
    }


class Load(NamedTuple):
    """Requests of two users on training days, and on later ones."""

    train: Recorded
    test: Recorded


def serving(data: Path, cores: int = CORES) -> tuple[Layout, NDArray[np.float64]]:
    """The workload, and the seconds of its batches, [1, V, K]."""
    with (data / "infadapter" / "capacity_result_Feb_21.csv").open() as file:
        measured = [row for row in csv.DictReader(file) if int(row["CPU"]) == cores and int(row["SLA"]) == SLA]
    capacity = {f"resnet{row['ARCH']}": float(row["saturation_tp"]) for row in measured}
    spec = {
        "name": "serving",
        "kind": "inference",
        "variants": [{"name": name, "accuracy": accuracy} for name, accuracy in ACCURACY.items()],
        "servers": [
            {"name": "cpu", "minimum": 1, "maximum": 3, "cores": cores, "price_per_hour": 1, "startup_seconds": 5}
        ],
        "users": [
            {"name": "quick", "weight": 2, "quality": {"full_until": 0.15, "zero_at": 0.75}},
            {"name": "patient", "quality": {"full_until": 0.5, "zero_at": 3, "shape": "exponential"}},
        ],
        "batches": [1, 2, 4, 8],
        "episode_seconds": 60,
        "control_seconds": 10,
    }
    layout = Layout(InferenceSpec.model_validate(spec))
    one = np.array([1 / capacity[name] for name in ACCURACY])
    return layout, (one[:, None] * (0.4 + 0.6 * layout.batches))[None]


def twitter(data: Path) -> NDArray[np.int64]:
    """Requests in each second of Twitter's days."""
    path = next((data / "infadapter").glob("twitter_rps_first*days.txt.gz"))
    with gzip.open(path, "rt") as file:
        return np.array(file.read().split(), float).astype(np.int64)


def azure(data: Path) -> NDArray[np.float64]:
    """When requests of an hour came, seconds since the first."""
    with (data / "azure-llm-2023" / "AzureLLMInferenceTrace_code.csv").open() as file:
        times = np.array([row["TIMESTAMP"] for row in csv.DictReader(file)], "datetime64[ns]")
    return (times - times[0]) / np.timedelta64(1, "s")


def planted(kind: str, seconds: int, seed: int) -> NDArray[np.int64]:
    """Requests in each second: Poisson of 60 a second, or of 30 with bursts of 20 s at 140, every 100 s on average."""
    random, mean = np.random.default_rng(seed), np.full(seconds, 60.0)
    if kind == "bursty":
        begins = np.cumsum(random.exponential(80, seconds // 50) + 20).astype(int)
        mean = np.full(seconds, 30.0)
        for begin in begins[begins < seconds]:
            mean[begin : begin + 20] = 140.0
    return random.poisson(mean)


def load(counts: NDArray[np.int64], ends: tuple[int, int], window: float, seed: int) -> Load:
    """Training and test: stretches of seconds that end there; two of five requests are the second user's."""
    shared = np.random.default_rng(seed).binomial(counts, SHARE)
    users, begins = (shared, counts - shared), (0, ends[0])
    return Load(
        *(Recorded.of_counts([own[a:b] for own in users], window, seed) for a, b in zip(begins, ends, strict=True))
    )


def halves(times: NDArray[np.float64], window: float, seed: int) -> Load:
    """Training and test: the halves of a log of requests, each at its very instant; users as in ``load``."""
    first, middle = np.random.default_rng(seed).random(len(times)) < SHARE, times[-1] / 2
    parts = [(times >= begin) & (times < begin + middle) for begin in (0.0, middle)]
    return Load(
        *(
            Recorded([times[part & own] - begin for own in (first, ~first)], 0.0, middle - window)
            for part, begin in zip(parts, (0.0, middle), strict=True)
        )
    )


def met(name: str, data: Path, window: float) -> Load:
    """A load by its name, in windows of so many seconds."""
    if name == "azure":
        return halves(azure(data), window, 4)
    if name == "twitter":
        return load(twitter(data), (2 * DAY, 4 * DAY), window, 1)
    seed = {"poisson": 2, "bursty": 3}[name]
    return load(planted(name, 12_000, seed), (6_000, 12_000), window, seed)


def believed(layout: Layout, seconds: NDArray[np.float64], log: Recorded) -> ServiceModel:
    """The domain model: seconds are known, arrivals are what the project's own estimator says of the training days."""
    control, every = layout.spec.control_seconds, []
    for own in log.times:
        coarse, fine = (_series(own - log.first, width) for width in (control, control * float(LASTING[0])))
        every.append(fit_arrivals([coarse], [fine]))
    return ServiceModel(
        log_seconds=np.log(seconds)[None],
        spread=np.zeros(seconds.shape[1]),
        rate=log.rate[:, None],
        variation=np.array([one.variation for one in every]),
        measured=np.ones((len(seconds), seconds.shape[1]), np.bool_),
        forecast=np.stack([one.numbers for one in every]),
        parts=np.stack([one.parts for one in every]),
    )


def _series(times: NDArray[np.float64], seconds: float) -> Series:
    counts = np.bincount((times // seconds).astype(np.int64))[:-1]
    begins = np.arange(len(counts), dtype=np.float64) * seconds
    return Series(counts / seconds, begins, seconds, len(counts) * seconds >= DAY)


class Tried(NamedTuple):
    """A policy, and the terms that it had on the windows that choose, [T]."""

    policy: Policy
    terms: NDArray[np.float64]


class Players(NamedTuple):
    """Who plays a load, with its workload.

    Attributes:
        peers: every peer with all that may be tuned of it, as tried on training windows.
        tuned: the best of each.
    """

    layout: Layout
    model: ServiceModel
    load: Load
    peers: Mapping[str, Sequence[Tried]]
    tuned: Mapping[str, Policy]


def players(name: str, data: Path, wanted: Sequence[str] = ()) -> Players:
    """Those of a load; ``wanted``: these peers alone."""
    layout, seconds = serving(data, FEW_CORES if name == "azure" else CORES)
    parts = met(name, data, layout.spec.episode_seconds)
    model, known = believed(layout, seconds, parts.train), families(layout, seconds)
    peers = {peer: _tried(layout, model, parts.train, all_) for peer, all_ in known if not wanted or peer in wanted}
    tuned = {peer: tried[_best(tried, layout.spec.weights.cost)].policy for peer, tried in peers.items()}
    return Players(layout, model, parts, peers, tuned)


def on_load(name: str, data: Path, seeds: int, steps: int, played: Sequence[str] = PLAYED) -> list[Row]:
    """Players on test windows: return, quality, cost; each against the look ahead, which serves by default."""
    rows: list[Row] = []
    for part in played:
        known = players(name, data, (STATIC,) if part == "-ppo" else ())
        if part == "-frontier":
            rows += frontier_on(name, known)
            continue
        tuned = {**known.tuned, OWN: BASELINES[0]}
        if part == "-ppo":
            tuned[SERVED] = learned(known, seeds, steps)
        rows += compared_on(name, known, tuned, seeds if part == "-ppo" else 0)
    return rows


def learned(known: Players, seeds: int, steps: int) -> Policy:
    """The best of several trainings on training windows, by these."""
    layout, model, log = known.layout, known.model, known.load.train
    agents = []
    for seed in range(seeds):
        world = InferenceWorld(layout, [model], Conditions(ENVIRONMENTS, seed, "learning"), log)
        agents.append(trained(world, SERVED, steps, seed, ()))
    tried = _tried(layout, model, log, agents)
    return tried[_best(tried, layout.spec.weights.cost)].policy


def _world(layout: Layout, model: ServiceModel, log: Recorded, windows: int = WINDOWS) -> InferenceWorld:
    return InferenceWorld(layout, [model], Conditions(windows, TEST_SEED), log)


def _tried(layout: Layout, model: ServiceModel, log: Recorded, policies: Sequence[Policy]) -> list[Tried]:
    return [
        Tried(one, play(_world(layout, model, log, CHOOSING), Level.SEEDS, TEST_SEED, Bare(one)).terms)
        for one in policies
    ]


def _best(tried: Sequence[Tried], price: float) -> int:
    """Which has the most return on the windows that choose, if cost weighs ``price``."""
    quality, _, cost, switching = np.array([one.terms for one in tried]).T
    return int(np.argmin(quality + price * cost + InferenceWeights().switching * switching))


def compared_on(name: str, known: Players, tuned: Mapping[str, Policy], agents: int) -> list[Row]:
    """Returns, quality and cost of each player, and by how much the look ahead is ahead of it."""
    layout, model, log = known.layout, known.model, known.load.test
    scores = {
        player: play(_world(layout, model, log), Level.SEEDS, TEST_SEED, Bare(policy))
        for player, policy in tuned.items()
    }
    static, own = scores[STATIC], scores[OWN]
    headroom = mean_interval(bounds_on(layout, model, log) - static.returns)["mean"]
    judged, told = (OWN, list(scores)) if not agents else (SERVED, [SERVED])
    rows = [] if agents else [_row(f"{name}: headroom of hindsight over the best static, return", headroom, "")]
    rows += [_told(name, player, tuned[player], scores[player], own) for player in told]
    won = float((scores[judged].returns - static.returns).mean()) / max(headroom, 1e-12)
    said = f" (best of {agents} on training days)" if agents else ""
    goal = f"≥ 50 %: {'met' if won >= 0.5 else 'missed'}"
    return _shown([*rows, _row(f"{name}: share of the headroom that {judged} wins{said}", won, goal)])


def _told(name: str, player: str, policy: Policy, score: Scores, own: Scores) -> Row:
    paired = mean_interval(own.returns.astype(np.float64) - score.returns)
    quality, dropped, delay, _, cost = score.outcomes.mean(axis=0)[: len(OUTCOMES)]
    told = f"quality {quality:.4f}, dropped {dropped:.2%}, delay {delay:.3f} s, cost {cost * 60:.3f} per hour"
    ahead = f"{OWN} ahead by {paired['mean']:+.4f} [{paired['low']:+.4f}, {paired['high']:+.4f}]"
    return _row(f"{name}: {player} ({policy.name}; {told}; {ahead})", float(score.returns.mean()), "")


def frontier_on(name: str, known: Players) -> list[Row]:
    """Quality at equal cost and cost at equal quality, where cost weighs more and less."""
    layout, model, log = known.layout, known.model, known.load.test
    own = [_point(_priced(layout, price), model, log, BASELINES[0]) for price in PRICES]
    others = {
        peer: [_point(layout, model, log, tried[at].policy) for at in sorted({_best(tried, one) for one in PRICES})]
        for peer, tried in known.peers.items()
    }
    return _shown([{**row, "name": f"{name}: {row['name']}"} for row in compared(OWN, own, others)])


def _priced(layout: Layout, price: float) -> Layout:
    """The same workload with another weight on cost."""
    weights = layout.spec.weights.model_copy(update={"cost": price})
    return Layout(layout.spec.model_copy(update={"weights": weights}))


def _point(layout: Layout, model: ServiceModel, log: Recorded, policy: Policy) -> Point:
    scores = play(_world(layout, model, log), Level.SEEDS, TEST_SEED, Bare(policy))
    quality, cost = scores.outcomes[:, 0], scores.outcomes[:, 4] * 3600 / layout.spec.episode_seconds
    return Point(f"{policy.name} at {layout.spec.weights.cost:g}", quality, cost)


def _shown(rows: list[Row]) -> list[Row]:
    for row in rows:
        print(row["name"], f"{row['value']:.4f}", row["goal"], flush=True)
    return rows


def bounds_on(layout: Layout, model: ServiceModel, log: Recorded) -> NDArray[np.float64]:
    """The bound of each test window, in the order in which all play them."""
    world = _world(layout, model, log)
    wrapped(world, Level.SEEDS, TEST_SEED).reset()
    found, window = [], layout.spec.episode_seconds
    for origin in world.load.origin:
        own = [times[(times >= origin) & (times < origin + window)] - origin for times in log.times]
        found.append(bounded(layout, model, own, 0.25).best)
    return np.array(found)


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A short run: two seeds of ``RECORDED_STEPS`` each on loads; on a small system as ``SMALL_STEPS`` says."""
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    rows = on_small(SMALL_SEEDS, SMALL_STEPS, ["crowded"]) if "small" in parts else []
    for name in LOADS:
        played = [part for part in PLAYED if f"{name}{part}" in parts]
        rows += on_load(name, data, 2, RECORDED_STEPS, played)
    return rows


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Agents of kind inference beside optimum and published rules.")
    parser.add_argument("parts", nargs="*", default=["small", "loads"], help="small, loads")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--algorithms", nargs="*", default=list(names()))
    parser.add_argument("--loads", nargs="*", default=list(LOADS))
    wanted = parser.parse_args()
    from benchmarks.__main__ import show

    begin = time.perf_counter()
    if "small" in wanted.parts:
        show("inference_agents, small", on_small(wanted.seeds, dict.fromkeys(wanted.algorithms, wanted.steps)))
    if "loads" in wanted.parts:
        data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
        for name in wanted.loads:
            show(f"inference_agents, {name}", on_load(name, data, wanted.seeds, wanted.steps))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
