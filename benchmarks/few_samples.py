"""Decisions of new workloads, by how many executions are known: ``python -m benchmarks few_samples`` (some 10 minutes).

Planted worlds of held_out, of seeds on which nothing was chosen, whose deadlines are about as the prior expects them,
but in ``deadline-off``, where they are .7 to 1.5 times as long: with no execution (the prior decides; its peer is the
threshold rule, which decided before), with two, and with six at one allocation, beside the plain rule on the same
executions and beside the rule with eight. ``ellis``: the Spark jobs of held_out, of which the prior has seen nothing.
Played by the service's engine in this process, without HTTP; every policy plays the same 50 episodes of each of twenty
worlds (500 of each Spark job), and intervals are over worlds. ``few_samples:WORLD`` measures one kind of world.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from benchmarks.domain_data import ELLIS_TARGETS
from benchmarks.held_out.ellis import spark
from benchmarks.held_out.engine import Engine
from benchmarks.held_out.planted import Plan, planted
from benchmarks.held_out.planted_suite import PLANTED, deadline
from benchmarks.held_out.play import Learner, Played, play
from benchmarks.held_out.rules import plain_rule
from benchmarks.held_out.world import Profile, World
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.grid import Executions

SEEDS, EPISODES = range(7_000, 7_020), 50
OFF, ELLIS = "deadline-off", "ellis"
NEW = ("deadline", OFF, "two-resources", "iteration-target", "expensive-changes", "drift", "waiting", "hardly-scaling",
       "busy-neighbour", "misspecified", ELLIS)  # fmt: skip
FEW = ("two-executions", "one-allocation")
PARTS = (*NEW, *FEW)
SHARE, BEHIND = 0.4, 0.005  # of the headroom; of the return
BANDS = (0.84, 0.96)
FIRST = 3  # iterations whose bands are looked at by themselves
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows for each kind of world among ``parts``."""
    return [row for name in parts for row in (_new(name) if name in NEW else _few(name))]


def deadline_off(random: np.random.Generator) -> Plan:
    """A deadline that is .7 to 1.5 times as long as the prior expects."""
    plan = deadline(random)
    (metric,) = plan.spec["metrics"]
    target = metric["target"] * np.exp(random.uniform(np.log(0.7), np.log(1.5)))
    return replace(plan, spec=plan.spec | {"metrics": [metric | {"target": round(float(target), 1)}]})


def _worlds(name: str) -> list[World]:
    if name == ELLIS:
        return [spark(Path(os.environ["STEWARD_DATA"]), app) for app in ELLIS_TARGETS]
    make = deadline_off if name == OFF else PLANTED[name]
    return [planted(f"{name}-{seed}", make(np.random.default_rng((seed, 0))), seed) for seed in SEEDS]


def _played(worlds: Sequence[World], learner: Learner) -> list[Played]:
    episodes = EPISODES * len(SEEDS) // len(worlds)
    return [play(world, learner, episodes, seed) for world, seed in zip(worlds, SEEDS, strict=False)]


def _means(played: Sequence[Played]) -> np.ndarray:
    return np.array([one.returns.mean() for one in played])


def _threshold(profile: Profile) -> Engine:
    return Engine(profile, model=initial_table(Layout(profile.spec)).to_bytes())


def _prior(profile: Profile) -> Engine:
    return Engine(Profile(profile.spec, Executions(())), model=b"")


def _new(name: str) -> list[Row]:
    """Without executions: the share of the headroom to the rule with all executions, bands, and the gain."""
    worlds = _worlds(name)
    before, after, full = (_played(worlds, learner) for learner in (_threshold, _prior, Engine))
    old, new, known = map(_means, (before, after, full))
    head = float(known.mean() - old.mean())
    gain, scale = mean_interval(new - old), abs(float(old.mean()))
    share = float((new - old).mean()) / head if head > 0 else None
    verdict = "no headroom" if share is None else "met" if share >= SHARE else "missed"
    late = [float(np.mean([(one.terms[:, 0] > 0).mean() for one in played])) for played in (before, after)]
    spread = f"95 % {100 * gain['low'] / scale:+.1f} to {100 * gain['high'] / scale:+.1f} %"
    return [
        {
            "name": f"{name}, no executions: prior over threshold rule, {spread} over {len(worlds)} worlds; "
            f"late {late[1]:.1%}, before {late[0]:.1%}; with all executions {known.mean():.4f}",
            "value": round(float(new.mean()), 4),
            "unit": "return",
            "peer": "threshold rule",
            "peer_value": round(float(old.mean()), 4),
            "ratio": None if share is None else round(share, 2),
            "goal": f"ratio: share of the headroom >= {SHARE}: {verdict}",
        },
        *_bands(name, "no executions", after),
    ]


def _bands(name: str, known: str, played: Sequence[Played]) -> list[Row]:
    inside = [(one.metrics >= one.low) & (one.metrics <= one.high) for one in played]
    shares = {
        f"the first {FIRST} iterations": float(np.mean([one[:, :FIRST].mean() for one in inside])),
        "all iterations": float(np.mean([one.mean() for one in inside])),
    }
    return [
        {
            "name": f"{name}, {known}: 90 % bands, {where}",
            "value": round(share, 3),
            "unit": "share",
            "goal": f"{BANDS[0]}–{BANDS[1]}: {'met' if BANDS[0] <= share <= BANDS[1] else 'missed'}",
        }
        for where, share in shares.items()
    ]


def _few(name: str) -> list[Row]:
    """With few executions: beside the plain rule on the same ones, and with eight at as many allocations."""
    worlds, whole = _worlds(name), _worlds("deadline")
    ours, rule = _played(worlds, Engine), _played(worlds, plain_rule(1.0))
    new, plain, known = _means(ours), _means(rule), _means(_played(whole, Engine))
    gain, scale = mean_interval(new - plain), abs(float(plain.mean()))
    low, high = gain["low"] / scale, gain["high"] / scale
    return [
        {
            "name": f"{name}: over the plain rule, 95 % {100 * low:+.1f} to {100 * high:+.1f} % over {len(worlds)} "
            f"worlds; with eight executions {known.mean():.4f}",
            "value": round(float(new.mean()), 4),
            "unit": "return",
            "peer": rule[0].policy,
            "peer_value": round(float(plain.mean()), 4),
            "ratio": None,
            "goal": f"not behind by more than {BEHIND:.1%}: {'met' if low > -BEHIND else 'missed'}",
        },
        *_bands(name, "its executions", ours),
    ]


if __name__ == "__main__":
    for row in results():
        print(row)
