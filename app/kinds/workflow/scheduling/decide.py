"""One decision: order of the ready tasks, backfilling mechanism, and nodes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.queue import Floats, Reservations, State
from app.kinds.workflow.scheduling import dispatch, fleet
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, RLS, UNCOMMITTED, Head
from app.kinds.workflow.scheduling.fleet import OPEN, DispatchResult, Renting, Window
from app.kinds.workflow.scheduling.situation import THRIFTY, QueueSituation, ranking
from app.kinds.workflow.spec import LOOKAHEAD, PREDICTED


class Choice(NamedTuple):
    """Order of Q ready tasks by a strategy or policy.

    Attributes:
        strategy: name of the strategy or policy.
        scores: score of each ready task, smallest first, [Q].
        mechanism: backfilling mechanism, an index into ``MECHANISMS``.
        fill: scores of the backfilling order, [Q]; None: by submission.
        barred: row of a task that doesn't start at this decision; −1: none.
        text: text on the choice for the decision's reason; empty: none.
    """

    strategy: str
    scores: Floats
    mechanism: int
    fill: Floats | None = None
    barred: int = -1
    text: str = ""


Chooser = Callable[[QueueSituation], Choice]


class DispatchDecision(NamedTuple):
    """A decision, by rows of the queue and indices of nodes.

    Attributes:
        choice: order that it follows.
        order: rows of the Q ready tasks, most urgent first.
        started: tasks that start, and the window of the first waiting one.
        renting: nodes to order and to release.
        state: state after the decision, with the committed task.
    """

    choice: Choice
    order: list[int]
    started: DispatchResult
    renting: Renting
    state: State


def by_strategy(strategy: str, backfilling: str, fill: str | None = None) -> Chooser:
    """Make a function that orders ready tasks by the named strategy and backfilling mechanism. ``fill`` names the
    strategy of the backfilling order; None: by submission, but for strategies by predicted run times their own order,
    which lookahead always uses. Raises ValueError if there is no such mechanism."""
    mechanism = MECHANISMS.index(backfilling)
    fill = strategy if strategy == LOOKAHEAD else fill or (strategy if strategy in PREDICTED else None)

    def choose(situation: QueueSituation) -> Choice:
        overtaking = ranking(fill, situation) if fill else None
        return Choice(strategy, ranking(strategy, situation), mechanism, overtaking)

    return choose


def decide(situation: QueueSituation, choose: Chooser) -> DispatchDecision:
    """Make one decision: order the ready tasks by ``choose``, start tasks, and select nodes to order and release."""
    choice = choose(situation)
    order = _order_by_score(situation, choice.scores)
    fill = situation.ready if choice.fill is None else _order_by_score(situation, choice.fill)
    if choice.fill is None:
        fill = fill[np.argsort(situation.queue.submit[fill], kind="stable")]
    started = _start_tasks(situation, choice, order[order != choice.barred], fill[fill != choice.barred])
    rented = fleet.rent(situation, started.starts, order.tolist())
    state = situation.state
    state = state._replace(head=_head(situation, choice, started), reserved=started.reserved)
    return DispatchDecision(choice, order.tolist(), started, rented, state)


def _order_by_score(situation: QueueSituation, scores: Floats) -> dispatch.Indices:
    return situation.ready[np.argsort(scores, kind="stable")]


def _head(situation: QueueSituation, choice: Choice, started: DispatchResult) -> tuple[str, float, int] | tuple[()]:
    """Return the committed task's name, start in seconds, and spare processors, for the next decision; other tasks must
    not delay it. It is empty if no task is committed, and under mechanisms that commit to none."""
    window = started.window
    if window.task < 0 or choice.mechanism in (EASY, CONSERVATIVE, UNCOMMITTED):
        return ()
    return situation.queue.names[window.task], min(float(window.until), 1e300), int(window.spare)


def _start_tasks(
    situation: QueueSituation, choice: Choice, order: dispatch.Indices, fill: dispatch.Indices
) -> DispatchResult:
    if choice.mechanism == CONSERVATIVE:
        return reserving(situation, order) if is_pool(situation) else fleet.conservative(situation, order.tolist())
    if is_pool(situation):
        return on_pool(situation, choice.mechanism, order, fill)
    head = situation.state.head
    row = situation.queue.row[head[0]] if head else -1
    thrifty = choice.strategy in THRIFTY
    return fleet.decide(situation, choice.mechanism, order.tolist(), fill.tolist(), row, thrifty=thrifty)


def is_pool(situation: QueueSituation) -> bool:
    """Whether there is a single permanent node without a memory limit, as in simulations of batch logs."""
    nodes = situation.layout.nodes
    return (
        len(nodes.processors) == 1
        and bool(nodes.permanent[0])
        and bool(np.isinf(nodes.memory[0]))
        and situation.up == [0]
    )


def on_pool(
    situation: QueueSituation, mechanism: int, order: dispatch.Indices, fill: dispatch.Indices
) -> DispatchResult:
    """Decide which tasks start on a single node by the simulator's code; ``order``, ``fill``: rows of Q tasks, [Q]."""
    speed, state = float(situation.layout.nodes.speed[0]), situation.state
    tasks, chosen = situation.tasks()._replace(expected=situation.expected / speed), np.zeros(len(order) + 1, np.int64)
    before = Head(situation.queue.row[state.head[0]], *state.head[1:]) if state.head else Head(-1, np.inf, 0)
    count, head = dispatch.decide(mechanism, situation.now, before, order, fill, tasks, situation.pool(), chosen)
    started = [int(task) for task in chosen[:count]]
    window = OPEN if head.task < 0 else Window(int(head.task), 0, float(head.until), int(head.spare), np.inf)
    overtook = _overtook(order.tolist(), started, window) if mechanism in (RLS, EASY) else []
    return DispatchResult([(task, 0) for task in started], overtook, window)


def reserving(situation: QueueSituation, order: dispatch.Indices) -> DispatchResult:
    """Decide by conservative backfilling on a single node, which keeps the last decision's reservations. Overdue
    reservations are due now. Reservations may move forward if a task has ended, more processors are free than the last
    decision left, or a reservation was given up. ``order``: rows of Q ready tasks, [Q]."""
    speed, now, queue = float(situation.layout.nodes.speed[0]), situation.now, situation.queue
    tasks, chosen = situation.tasks()._replace(expected=situation.expected / speed), np.zeros(len(order), np.int64)
    done, free, before = situation.state.reserved
    rows = ((queue.row.get(name), at) for name, at in before.items())
    times = {row: max(at, now) for row, at in rows if row is not None and tasks.waiting[row]}
    reserved = np.full(len(queue), np.inf)
    reserved[list(times)] = list(times.values())
    profile = dispatch.empty_profile(len(order), len(situation.running))
    pool = situation.pool()
    level = int(pool.level[0])
    anew = situation.state.done != done or level > free or len(times) < len(before)
    count = dispatch.reserve(now, order, anew, tasks, pool, reserved, profile, chosen)
    started = chosen[:count].tolist()
    waiting = [task for task in order.tolist() if tasks.waiting[task] and reserved[task] < np.inf]
    window = Window(waiting[0], 0, float(reserved[waiting[0]]), 0, 0.0) if waiting else OPEN
    later = {queue.names[task]: float(reserved[task]) for task in waiting}
    left = level - int(queue.processors[started].sum())
    holds = Reservations(situation.state.done, left, later)
    return DispatchResult([(task, 0) for task in started], _overtook(order.tolist(), started, window), window, holds)


def _overtook(order: Sequence[int], started: Sequence[int], window: Window) -> list[int]:
    """Return those of the tasks ``started`` that come after the waiting task of ``window`` in ``order``; all are rows
    of the queue's table of tasks."""
    if window.task < 0:
        return []
    behind = set(order[order.index(window.task) :]) if window.task in order else set(order)
    return [task for task in started if task in behind]
