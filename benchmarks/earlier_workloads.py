"""New workloads of a tenant that has others: ``python -m benchmarks earlier_workloads`` (some 10 minutes).

Each of ten tenants has 1, 3 or 10 earlier workloads of its own, each fitted to eight executions, and registers
another one, of which no execution is known: planted worlds of held_out, of seeds on which nothing was chosen. Its runs
are decided with the shipped prior alone, and with the tenant's; how much there is to win is measured against the
threshold rule and a model of eight executions. The earlier ones are of the same kind of world, or of another, whose
laws or deadlines are unlike (``earlier_workloads:WORLD-from-OTHER``); by resources all are similar, and names have no
word in common. Same episodes for all; intervals are over tenants.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.kind import Earlier
from app.kinds.iterative.kind import KIND
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from benchmarks.few_samples import OFF, deadline_off
from benchmarks.held_out.engine import Engine, fitted_model
from benchmarks.held_out.planted import Plan, planted
from benchmarks.held_out.planted_suite import PLANTED, deadline
from benchmarks.held_out.play import play
from benchmarks.held_out.world import Profile, World
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.grid import Executions

SEEDS, EPISODES = range(7_200, 7_210), 50
COUNTS = (1, 3, 10)
DEADLINES = {"tight-deadline": 0.75, "generous-deadline": 1.5}  # over the deadline that the prior expects
PARTS = (
    "deadline",
    "tight-deadline",
    "tight-deadline-from-generous-deadline",
    "deadline-from-tight-deadline",
    "hardly-scaling",
    "deadline-from-hardly-scaling",
    "hardly-scaling-from-deadline",
    "two-resources",
    "deadline-from-misspecified",
    OFF,
    "waiting",
)
SHARE, BEHIND = 0.4, 0.005  # of the headroom; of the return
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows for each pair of worlds among ``parts``."""
    return [row for part in parts for row in _rows(part, *part.partition("-from-")[::2])]


def _other_deadline(factor: float, random: np.random.Generator) -> Plan:
    plan = deadline(random)
    (metric,) = plan.spec["metrics"]
    return replace(plan, spec=plan.spec | {"metrics": [metric | {"target": round(factor * metric["target"], 1)}]})


@cache
def _world(name: str, seed: int) -> World:
    make = deadline_off if name == OFF else PLANTED.get(name) or partial(_other_deadline, DEADLINES[name])
    word = "".join("abcdefghij"[int(digit)] for digit in str(seed))
    return planted(word, make(np.random.default_rng((seed, 0))), seed)


def earlier(name: str, count: int, seed: int) -> list[Earlier]:
    """Return the first ``count`` fitted workloads of the tenant ``seed``, of worlds ``name`` of its own."""
    profiles = [_world(name, 100 * seed + one).profile for one in range(count)]
    return [Earlier(one.spec, partial(_model, one)) for one in profiles]


def _model(profile: Profile) -> Any:
    return KIND.model(fitted_model(profile))


def _engine(count: int, other: str, seed: int, profile: Profile) -> Engine:
    prior = KIND.prior(Layout(profile.spec), earlier(other, count, seed)) if count else None
    return Engine(Profile(profile.spec, Executions(())), model=b"", prior=prior)


def _threshold(_: int, profile: Profile) -> Engine:
    return Engine(profile, model=initial_table(Layout(profile.spec)).to_bytes())


class Means(NamedTuple):
    """Mean return of each tenant's runs, and the share of all runs that is late."""

    returns: np.ndarray
    late: float


def played(name: str, learner: Callable[[int, Profile], Engine]) -> Means:
    """Play the new workload of each tenant."""
    matches = [play(_world(name, seed), partial(learner, seed), EPISODES, seed) for seed in SEEDS]
    late = float(np.mean([(one.terms[:, 0] > 0).mean() for one in matches]))
    return Means(np.array([one.returns.mean() for one in matches]), late)


@cache
def _peers(name: str) -> tuple[Means, Means, Means]:
    """Return the threshold rule, a model of all executions, and the shipped prior."""
    full = played(name, lambda _, profile: Engine(profile))
    return played(name, _threshold), full, played(name, partial(_engine, 0, name))


def _rows(part: str, name: str, other: str) -> list[Row]:
    old, full, shipped = _peers(name)
    head, scale = float((full.returns - old.returns).mean()), abs(float(shipped.returns.mean()))
    rows = []
    for count in COUNTS:
        own = played(name, partial(_engine, count, other or name))
        gain = mean_interval(own.returns - shipped.returns)
        low, high = gain["low"] / scale, gain["high"] / scale
        won = [float((one.returns - old.returns).mean()) / head if head > 0 else None for one in (own, shipped)]
        shares = "no headroom" if won[0] is None else f"share of the headroom {won[0]:.2f}, shipped {won[1]:.2f}"
        reached = "" if other or won[0] is None else f", share >= {SHARE}: {'met' if won[0] >= SHARE else 'missed'}"
        rows.append(
            {
                "name": f"{part}, no executions, {count} earlier workload{'s' if count > 1 else ''}: over the shipped "
                f"prior, 95 % {100 * low:+.1f} to {100 * high:+.1f} % over {len(SEEDS)} tenants; late {own.late:.1%}, "
                f"shipped {shipped.late:.1%}; {shares}",
                "value": round(float(own.returns.mean()), 4),
                "unit": "return",
                "peer": "shipped prior",
                "peer_value": round(float(shipped.returns.mean()), 4),
                "ratio": None if won[0] is None else round(won[0], 2),
                "goal": f"not behind by more than {BEHIND:.1%}: {'met' if low > -BEHIND else 'missed'}{reached}",
            }
        )
    return rows


if __name__ == "__main__":
    for row in results():
        print(row)
