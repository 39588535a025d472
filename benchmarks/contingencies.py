"""Runs of few long iterations with disturbances, with contingencies and without: `python -m benchmarks contingencies`.

Planted worlds of two to six iterations of some ten minutes, of which about one in eight is slowed to 1.5 to 3 times its
duration, in the eight past executions, too. Both sides play the same episodes by the service's engine in this process,
without HTTP; one of them changes the allocation as decisions say beforehand and reports the segments, the other lets
iterations end. ``even``: twelve iterations, where none are offered. Intervals are over worlds, of
seeds on which nothing was chosen (100 to 115 were used for that). Some five minutes on one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from dataclasses import replace
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from app.kinds.iterative.contingencies import Segment
from benchmarks.held_out.engine import Engine
from benchmarks.held_out.planted import Plan, planted
from benchmarks.held_out.planted_suite import EXECUTORS, SECONDS
from benchmarks.held_out.play import Report
from benchmarks.held_out.world import Episodes, Floats, World
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.grid import Executions

SEEDS, EPISODES = range(8_000, 8_040), 50
CHANCE, SLOWER = 0.12, (1.5, 3.0)  # of an iteration to be disturbed, and by which factors
FEW, EVEN = (2, 6), (12, 12)  # fewest and most iterations
PARTS = {"few": FEW, "even": EVEN}
LATE, COST = 0.7, 0.02  # goal: share of the late runs that are left, at so much more cost
Row = dict[str, Any]


def results(parts: Sequence[str] = tuple(PARTS)) -> list[Row]:
    """Rows for worlds of few and of more iterations."""
    return [row for name in parts for row in _rows(name)]


def world(seed: int, iterations: tuple[int, int]) -> World:
    """A world whose iterations are disturbed, in its past executions and in its episodes."""
    random = np.random.default_rng((seed, 0))
    count = int(random.integers(iterations[0], iterations[1] + 1))
    length, parallel = 600 * np.exp(0.3 * random.standard_normal(count)), random.uniform(0.6, 0.97)
    serial, shared = length * (1 - parallel), length * parallel * 16

    def law(i: int, units: Floats, features: Floats) -> Floats:  # noqa: ARG001 - it has none
        seconds: Floats = serial[i] + shared[i] / units
        return seconds

    target = 1.1 * float((serial + shared / random.integers(12, 19)).sum())
    spec = {
        "resources": [EXECUTORS | {"max_steps": 32, "change_seconds": 20.0, "price_per_hour": 1.0}],
        "metrics": [SECONDS | {"target": round(target, 1), "scope": "run"}],
        "iterations": count,
    }
    sampled = random.choice(np.arange(8, 31), 8, replace=False)[:, None].astype(float)
    result = planted(f"long-{seed}", Plan(spec, law, sampled), seed)
    past = [(name, data.copy()) for name, data in result.profile.executions.items]
    for number, (_, data) in enumerate(past):
        data[:, -1] *= _slowed(1, count, np.random.default_rng((seed, 2, number)))[0]

    def draw(episodes: int, random: np.random.Generator) -> Episodes:
        outcome = result.draw(episodes, random)
        return outcome._replace(factors=outcome.factors * _slowed(episodes, count, random)[:, :, None])

    return replace(result, profile=replace(result.profile, executions=Executions(tuple(past))), draw=draw)


def _slowed(episodes: int, iterations: int, random: np.random.Generator) -> Floats:
    shape = (episodes, iterations)
    values: Floats = np.where(random.random(shape) < CHANCE, random.uniform(*SLOWER, shape), 1.0)
    return values


class Outcome(NamedTuple):
    """What E episodes came to.

    Attributes:
        late: relative lateness, [E].
        money: in the prices' currency, [E].
        offered, taken: share of the iterations with contingencies, and of those in which one was reached.
    """

    late: Floats
    money: Floats
    offered: float
    taken: float


def play(here: World, seed: int, *, reacts: bool) -> Outcome:
    """Play the episodes of ``seed``; ``reacts``: contingencies are applied, not ignored."""
    chance, engine, spec = here.episodes(EPISODES, seed), Engine(here.profile), here.spec
    (resource,), (metric,) = spec.resources, spec.metrics
    nothing = np.zeros((EPISODES, 0))
    engine.begin(nothing, nothing[:, None])
    row, seconds, money, offered, taken = np.zeros(EPISODES), np.zeros(EPISODES), np.zeros(EPISODES), 0, 0
    for i in range(spec.iterations):
        last, took, parts = np.zeros(EPISODES), np.zeros(EPISODES), []
        for e, decision in enumerate(engine.decisions):
            offers = decision["contingencies"] if reacts else []
            courses = _courses(here, i, float(chance.factors[e, i, 0]), decision, offers, float(row[e]) if i else None)
            offered, taken = offered + bool(offers), taken + (len(courses) > 1)
            last[e], took[e] = courses[-1][0], sum(part for _, part in courses)
            money[e] += sum(units * part for units, part in courses) * resource.price_per_hour / 3600
            levels = [[resource.level(units) or 0] for units, _ in courses]
            each = zip(levels, courses, strict=True)
            parts.append([Segment(at, part) for at, (_, part) in each] if len(courses) > 1 else [])
        row, seconds = last, seconds + took
        if i + 1 < spec.iterations:
            engine.next(Report(i, last[:, None], took[:, None], nothing, nothing[:, None]), parts)
    count = EPISODES * spec.iterations
    return Outcome(np.maximum(seconds / float(metric.target or np.inf) - 1, 0), money, offered / count, taken / count)


def _courses(
    here: World,
    iteration: int,
    factor: float,
    decision: dict[str, Any],
    offers: Sequence[dict[str, Any]],
    before: float | None,
) -> list[tuple[float, float]]:
    """The segments of an iteration, as units and seconds; ``before``: the units held before it, None in the first."""
    (resource,) = here.spec.resources
    units = float(decision["allocation"][resource.name])
    begun, end = 0.0, _alone(here, iteration, units) * factor
    end += resource.change_seconds * (before is not None and units != before)
    matches = []
    for one in offers:
        at, after = one["after_seconds"], float(one["allocation"][resource.name])
        if end <= at:
            break
        matches.append((units, at - begun))
        ratio = _alone(here, iteration, after) / _alone(here, iteration, units)
        begun, end, units = at, at + resource.change_seconds + (end - at) * ratio, after
    return [*matches, (units, end - begun)]


def _alone(here: World, iteration: int, units: float) -> float:
    return float(here.law(iteration, np.array([[units]]), np.zeros((1, 0)))[0, 0])


def _rows(name: str) -> list[Row]:
    worlds, begun = [world(seed, PARTS[name]) for seed in SEEDS], process_time()
    before, after = (
        [play(one, seed, reacts=reacts) for one, seed in zip(worlds, SEEDS, strict=True)] for reacts in (False, True)
    )
    late, left = (np.array([(one.late > 0).mean() for one in side]) for side in (before, after))
    paid, now = (np.array([one.money.mean() for one in side]) for side in (before, after))
    share, dearer = float(left.sum() / late.sum()), float(now.sum() / paid.sum() - 1)
    fewer = mean_interval(late - left)
    reached, offered = (float(np.mean([getattr(one, part) for one in after])) for part in ("taken", "offered"))
    missed = [float(np.mean([one.late.mean() for one in side])) for side in (before, after)]
    verdict = "met" if share <= LATE and dearer <= COST else "missed"
    return [
        {
            "name": f"{name}: late runs, {100 * fewer['low']:.1f} to {100 * fewer['high']:.1f} points fewer with 95 % "
            f"over {len(worlds)} worlds; mean lateness {missed[1]:.2%} of the target, without {missed[0]:.2%}; "
            f"cost {dearer:+.1%}; offered in {offered:.0%} of the iterations, reached in {reached:.1%} "
            f"({process_time() - begun:.0f} CPU-s)",
            "value": round(float(left.mean()), 4),
            "unit": "share",
            "peer": "without contingencies",
            "peer_value": round(float(late.mean()), 4),
            "ratio": round(share, 3),
            "goal": f"ratio <= {LATE} at <= {COST:.0%} more cost: {verdict}" if name == "few" else None,
        }
    ]


if __name__ == "__main__":
    for row in results():
        print(row)
