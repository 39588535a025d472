"""Agents of kind `inference` beside published rules on test loads; small systems: ``inference_small``.

``STEWARD_DATA=… python -m benchmarks.inference_agents [--seeds N] [--steps N] [--loads L …]``

Three ResNets on one to three servers of four cores. Capacities and accuracies are InfAdapter's and torchvision's; that
a batch of b takes 0.4 + 0.6·b times as long as one is planted. Requests of two users: Twitter's; Poisson; in bursts;
those of an hour of a language model of Azure's that writes code, on servers of one core. Everything is tuned, and
every agent trained and chosen, on the first days, or the first half; figures are of what comes later, in windows of a
minute that all players share and that don't overlap, with 95 % intervals of paired differences over windows, of the
rule that looks ahead and answers by default against each. For quality at equal cost, and cost at equal quality, all
are chosen, or behave, under five weights of cost (``inference_frontier``). Beside each stands the bound of hindsight,
which knows the requests (see ``evaluation.hindsight``; batches take as long as expected there and here). Beside the
learner stands who answers after its training: the learner if the verdict promotes it, else the rule. A load is three
parts, each recorded by itself: rules (``azure``), the learner (``azure-ppo``), weights of cost
(``azure-frontier``).
"""

import argparse
import csv
import gzip
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS, LASTING, ServiceModel
from app.kinds.inference.spec import InferenceSpec, InferenceWeights
from benchmarks.inference_frontier import PRICES, Point, compared
from benchmarks.inference_peers import families
from benchmarks.inference_small import trained
from tests.workers.kinds.inference.hindsight import bounded
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.statistics import MARGIN, Level, mean_interval
from workers.evaluation.wrappers import wrap_world
from workers.inputs import Conditions, Workload
from workers.kinds.inference.estimation.arrivals import Series, fit_arrivals
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.learning.training.driver import PlannedPolicy
from workers.learning.training.request import Request
from workers.learning.training.trial import environments

TEST_SEED = 2_027
GOAL_QUALITY = 0.9
SHARE = 0.6  # of the requests that are the first user's
WINDOWS, CHOOSING = 32, 64  # of test days, at most; of training days that choose: a dozen choose a poor static
CORES, FEW_CORES, SLA = 4, 1, 750
ACCURACY = {"resnet18": 0.69758, "resnet50": 0.76130, "resnet152": 0.78312}  # torchvision's first weights
OWN, STATIC = "look ahead", "best static"
DAY = int(DAY_SECONDS)
LOADS = ("twitter", "poisson", "bursty", "azure")
PLAYED = ("", "-ppo", "-frontier")  # of a load
PARTS = tuple(f"{load}{part}" for load in LOADS for part in PLAYED)
RECORDED_STEPS = 250_000
BEHIND = 0.002  # of the look ahead, in return, with 95 %
SERVED = "ppo"  # what trainings try where no algorithm is named
Row = dict[str, Any]


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

    train: RecordedArrivals
    test: RecordedArrivals


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
        mean = np.full(seconds, 30.0)
        for begin in bursts(seconds, random):
            mean[begin : begin + 20] = 140.0
    return random.poisson(mean)


def bursts(seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
    """When planted bursts begin."""
    begins = np.cumsum(random.exponential(80, seconds // 50) + 20).astype(np.int64)
    return begins[begins < seconds]


def load(counts: NDArray[np.int64], ends: tuple[int, int], window: float, seed: int) -> Load:
    """Training and test: stretches of seconds that end there; two of five requests are the second user's."""
    shared = np.random.default_rng(seed).binomial(counts, SHARE)
    users, begins = (shared, counts - shared), (0, ends[0])
    return Load(
        *(
            RecordedArrivals.of_counts([own[a:b] for own in users], window, seed)
            for a, b in zip(begins, ends, strict=True)
        )
    )


def halves(times: NDArray[np.float64], window: float, seed: int) -> Load:
    """Training and test: the halves of a log of requests, each at its very instant; users as in ``load``."""
    first, middle = np.random.default_rng(seed).random(len(times)) < SHARE, times[-1] / 2
    parts = [(times >= begin) & (times < begin + middle) for begin in (0.0, middle)]
    return Load(
        *(
            RecordedArrivals([times[part & own] - begin for own in (first, ~first)], 0.0, middle - window)
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


def believed(layout: Layout, seconds: NDArray[np.float64], log: RecordedArrivals) -> ServiceModel:
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
    """The best of several trainings on training windows, by these; in as many environments as the service takes."""
    layout, model, log = known.layout, known.model, known.load.train
    batch, agents = environments(steps, KIND.length(Workload(layout.spec, model.to_bytes()))), []
    for seed in range(seeds):
        function = partial(InferenceWorld, layout, [model], Conditions(batch, seed, "learning"), log)
        agents.append(trained(function, SERVED, steps, seed))
    tried = _tried(layout, model, log, agents)
    return tried[_best(tried, layout.spec.weights.cost)].policy


def _world(layout: Layout, model: ServiceModel, log: RecordedArrivals, windows: int = 0) -> InferenceWorld:
    """Its windows are evenly apart; by default as many as there are without an overlap, at most ``WINDOWS``."""
    several = windows or min(WINDOWS, log.apart(layout.spec.episode_seconds))
    return InferenceWorld(layout, [model], Conditions(several, TEST_SEED), log)


def _tried(layout: Layout, model: ServiceModel, log: RecordedArrivals, policies: Sequence[Policy]) -> list[Tried]:
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
    static, own, windows = scores[STATIC], scores[OWN], windows_on(layout, model, log)
    headroom = mean_interval(bounds_on(layout, model, windows) - static.returns)["mean"]
    request = np.array([any(map(len, requests)) for requests in windows])
    judged, reported = (OWN, list(scores)) if not agents else (SERVED, [SERVED])
    rows = [] if agents else [_row(f"{name}: headroom of hindsight over the best static, return", headroom, "")]
    rows += [_told(name, player, tuned[player], scores[player], own, request) for player in reported]
    won = float((scores[judged].returns - static.returns).mean()) / max(headroom, 1e-12)
    text = f" (best of {agents} on training days)" if agents else ""
    goal = f"≥ 50 %: {'met' if won >= 0.5 else 'missed'}"
    rows.append(_row(f"{name}: share of the headroom that {judged} wins{text}", won, goal))
    return _shown([*rows, *([_answering(name, known, tuned[SERVED], scores[SERVED], own)] if agents else [])])


def _answering(name: str, known: Players, policy: Policy, score: Scores, own: Scores) -> Row:
    """What a training of the policy leaves to answer: the policy if its verdict promotes it, else the look ahead."""
    workload = Workload(known.layout.spec, known.model.to_bytes())
    problem, planned = KIND.training(workload, Request(SERVED)), PlannedPolicy(why_not="nothing is planned")
    promoted = problem.judge(KIND.save(policy, workload.spec), planned, None, MARGIN)["promoted"]
    paired = mean_interval((score.returns if promoted else own.returns).astype(np.float64) - own.returns)
    reported = f"ahead of {OWN} by {paired['mean']:+.4f} [{paired['low']:+.4f}, {paired['high']:+.4f}]"
    text = f"{name}: answers after this training: {SERVED if promoted else OWN} ({reported})"
    value, goal = float(own.returns.mean() + paired["mean"]), "met" if paired["low"] >= -BEHIND else "missed"
    return _row(text, value, f"at most {BEHIND:g} behind: {goal}", OWN, float(own.returns.mean()))


def _told(name: str, player: str, policy: Policy, score: Scores, own: Scores, rows: NDArray[np.bool_]) -> Row:
    """What a player came to; quality, drops and delay of the windows ``rows``, in which there are requests."""
    paired = mean_interval(own.returns.astype(np.float64) - score.returns)
    quality, dropped, delay = score.outcomes[rows].mean(axis=0)[:3]
    cost = score.outcomes[:, 4].mean()
    text = f"quality {quality:.4f}, dropped {dropped:.2%}, delay {delay:.3f} s, cost {cost * 60:.3f} per hour"
    ahead = f"{OWN} ahead by {paired['mean']:+.4f} [{paired['low']:+.4f}, {paired['high']:+.4f}]"
    return _row(f"{name}: {player} ({policy.name}; {text}; {ahead})", float(score.returns.mean()), "")


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


def _point(layout: Layout, model: ServiceModel, log: RecordedArrivals, policy: Policy) -> Point:
    scores = play(_world(layout, model, log), Level.SEEDS, TEST_SEED, Bare(policy))
    quality, cost = scores.outcomes[:, 0], scores.outcomes[:, 4] * 3600 / layout.spec.episode_seconds
    return Point(f"{policy.name} at {layout.spec.weights.cost:g}", quality, cost)


def _shown(rows: list[Row]) -> list[Row]:
    for row in rows:
        print(row["name"], f"{row['value']:.4f}", row["goal"], flush=True)
    return rows


def windows_on(layout: Layout, model: ServiceModel, log: RecordedArrivals) -> list[list[NDArray[np.float64]]]:
    """When each user's requests come in each test window, seconds, in the order in which all play them."""
    world, window = _world(layout, model, log), layout.spec.episode_seconds
    wrap_world(world, Level.SEEDS, TEST_SEED).reset()
    return [
        [times[(times >= origin) & (times < origin + window)] - origin for times in log.times]
        for origin in world.load.origin
    ]


def bounds_on(
    layout: Layout, model: ServiceModel, windows: Sequence[Sequence[NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """The bound of each window."""
    return np.array([bounded(layout, model, requests, 0.25).best for requests in windows])


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A short run: two seeds of ``RECORDED_STEPS`` each."""
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    rows: list[Row] = []
    for name in LOADS:
        played = [part for part in PLAYED if f"{name}{part}" in parts]
        rows += on_load(name, data, 2, RECORDED_STEPS, played)
    return rows


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Agents of kind inference beside published rules.")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--loads", nargs="*", default=list(LOADS))
    wanted = parser.parse_args()
    from benchmarks.__main__ import show

    begin = time.perf_counter()
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    for name in wanted.loads:
        show(f"inference_agents, {name}", on_load(name, data, wanted.seeds, wanted.steps))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
