"""Strategy ``lookahead``: changes of a queue's order that the search process finds to pay by simulating ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from app.charts.text import number
from app.kinds.workflow.plan_search import SearchUnavailableError
from app.kinds.workflow.plans import Floats, Indices
from app.kinds.workflow.run_times import SHORTEST
from app.kinds.workflow.scheduling.decide import Choice, is_pool
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE
from app.kinds.workflow.scheduling.planning import starting_scores
from app.kinds.workflow.scheduling.situation import QueueSituation

MOST = 40  # waiting jobs in a scenario, which holds all of them: changes that part of a queue suggests make it worse
KNOWN = 1.0  # as a predicted share: the planned seconds are taken as they are


@dataclass(frozen=True, eq=False)
class Outlook:
    """A queue at a decision: Q waiting jobs in order, R running ones, and P submitted before, by time.

    Attributes:
        need, plan, score: processors, planned seconds, and logarithm of the score in the order, of the Q waiting jobs
            and of the P submitted before, [Q + P].
        length, share: natural logarithms of the estimate in seconds and of the predicted share of it (``KNOWN``: there
            is no estimate), [Q + P].
        processors, planned, ran: processors, planned end in seconds from now, and seconds run so far, [R].
        running_length, running_share: as ``length`` and ``share``, [R].
        past: submission in seconds, ascending, [P].
        free: free processors.
        head: place of the committed job, which no other may delay; −1: none.
        waiting: number Q of waiting jobs.
        mechanism: backfilling mechanism, an index into ``MECHANISMS``.
        seed: seed of the scenarios, at least 0.
    """

    need: Indices
    plan: Floats
    score: Floats
    length: Floats
    share: Floats
    processors: Indices
    planned: Floats
    ran: Floats
    running_length: Floats
    running_share: Floats
    past: Floats
    free: int
    head: int
    waiting: int
    mechanism: int
    seed: int


@dataclass(frozen=True, eq=False)
class Alternatives:
    """K changes of the order, those that save most first, each in the same scenarios.

    Attributes:
        front: place of the job that moves to the front; −1: none, [K].
        barred: place of the job that is held back; −1: none, [K].
        gain: bounded slowdown, summed over jobs, that the change saves on average, [K].
        error: standard error of ``gain``, [K].
        accepted: whether the first of them is significantly better than the order as it is.
        scenarios: number of scenarios.
        hours: hours simulated in each.
    """

    front: Indices
    barred: Indices
    gain: Floats
    error: Floats
    accepted: bool
    scenarios: int
    hours: float


def outlook_of(situation: QueueSituation, order: Indices, mechanism: int) -> Outlook:
    """Return the jobs and processors of a queue on a single machine, as input of the search for better orders;
    ``order``: rows of its ready tasks, at most ``MOST``; ``mechanism``: index into ``MECHANISMS``."""
    state, queue, now = situation.state, situation.queue, situation.now
    speed, pool, first = float(situation.layout.nodes.speed[0]), situation.pool(), order
    which, past = pool.task[: pool.level[1]], sorted(state.submitted, key=itemgetter(0))
    users = [*(queue.users[row] for row in (*first, *which)), *(user for _, _, _, user in past)]
    estimate = np.concatenate([queue.estimate[first], queue.estimate[which], [one[2] for one in past]])
    need = np.concatenate([queue.processors[first], queue.processors[which], [one[1] for one in past]]).astype(np.int64)
    planned = np.concatenate([situation.expected[first], situation.expected[which], [one[2] for one in past]]) / speed
    planned = np.where(np.isnan(planned), float(np.median(situation.expected)) / speed, planned)
    share = np.where(np.isnan(estimate), KNOWN, situation.shares_of(users, estimate, need))
    length = np.log(np.fmax(np.where(np.isnan(estimate), planned, estimate / speed), SHORTEST))
    known = share == KNOWN
    score = starting_scores(length, np.where(known, 0.0, share), ~known, need, mechanism == EASY)
    runs = np.zeros(len(need), np.bool_)
    runs[len(first) : len(first) + len(which)] = True
    head = state.head[0] if state.head and mechanism != EASY else ""
    place = [k for k, row in enumerate(first.tolist()) if queue.names[row] == head]
    return Outlook(
        need=need[~runs],
        plan=planned[~runs],
        score=score[~runs],
        length=length[~runs],
        share=share[~runs],
        processors=need[runs],
        planned=pool.ends[: pool.level[1]] - now,
        ran=now - queue.start[which],
        running_length=length[runs],
        running_share=share[runs],
        past=np.array([one[0] for one in past], np.float64),
        free=int(pool.level[0]),
        head=place[0] if place else -1,
        waiting=len(first),
        mechanism=mechanism,
        seed=int(now) % 1_000_000_007,
    )


def look_ahead(situation: QueueSituation, choice: Choice, search: Callable[[Outlook], dict[str, Any]]) -> Choice:
    """Return ``choice`` with the change that simulating ahead accepts, if any, and a text on it.

    The order stays as it is where nothing could be changed, if more than ``MOST`` tasks wait, on several nodes, with
    parents, limits of users, other mechanisms than none and easy, and while ``search`` raises SearchUnavailableError.
    """
    order = situation.ready[np.argsort(choice.scores, kind="stable")]
    unsuited = _unsuited(situation, choice.mechanism)
    if unsuited:
        return choice._replace(text=f"order as it is: {unsuited}")
    state, queue = situation.state, situation.queue
    free = int(situation.pool().level[0])
    if choice.mechanism == NONE and state.head:
        row = queue.row[state.head[0]]
        order = np.concatenate([[row], order[order != row]])
    if len(order) < 2 or queue.processors[order[: None if choice.mechanism == EASY else 1]].min() > free:
        return choice
    if len(order) > MOST:
        return choice._replace(text=f"order as it is: {len(order):,} tasks wait, more than the {MOST} of a scenario")
    try:
        alternatives = Alternatives(**search(outlook_of(situation, order, choice.mechanism)))
    except SearchUnavailableError as problem:
        return choice._replace(text=f"not simulated ahead: {problem}")
    text = describe(alternatives, [queue.names[row] for row in order])
    if not alternatives.accepted:
        return choice._replace(text=text)
    scores, front, barred = choice.scores.copy(), int(alternatives.front[0]), int(alternatives.barred[0])
    if front >= 0:
        scores[situation.ready == order[front]] = min(0.0, float(scores.min())) - 1.0
    return choice._replace(scores=scores, fill=scores, barred=int(order[barred]) if barred >= 0 else -1, text=text)


def _unsuited(situation: QueueSituation, mechanism: int) -> str:
    """Return why scenarios can't be played for a queue; empty if they can."""
    limits = situation.layout.spec.limits_per_user
    if not is_pool(situation):
        return "only queues on one permanent machine are simulated ahead"
    if situation.queue.linked:
        return "tasks that depend on each other are not simulated ahead"
    if limits.running_tasks is not None or limits.processors is not None:
        return "queues with limits per user are not simulated ahead"
    if mechanism not in (NONE, EASY):
        return f"queues with {MECHANISMS[mechanism]} backfilling are not simulated ahead"
    return ""


def describe(alternatives: Alternatives, names: list[str]) -> str:
    """Return a text on the alternatives: what is done, what it saves, and what the next best would have saved.
    ``names``: those of the waiting jobs in order."""
    if not len(alternatives.gain):
        return ""
    over = f"{alternatives.scenarios} scenarios of {number(alternatives.hours)} h"
    best = _change(alternatives, 0, names)
    if not alternatives.accepted:
        return f"order as it is: the best of {len(alternatives.gain)} changes ({best}) is not surely better in {over}"
    after = f"; next best: {_change(alternatives, 1, names)}" if len(alternatives.gain) > 1 else ""
    return f"{best} in {over}{after}"


def _change(alternatives: Alternatives, k: int, names: list[str]) -> str:
    front, barred = int(alternatives.front[k]), int(alternatives.barred[k])
    what = f"move {names[front]} to the front" if front >= 0 else f"hold {names[barred]} back"
    return f"{what}, slowdown {-alternatives.gain[k]:+.2f} ± {alternatives.error[k]:.2f}"
