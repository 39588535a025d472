"""What adapting to a run's last transitions wins on kind `inference`, where something shifts within an episode.

``STEWARD_DATA=… python -m benchmarks.inference_adaptation [LOAD-SHIFT …] [--seeds N] [--episodes N] [--budget N]
[--all]``

The system is that of ``inference_agents``, loads: Twitter's requests, Poisson, or in bursts. Twenty seconds after an
episode of a minute has begun the rate grows by half, or most of the first user's requests become the other user's, or
batches take 1.6 times as long. All players go by the domain model of before, and meet the same requests. ``grbal`` is
trained on that model alone, in worlds of its own; nothing is chosen by what is measured here.

Beside it stand the rules that look ahead; figures are over the better one, by the mean over all parts that are asked
for: that is in its favour. With ``--all`` come the planner with nothing that adapts (the domain model's seconds and the
smoothed rate), and what else could adapt: no step, three steps (each learned for so many), and a Bayesian filter of one
pace for all.

Time to adapt is processor time that a decision of one run takes for it; what learning from a window takes stands in
``inference_shifts``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.dynamics import NONE, Dynamics, Projector, Transitions, nothing
from app.kinds.inference.heuristics import BASELINES, AdaptivePlanner, Composed
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.scaling import ExpectedReturn, Lookahead
from benchmarks.inference_agents import planted, serving, twitter
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.statistics import Level, mean_interval
from workers.evaluation.wrappers import Conditions as Met
from workers.evaluation.wrappers import World, neutral
from workers.inputs import Conditions
from workers.kinds.inference.adaptation import EPISODES as WORLD_EPISODES
from workers.kinds.inference.adaptation import (
    SPREADS,
    UPDATES,
    Fit,
    MetaLearner,
    Tasks,
    fit_load,
    gather_tasks,
    join_tasks,
    per_part,
    planner,
    vary_world,
    world_seed,
)
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import OUTCOMES, InferenceWorld

SHIFT_AT, APART = 20, 80  # seconds: of an episode, and from the begin of one to the next
BEFORE = 3_600  # seconds of requests by which the domain model knows the load
SPREAD = 0.1  # of the log of a batch's seconds
PRIOR = 0.3  # standard deviation of the log of a pace, before any batch: what the filter believes
EPISODES, SEEDS, BUDGET = 32, 2, 60_000
GRBAL = "grbal"
TIMED = 200  # adaptations
RULES = 2  # of the baselines: those that look ahead
SHARE = 0.6  # of the requests that are the first user's
DAY = 86_400
Row = dict[str, Any]


def adaptive_policies(
    layout: Layout, model: ServiceModel, budget: int, seed: int, steps: Sequence[int] = (1,)
) -> dict[int, AdaptivePlanner]:
    """Policies that adapt by so many steps of the gradient, each learned for that from the same transitions.

    The spread is chosen for one step, in the domain model's own world, and all have it.

    Args:
        layout: of the workload.
        model: its domain model.
        budget: decisions that are watched.
        seed: of everything that is drawn.
        steps: of the gradient, of each policy; 0: nothing adapts.
    """
    worlds, watched = list[Tasks](), 0
    while watched < budget:
        own = world_seed(seed, len(worlds))
        tasks, decisions = gather_tasks(vary_world(layout, model, WORLD_EPISODES, own), own)
        worlds.append(tasks)
        watched += decisions
    together = join_tasks(worlds)
    load, fits = fit_load(together, per_part(layout, model)), dict[int, Fit]()
    for count in steps:
        learner = MetaLearner(together, seed, count)
        learner.advance(UPDATES)
        fits[count] = learner.fit()
    first = next(iter(steps))
    spread = max(
        SPREADS, key=lambda one: _return_of(layout, model, planner(layout, model, fits[first], load, one, first), seed)
    )
    return {count: planner(layout, model, fit, load, spread, count) for count, fit in fits.items()}


def _return_of(layout: Layout, model: ServiceModel, policy: AdaptivePlanner, seed: int) -> float:
    """Mean over episodes of the domain model."""
    world = InferenceWorld(layout, [model], Conditions(WORLD_EPISODES, seed))
    return float(play(world, Level.SEEDS, seed, Bare(policy)).returns.mean())


class Shift(NamedTuple):
    """What changes: factor of the rate, the first user's share of all requests, factor of batches' seconds."""

    rate: float = 1.0
    share: float = SHARE
    seconds: float = 1.0


SHIFTS = {"none": Shift(), "rate": Shift(1.5), "mix": Shift(share=0.2), "slower": Shift(seconds=1.6)}
LOADS = ("twitter", "poisson", "bursty")
PARTS = tuple(f"{load}-{shift}" for load in LOADS for shift in SHIFTS)


class Slower:
    """A disturbance: from some control interval on, batches take so many times as long."""

    def __init__(self, factor: float, interval: int) -> None:
        self.slowdown, self.interval, self.now = float(np.log(factor)), interval, 0

    def begin(self, world: World) -> None:
        """See ``Disturbance``."""
        del world
        self.now = 0

    def conditions(self, world: World) -> Met:
        """See ``Disturbance``."""
        conditions, self.now = neutral(world.batch, world.channels), self.now + 1
        return conditions._replace(slowdown=np.full(world.batch, self.slowdown * (self.now > self.interval)))


class Filtered(Dynamics):
    """In place of a network: one pace for all batches, normal with a normal prior."""

    def paces(self, layout: Layout, recent: Transitions) -> NDArray[np.float64]:
        """See ``Dynamics``."""
        known = recent.batch != NONE
        total = (np.log(np.maximum(recent.pace, 1e-3)) * known).sum(axis=1) / SPREAD**2
        pace = np.exp(total / (known.sum(axis=1) / SPREAD**2 + 1 / PRIOR**2))
        return np.broadcast_to(pace[:, None, None, None], (len(pace), len(layout.servers), *layout.shape[1:]))


class Unadapted:
    """The same planning by the domain model's seconds, and as if the smoothed rate went on."""

    def __init__(self, spread: float) -> None:
        self.name, self._variation = "unadapted", float(np.expm1(spread**2))
        self._planner = Composed(Lookahead(), ExpectedReturn())

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        projector: Projector = situation.projector
        varying = np.full((len(projector.layout.users), 1), self._variation)
        known = projector._replace(usual=None, varying=varying)
        return self._planner.act(situation._replace(projector=known))


class Scene(NamedTuple):
    """A system, what is believed of it, and requests; the shift is in them, and in ``pace``."""

    layout: Layout
    model: ServiceModel
    log: RecordedArrivals
    pace: float


def scene(data: Path, load: str, shift: Shift, episodes: int, seed: int) -> Scene:
    """Episodes of a load; ``seed`` chooses the stretch of days, and draws."""
    layout, seconds = serving(data)
    random, length = np.random.default_rng([seed, LOADS.index(load)]), APART * (episodes + 1)
    if load == "twitter":
        days = twitter(data)
        begin = 2 * DAY + int(random.integers(2 * DAY - length))
        before, counts = days[begin - DAY : begin - DAY + BEFORE], days[begin : begin + length]
    else:
        drawn = planted(load, BEFORE + length, int(random.integers(1 << 31)))
        before, counts = drawn[:BEFORE], drawn[BEFORE:]
    begins = np.arange(episodes, dtype=np.float64) * APART + 2 * layout.spec.control_seconds
    second = (np.arange(length) - begins[0]) % APART
    after = (second >= SHIFT_AT) & (second < layout.spec.episode_seconds + SHIFT_AT)
    grown = counts + random.binomial(counts, np.where(after, shift.rate - 1, 0.0))
    first = random.binomial(grown, np.where(after, shift.share, SHARE))
    log = RecordedArrivals.of_counts([first, grown - first], layout.spec.episode_seconds, seed)
    rate = before.mean() * np.array([[SHARE], [1 - SHARE]])
    variation = np.full(2, _variation(before, layout.spec.control_seconds))
    measured = np.ones((1, len(layout.variants)), np.bool_)
    model = ServiceModel(np.log(seconds)[None], np.full(len(layout.variants), SPREAD), rate, variation, measured)
    return Scene(layout, model, log.beginning(begins, layout.spec.control_seconds), shift.seconds)


def _variation(counts: NDArray[np.int64], window: float) -> float:
    """Squared coefficient of variation of the rate from one control interval to the next."""
    length = int(window)
    each = counts[: len(counts) // length * length].reshape(-1, length).sum(axis=1)
    return float(max((each.var() - each.mean()) / each.mean() ** 2, 0.0))


def played(scene: Scene, policy: Policy, episodes: int, seed: int) -> Scores:
    """A policy's episodes: the same for everybody."""
    world = InferenceWorld(scene.layout, [scene.model], Conditions(episodes, seed), scene.log)
    disturbances: list[Any] = world.disturbances
    disturbances.append(Slower(scene.pace, int(SHIFT_AT / scene.layout.spec.control_seconds)))
    return play(world, Level.SEEDS, seed, Bare(policy))


def players(scene: Scene, budget: int, seed: int, *, every: bool) -> dict[str, Policy]:
    """All that are compared, made ready before the shift; ``every``: what else could adapt, too."""
    policies: dict[str, Policy] = {policy.name: policy for policy in BASELINES[:RULES]}
    steps = (1, 0, 3) if every else (1,)
    begin = time.process_time()
    adaptive = adaptive_policies(scene.layout, scene.model, budget, seed, steps)
    print(f"trained in {time.process_time() - begin:.1f} s of processor time", flush=True)
    policies[GRBAL] = adaptive[1]
    if not every:
        return policies
    policies |= {"grbal, no step": adaptive[0], "grbal, three steps": adaptive[3]}
    filtered = Filtered.build(adaptive[1].arrays)
    spread = float(adaptive[1].config["spread"])
    print(f"spread {spread:g}", flush=True)
    policies["planner, nothing adapts"] = Unadapted(spread)
    policies["planner, Bayesian filter"] = AdaptivePlanner({**adaptive[1].config, "algorithm": "filter"}, filtered)
    return policies


def measured(
    data: Path, parts: Sequence[str], seeds: int, episodes: int, budget: int, *, every: bool = False
) -> list[Row]:
    """Rows of parts."""
    scores: dict[str, dict[str, list[Scores]]] = {part: {} for part in parts}
    adapted = list[float]()
    for seed in range(seeds):
        ready: dict[str, dict[str, Policy]] = {}
        for part in parts:
            load, _, shift = part.partition("-")
            result = scene(data, load, SHIFTS[shift], episodes, seed)
            if load not in ready:
                ready[load] = players(result, budget, seed, every=every)
                planner = ready[load][GRBAL]
                assert isinstance(planner, AdaptivePlanner)  # noqa: S101  (narrows the type)
                adapted.append(adapting(result, planner))
            for name, policy in ready[load].items():
                scores[part].setdefault(name, []).append(played(result, policy, episodes, seed))
                last = scores[part][name][-1]
                quality = last.outcomes[:, 0].mean()
                print(f"{part}, seed {seed}: {name} {last.returns.mean():+.4f} ({quality:.3f})", flush=True)
    rows = [row for part in parts for row in compared(part, scores[part], best_rule(scores))]
    took = {
        **_row(f"{', '.join(parts)}: processor time of adapting, by decision", float(np.mean(adapted))),
        "unit": "s",
    }
    return [*rows, took]


def adapting(scene: Scene, policy: AdaptivePlanner) -> float:
    """Processor time that a decision of one run takes more for adapting, seconds."""
    layout, recent = scene.layout, nothing(scene.layout, 1)
    known = recent._replace(batch=np.zeros_like(recent.batch), pace=np.full_like(recent.pace, 1.2))
    seconds = scene.model.seconds()
    begin = time.process_time()
    for _ in range(TIMED):
        policy.dynamics.predict(layout, seconds, known, 1)
    return (time.process_time() - begin) / TIMED


def best_rule(scores: Mapping[str, Mapping[str, Sequence[Scores]]]) -> str:
    """By the mean over everything."""
    rules = [policy.name for policy in BASELINES[:RULES]]
    return max(rules, key=lambda rule: np.mean([one.returns.mean() for of in scores.values() for one in of[rule]]))


def compared(part: str, scores: Mapping[str, Sequence[Scores]], rule: str) -> list[Row]:
    """Return of each player, and how far it is ahead of the best rule: paired by episode, 95 %."""
    base, rows = np.concatenate([one.returns for one in scores[rule]]).astype(np.float64), []
    for name, match in scores.items():
        returns = np.concatenate([one.returns for one in match]).astype(np.float64)
        quality, dropped, delay, _, cost = np.concatenate([one.outcomes for one in match]).mean(axis=0)[: len(OUTCOMES)]
        ahead = mean_interval(returns - base)
        text = f"quality {quality:.4f}, dropped {dropped:.2%}, delay {delay:.3f} s, cost {cost * 60:.3f} per hour"
        text = f"{text}; over {rule} {ahead['mean']:+.4f} ({ahead['low']:+.4f} to {ahead['high']:+.4f})"
        rows.append(_row(f"{part}: {name} ({text})", float(returns.mean())))
    for row in rows:
        print(row["name"], f"{row['value']:.4f}", flush=True)
    return rows


def _row(name: str, value: float) -> Row:
    return {"name": name, "value": value, "unit": "", "peer": None, "peer_value": None, "ratio": None, "goal": ""}


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A short run."""
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    return measured(data, parts, SEEDS, EPISODES, BUDGET)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="What adapting to the last transitions wins on kind inference.")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--all", action="store_true", help="what else could adapt, too")
    wanted = parser.parse_args()
    from benchmarks.__main__ import show

    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    show(
        "inference_adaptation",
        measured(data, wanted.parts, wanted.seeds, wanted.episodes, wanted.budget, every=wanted.all),
    )


if __name__ == "__main__":
    main()
