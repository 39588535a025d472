"""New workloads of a tenant that has others: ``python -m benchmarks earlier_workloads`` (some 10 minutes).

Each of twenty tenants has 1, 3 or 10 earlier workloads, each fitted to eight executions, and registers another one, of
which no execution is known: a planted world of held_out, of seeds on which nothing was chosen. Its runs are decided
with the shipped prior alone, and with the tenant's; how much there is to win is measured against the threshold rule and
a model of eight executions. The earlier ones are of the same kind of world, or of another, whose laws or deadlines are
unlike (``earlier_workloads:WORLD-from-OTHER``); by names and resources all are similar. Same episodes for all;
intervals are over tenants.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

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

SEEDS, EPISODES = range(7_100, 7_120), 50
OTHERS = range(8_100, 8_116)  # of the earlier workloads, from which each tenant has some
COUNTS = (1, 3, 10)
TIGHT = "tight-deadline"
PARTS = (
    "deadline",
    TIGHT,
    f"deadline-from-{TIGHT}",
    "deadline-from-hardly-scaling",
    "hardly-scaling",
    "two-resources",
    OFF,
)
SHARE, BEHIND = 0.4, 0.005  # of the headroom; return
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows for each pair of worlds among ``parts``."""
    return [row for part in parts for row in _rows(part, *part.partition("-from-")[::2])]


def tight_deadline(random: np.random.Generator) -> Plan:
    """Return a deadline three quarters as long as the prior expects."""
    plan = deadline(random)
    (metric,) = plan.spec["metrics"]
    return replace(plan, spec=plan.spec | {"metrics": [metric | {"target": round(0.75 * metric["target"], 1)}]})


@cache
def _world(name: str, seed: int) -> World:
    make = {OFF: deadline_off, TIGHT: tight_deadline}.get(name) or PLANTED[name]
    return planted(f"job-{seed}", make(np.random.default_rng((seed, 0))), seed)


def earlier(name: str, count: int, seed: int, others: Sequence[int] = OTHERS) -> list[Earlier]:
    """Return ``count`` fitted workloads of the tenant ``seed``, of worlds ``name``."""
    chosen = np.random.default_rng((seed, count)).choice(others, count, replace=False)
    profiles = [_world(name, int(one)).profile for one in chosen]
    return [Earlier(one.spec, partial(_model, one)) for one in profiles]


def _model(profile: Profile) -> Any:
    return KIND.model(fitted_model(profile))


def _engine(count: int, other: str, seed: int, profile: Profile) -> Engine:
    prior = KIND.prior(Layout(profile.spec), earlier(other, count, seed)) if count else None
    return Engine(Profile(profile.spec, Executions(())), model=b"", prior=prior)


def _threshold(_: int, profile: Profile) -> Engine:
    return Engine(profile, model=initial_table(Layout(profile.spec)).to_bytes())


def _returns(name: str, learner: Callable[[int, Profile], Engine]) -> np.ndarray:
    played = [play(_world(name, seed), partial(learner, seed), EPISODES, seed) for seed in SEEDS]
    return np.array([one.returns.mean() for one in played])


def _rows(part: str, name: str, other: str) -> list[Row]:
    old = _returns(name, _threshold)
    full = _returns(name, lambda _, profile: Engine(profile))
    shipped = _returns(name, partial(_engine, 0, name))
    head, scale = float(full.mean() - old.mean()), abs(float(shipped.mean()))
    rows = []
    for count in COUNTS:
        own = _returns(name, partial(_engine, count, other or name))
        gain = mean_interval(own - shipped)
        low, high = gain["low"] / scale, gain["high"] / scale
        won = [float((one - old).mean()) / head if head > 0 else None for one in (own, shipped)]
        shares = "no headroom" if won[0] is None else f"share of the headroom {won[0]:.2f}, shipped {won[1]:.2f}"
        reached = "" if other or won[0] is None else f", share >= {SHARE}: {'met' if won[0] >= SHARE else 'missed'}"
        rows.append(
            {
                "name": f"{part}, no executions, {count} earlier workload{'s' if count > 1 else ''}: over the shipped "
                f"prior, 95 % {100 * low:+.1f} to {100 * high:+.1f} % over {len(SEEDS)} tenants; {shares}",
                "value": round(float(own.mean()), 4),
                "unit": "return",
                "peer": "shipped prior",
                "peer_value": round(float(shipped.mean()), 4),
                "ratio": None if won[0] is None else round(won[0], 2),
                "goal": f"not behind by more than {BEHIND}: {'met' if gain['low'] > -BEHIND else 'missed'}{reached}",
            }
        )
    return rows


if __name__ == "__main__":
    for row in results():
        print(row)
