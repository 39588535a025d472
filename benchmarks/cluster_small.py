"""Three jobs on four GPUs: rules and learned agents beside the exact optimum, by dynamic programming.

``python -m benchmarks cluster_small``. Jobs are there from the start and need 6 to 16 intervals of a minute on one GPU;
their speeds on two to four GPUs are drawn, and grow less and less; a change of its GPUs costs a job half an interval.
The optimum is over all allocations at each interval, by what is left of each job and what it has. Every job's need and
speed is known to all, and no run differs from what is known. The best that never gives three GPUs is told, too.

Systems are drawn; agents learn on some (ten seeds, PPO after imitating ``soonest``) and all are judged on others, as
they are served. The constants of ``rollout`` were chosen on others still (seed 77, 48 systems: a gap of .0008).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.placement import Situation
from app.kinds.cluster.policies import AHEAD
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.policy import Policy
from benchmarks.cluster_learned import trained
from tests.pollux.tables import moment
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions
from workers.kinds.cluster.episodes import Episodes, HiddenJobs, usual
from workers.kinds.cluster.kernels import Clusters, Rules
from workers.kinds.cluster.world import ClusterWorld, RulePolicy, empty

JOBS, GPUS, INTERVAL, RESTART, INTERVALS = 3, 4, 60.0, 30.0, 48
NOBODY = -1
PIECES, FEWEST, MOST = 4, 24, 64  # of work that one GPU does in an interval, and that a job needs
LEARNED_FROM, JUDGED, SEEDS, STEPS = 4_096, 48, 10, 80_000
GOAL, GOAL_SEED = 0.02, 2_031
RULES, AGENT = "rules", "agent"
PARTS = (RULES, AGENT)
Row = dict[str, Any]
LAYOUT = Layout(
    ClusterSpec.model_validate(
        {
            "name": "small",
            "kind": "cluster",
            "nodes": [{"name": "n", "count": 1, "gpus": GPUS}],
            "restart_seconds": RESTART,
            "interval_seconds": INTERVAL,
            "episode_intervals": INTERVALS,
            "weights": {"changes": 0},
        }
    )
)


def systems(count: int, seed: int) -> tuple[Integers, Integers]:
    """Pieces that jobs do in an interval on 0 to 4 GPUs, even numbers, [S, 3, 5], and that they need, [S, 3]."""
    random = np.random.default_rng(seed)
    more = np.sort(random.integers(0, PIECES // 2 + 1, (count, JOBS, GPUS - 1)), axis=2)[:, :, ::-1] * 2
    first = np.full((count, JOBS, 1), PIECES)
    times = np.concatenate([np.zeros_like(first), first, first + more.cumsum(axis=2)], axis=2)
    return times, random.integers(FEWEST, MOST + 1, (count, JOBS))


@numba.njit(cache=False, error_model="numpy")
def _interval(values: Integers, left: int, had: int, has: int) -> tuple[float, int]:
    """Seconds that a job is there in an interval, and what is left of it afterwards."""
    if not left or not has:
        return (INTERVAL if left else 0.0), left
    lost = INTERVAL - RESTART if has != had else 0.0
    gain = values[has] // 2 if has != had else values[has]
    if gain < left:
        return INTERVAL, left - gain
    return lost + np.rint(left * INTERVAL / values[has]), 0


@numba.njit(cache=False, error_model="numpy")
def _optimum(values: Integers, need: Integers, never: int) -> float:
    """The least sum of completion times, seconds, where nobody has ``never`` GPUs.

    Values are by what is left of each job, and the GPUs that it has.
    """
    g = GPUS + 1
    value = np.full((need[0] + 1, need[1] + 1, need[2] + 1, g, g, g), np.inf, np.float32)
    value[0, 0, 0] = 0.0
    for index in range(1, (need[0] + 1) * (need[1] + 1) * (need[2] + 1)):
        a, b, c = (
            index // ((need[1] + 1) * (need[2] + 1)),
            index // (need[2] + 1) % (need[1] + 1),
            index % (need[2] + 1),
        )
        for x, y, z in np.ndindex((g if a else 1, g if b else 1, g if c else 1)):
            if x + y + z <= GPUS:
                value[a, b, c, x, y, z] = _best(values, value, (a, b, c), (x, y, z), never)
    return float(value[need[0], need[1], need[2], 0, 0, 0])


@numba.njit(cache=False, error_model="numpy")
def _best(values: Integers, value: Floats, left: tuple[int, int, int], had: tuple[int, int, int], never: int) -> float:
    """The least that is to come from here on."""
    least, g = np.inf, GPUS + 1
    for x in range(g if left[0] else 1):
        first, a = _interval(values[0], left[0], had[0], x)
        for y in range(g - x if left[1] else 1):
            second, b = _interval(values[1], left[1], had[1], y)
            for z in range(g - x - y if left[2] else 1):
                third, c = _interval(values[2], left[2], had[2], z)
                if x + y + z and never not in (x, y, z):
                    after = value[a, b, c, x if a else 0, y if b else 0, z if c else 0]
                    least = min(least, first + second + third + after)
    return least


class SmallSource:
    """See ``Source``: each cluster is one of some systems."""

    def __init__(self, values: Integers, need: Integers, *, shuffled: bool) -> None:
        self.traces, self.need, self._shuffled = values, need, shuffled
        kinds = len(values) * JOBS
        self.applications: Sequence[str] = ["job"]
        self.rules = Rules(
            sizes=np.arange(GPUS + 1),
            rate=values.reshape(kinds, GPUS + 1, 1) / INTERVAL,
            ends=need.reshape(kinds, 1).astype(np.float64),
            epochs=np.ones(kinds, np.int64),
            most=np.full(kinds, GPUS),
            interval=INTERVAL,
            restart=RESTART,
            growth=0,
            weight=np.ones(1),
            ageing=np.full(1, np.inf),
            patience=np.inf,
        )

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, HiddenJobs]:
        """See ``Source``: in the order of the systems, or any of them."""
        del model
        count = len(load)
        which = random.integers(len(self.traces), size=count) if self._shuffled else np.arange(count)
        result = empty(np.full((count, JOBS), INTERVAL), np.array([GPUS]))
        result.application[:] = which[:, None] * JOBS + np.arange(JOBS)
        zeros, steps = np.zeros((count, JOBS)), self.need[which].astype(np.float64)
        unknown, none = zeros + np.nan, np.full(zeros.shape, -1)
        return result, HiddenJobs(zeros, steps, zeros + INTERVAL, result.application, zeros[:, 0], unknown, none)

    def coming(self, second_of_day: Floats) -> Floats:
        """See ``Source``: nobody is."""
        return np.zeros_like(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """See ``Source``: nothing is hidden."""
        return moment(self.rules, episodes, b)

    def ahead(self, drawn: HiddenJobs, part: Floats) -> None:
        """See ``Source``: nobody tells how well it learns."""

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """See ``Source``: as of any job."""
        del application
        return usual(part)


class Systems:
    """Those on which all are judged, and the optimum of each: the sum of completion times, seconds, [S]."""

    def __init__(self) -> None:
        self.source = SmallSource(*systems(JUDGED, GOAL_SEED), shuffled=False)
        self.best = self.optima(NOBODY)

    def optima(self, never: int) -> Floats:
        """See ``_optimum``: of each system, [S]."""
        each = zip(self.source.traces, self.source.need, strict=True)
        return np.array([_optimum(result, need, never) for result, need in each], np.float64)

    def gaps(self, policy: Policy) -> Floats:
        """How much more a policy takes than the optimum, as a share of that, in each system."""
        world = Kept(LAYOUT, self.source, Conditions(JUDGED, 0))
        play(world, Level.TRAIN, 0, Bare(policy))
        return np.asarray(world.completed / self.best - 1, np.float64)


class Kept(ClusterWorld):
    """Clusters whose systems stand in their order; ``completed`` is the sum of the last episodes' times, [B]."""

    completed: Floats = np.zeros(0)

    def renew(self) -> None:
        """See ``Disturbed``: all are different."""
        super().renew()
        self.same = False

    def begin(self) -> Episodes:
        """See ``ClusterWorld``: all go as is known, as for the optimum."""
        result = super().begin()
        return result._replace(effect=np.ones_like(result.effect))

    def advance(self, state: Episodes, actions: NDArray[np.integer], conditions: Any) -> tuple[Episodes, Floats]:
        """See ``ClusterWorld``."""
        result = super().advance(state, actions, conditions)
        self.completed = result[0].clusters.completed.sum(axis=1)
        return result


@cache
def _judged() -> Systems:
    return Systems()


def rules() -> list[Row]:
    """The gap of every rule that knows what jobs need, and of the best one that never gives three GPUs."""
    judged = _judged()
    bound = _row("the best that never gives three GPUs", judged.optima(3) / judged.best - 1, "none: a bound")
    names = (AHEAD, "soonest", "srtf", "optimus", "goodput", "equal_share")
    return [bound, *(_row(name, judged.gaps(RulePolicy(name)), "") for name in names)]


def learned(seed: int) -> Floats:
    """The gaps of what is learned with a seed."""
    source = SmallSource(*systems(LEARNED_FROM, seed), shuffled=True)
    return _judged().gaps(trained(LAYOUT, source, STEPS, seed))


def agents() -> list[Row]:
    """The mean gap of what ten seeds learn."""
    gaps = np.array([learned(seed).mean() for seed in range(SEEDS)])
    spread = f"{SEEDS} seeds, {gaps.min():.4f} to {gaps.max():.4f}, {STEPS:,} steps each"
    return [_row(f"agent, PPO on all jobs ({spread})", gaps, f"≤ {GOAL:.0%} in all: {_met(gaps.max())}")]


def _met(gap: float) -> str:
    return "met" if gap <= GOAL else "missed"


def _row(name: str, gaps: Floats, goal: str) -> Row:
    values = mean_interval(gaps)
    goal = goal or f"≤ {GOAL:.0%}: {_met(values['mean'])}"
    name = f"gap to the optimum of {name} (95 %: {values['low']:.4f}–{values['high']:.4f})"
    print(name, f"{values['mean']:.4f}", flush=True)
    return {
        "name": name,
        "value": values["mean"],
        "unit": "",
        "peer": None,
        "peer_value": None,
        "ratio": None,
        "goal": goal,
    }


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows of each part."""
    known = {RULES: rules, AGENT: agents}
    return [row for part in parts for row in known[part]()]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_small", results())
