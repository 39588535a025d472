"""What the fixed episode could come to: the exact optimum of a few tasks, or the best plan that is found for more."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.spec import TERMS, Limits
from workers.evaluation.problem import LevelOptimum
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.evaluation.objective import objective_return, terms
from workers.kinds.workflow.evaluation.optimum import solve, why_not
from workers.kinds.workflow.evaluation.policies import SchedulerPolicy
from workers.kinds.workflow.evaluation.schedulers import NO_LIMITS, EpisodeScheduler, ReplayedSchedule
from workers.kinds.workflow.simulator.schedule import Schedule

TRIALS = 400
PLACEMENTS = 200_000  # tasks that are placed in all trials, at most
LOWEST = np.zeros(len(TERMS))  # no term is below 0


class Found(NamedTuple):
    """Order and nodes of a plan, and what it is worth."""

    order: NDArray[np.integer]
    node: NDArray[np.integer]
    value: float


def level_optimum(episode: Episode, limits: Limits, start: Schedule, seed: int) -> LevelOptimum:
    """The best that can be had of an episode whose future is known.

    Args:
        episode: as it turns out.
        limits: of users; with any, ``start`` is the best that is known.
        start: the best schedule so far.
        seed: of the search.
    """
    reason = why_not(episode.trace, episode.nodes, episode.weights, limits)
    if reason is None:
        best = solve(episode.trace, episode.nodes, episode.weights, start)
        if best.exact:
            policy = SchedulerPolicy(Fixed(best.schedule, remembered(best.schedule)))
            return LevelOptimum(policy, exact=True, expected=best.value, error=0.0)
        start, reason = best.schedule, f"given up after {best.branches} branches"
    value = objective_return(episode.weights, terms(episode.trace, episode.nodes, start, episode.measure))
    schedule = start if limits != NO_LIMITS else _improved(episode, start, value, seed)
    expected = objective_return(episode.weights, terms(episode.trace, episode.nodes, schedule, episode.measure))
    reason_text = f"the best plan that was found; {-expected:.5f} more can't be ruled out: {reason}"
    return LevelOptimum(
        SchedulerPolicy(Fixed(schedule, remembered(schedule))), expected=expected, error=-expected, reason=reason_text
    )


def remembered(schedule: Schedule) -> ReplayedSchedule:
    """A scheduler that replays order and nodes of a schedule."""
    return ReplayedSchedule(np.lexsort((schedule.end, schedule.start)), schedule.node, schedule.start)


class Fixed:
    """A schedule of one episode to the second; of any other, as far as it goes."""

    name = "plan"

    def __init__(self, schedule: Schedule, otherwise: EpisodeScheduler) -> None:
        self.schedule, self.otherwise = schedule, otherwise

    def play(self, episode: Episode) -> Schedule:
        """See ``EpisodeScheduler``."""
        trace, schedule = episode.trace, self.schedule
        if trace.tasks == len(schedule.start) and len(episode.nodes.speed) > schedule.node.max():
            lengths = trace.runtime / episode.nodes.speed[schedule.node]
            same = np.allclose(schedule.end - schedule.start, lengths, rtol=1e-9, atol=1e-6)
            if same and (schedule.start >= trace.submit - 1e-6).all():
                return schedule
        return self.otherwise.play(episode)


def _improved(episode: Episode, start: Schedule, value: float, seed: int) -> Schedule:
    """Hill climbing: one task at a time to another place in the order, now and then to any node."""
    random = np.random.default_rng([seed, 11])
    count, nodes = episode.trace.tasks, len(episode.nodes.kind)
    known = remembered(start)
    found, best = Found(known.order, known.node, value), start
    for _ in range(min(TRIALS, PLACEMENTS // max(count * nodes, 1))):
        order, node = _moved(found, random, nodes)
        schedule = ReplayedSchedule(order, node).play(episode)
        worthy = objective_return(episode.weights, terms(episode.trace, episode.nodes, schedule, episode.measure))
        if worthy > found.value:
            found, best = Found(order, node, worthy), schedule
    return best


def _moved(found: Found, random: np.random.Generator, nodes: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    count = len(found.order)
    there, place = random.integers(count, size=2)
    order = np.insert(np.delete(found.order, there), place, found.order[there])
    node = found.node.copy()
    if nodes > 1 and random.random() < 0.5:
        node[found.order[there]] = -1
    return order, node
