"""Agents of kind `inference` beside published rules on test loads; small systems: ``inference_small``.

``STEWARD_DATA=… python -m benchmarks.inference_agents [--seeds N] [--steps N] [--loads L …]``

Three ResNets on one to three servers of four cores. Capacities and accuracies are InfAdapter's and
torchvision's; that a batch of b takes 0.4 + 0.6·b times as long as one is planted. Requests of two users: Twitter's;
Poisson; in bursts. Everything is tuned, and every agent trained and chosen, on the first days;
figures are of later days, in windows of a minute that all players share, with 95 % intervals of paired differences over
windows, of the rule that looks ahead and answers by default against each. For quality at equal cost, and cost at equal
quality, all are chosen, or behave, under five weights of cost (``inference_frontier``). Beside each stands the bound of
hindsight, which knows the requests (see ``evaluation.hindsight``; batches take as long as expected there and here).
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
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS, LASTING, ServiceModel
from app.kinds.inference.spec import InferenceSpec, InferenceWeights
from benchmarks.inference_frontier import PRICES, Point, compared
from benchmarks.inference_peers import families
from benchmarks.inference_small import trained
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.levels import Level
from workers.evaluation.statistics import mean_interval
from workers.evaluation.wrappers import wrapped
from workers.inputs import Conditions
from workers.kinds.inference.estimation.arrivals import Series, fit_arrivals
from workers.kinds.inference.evaluation.hindsight import bounded
from workers.kinds.inference.simulator.recorded import Recorded
from workers.kinds.inference.simulator.world import OUTCOMES, InferenceWorld

ENVIRONMENTS, TEST_SEED = 512, 2_027
GOAL_QUALITY = 0.9
WINDOWS, CHOOSING = 32, 64  # of test days, and of training days that choose: a dozen choose a poor static
CORES, SLA = 4, 750
ACCURACY = {"resnet18": 0.69758, "resnet50": 0.76130, "resnet152": 0.78312}  # torchvision's first weights
OWN = "look ahead"
DAY = int(DAY_SECONDS)
LOADS = ("twitter", "poisson", "bursty")
PARTS = LOADS
RECORDED_STEPS = 250_000
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

    train: Recorded
    test: Recorded


def serving(data: Path) -> tuple[Layout, NDArray[np.float64]]:
    """The workload, and the seconds of its batches, [1, V, K]."""
    with (data / "infadapter" / "capacity_result_Feb_21.csv").open() as file:
        measured = [row for row in csv.DictReader(file) if int(row["CPU"]) == CORES and int(row["SLA"]) == SLA]
    capacity = {f"resnet{row['ARCH']}": float(row["saturation_tp"]) for row in measured}
    spec = {
        "name": "serving",
        "kind": "inference",
        "variants": [{"name": name, "accuracy": accuracy} for name, accuracy in ACCURACY.items()],
        "servers": [
            {"name": "cpu", "minimum": 1, "maximum": 3, "cores": CORES, "price_per_hour": 1, "startup_seconds": 5}
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
    shared = np.random.default_rng(seed).binomial(counts, 0.6)
    users, begins = (shared, counts - shared), (0, ends[0])
    return Load(
        *(Recorded.of_counts([own[a:b] for own in users], window, seed) for a, b in zip(begins, ends, strict=True))
    )


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


def on_loads(data: Path, seeds: int, steps: int, wanted: Sequence[str] = LOADS) -> list[Row]:
    """Players on test windows: return, quality, cost; each against the look ahead, which serves by default."""
    layout, seconds = serving(data)
    window = layout.spec.episode_seconds
    days = twitter(data)
    loads = {
        "twitter": load(days, (2 * DAY, 4 * DAY), window, 1),
        "poisson": load(planted("poisson", 12_000, 2), (6_000, 12_000), window, 2),
        "bursty": load(planted("bursty", 12_000, 3), (6_000, 12_000), window, 3),
    }
    rows: list[Row] = []
    for name, parts in ((name, loads[name]) for name in wanted):
        model = believed(layout, seconds, parts.train)
        peers = {peer: _tried(layout, model, parts.train, found) for peer, found in families(layout, seconds)}
        players = {peer: found[_best(found, layout.spec.weights.cost)].policy for peer, found in peers.items()}
        players[OWN] = BASELINES[0]
        agents = []
        for seed in range(seeds):
            world = InferenceWorld(layout, [model], Conditions(ENVIRONMENTS, seed, "learning"), parts.train)
            agents.append(trained(world, "ppo", steps, seed, ()))
        if agents:
            tried = _tried(layout, model, parts.train, agents)
            players["ppo"] = tried[_best(tried, layout.spec.weights.cost)].policy
        rows += compared_on(name, layout, model, parts.test, players, len(agents))
        rows += frontier_on(name, layout, model, parts.test, peers)
    return rows


class Tried(NamedTuple):
    """A policy, and the terms that it had on the windows that choose, [T]."""

    policy: Policy
    terms: NDArray[np.float64]


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


def compared_on(
    name: str, layout: Layout, model: ServiceModel, log: Recorded, players: Mapping[str, Policy], agents: int
) -> list[Row]:
    """Returns, quality and cost of each player, and by how much the look ahead is ahead of it."""
    scores: dict[str, Scores] = {}
    for player, policy in players.items():
        scores[player] = play(_world(layout, model, log), Level.SEEDS, TEST_SEED, Bare(policy))
    bounds = bounds_on(layout, model, log)
    static, own = scores["best static"], scores[OWN]
    headroom = mean_interval(bounds - static.returns)
    rows = [_row(f"{name}: headroom of hindsight over the best static, return", headroom["mean"], "")]
    for player, score in scores.items():
        paired = mean_interval(own.returns.astype(np.float64) - score.returns)
        quality, dropped, delay, _, cost = score.outcomes.mean(axis=0)[: len(OUTCOMES)]
        told = f"quality {quality:.4f}, dropped {dropped:.2%}, delay {delay:.3f} s, cost {cost * 60:.3f} per hour"
        ahead = f"{OWN} ahead by {paired['mean']:+.4f} [{paired['low']:+.4f}, {paired['high']:+.4f}]"
        rows.append(
            _row(f"{name}: {player} ({players[player].name}; {told}; {ahead})", float(score.returns.mean()), "")
        )
    for player, score in ((one, scores[one]) for one in (OWN, "ppo") if one in scores):
        won = float((score.returns - static.returns).mean()) / max(headroom["mean"], 1e-12)
        goal = f"≥ 50 %: {'met' if won >= 0.5 else 'missed'}"
        said = f" (best of {agents} on training days)" if player == "ppo" else ""
        rows.append(_row(f"{name}: share of the headroom that {player} wins{said}", won, goal))
    return _shown(rows)


def frontier_on(
    name: str, layout: Layout, model: ServiceModel, log: Recorded, peers: Mapping[str, Sequence[Tried]]
) -> list[Row]:
    """Quality at equal cost and cost at equal quality, where cost weighs more and less."""
    own = [_point(_priced(layout, price), model, log, BASELINES[0]) for price in PRICES]
    others = {
        peer: [_point(layout, model, log, tried[at].policy) for at in sorted({_best(tried, one) for one in PRICES})]
        for peer, tried in peers.items()
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
    """A short run: two seeds of ``RECORDED_STEPS`` each."""
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    return on_loads(data, 2, RECORDED_STEPS, parts)


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
    show("inference_agents", on_loads(data, wanted.seeds, wanted.steps, wanted.loads))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
