"""Choices of an agent's policy: on one machine the tasks that start, on several nodes the order of the ready tasks."""

from __future__ import annotations

import numpy as np

from app.kinds.workflow.policies.base import Pick, Picker
from app.kinds.workflow.policies.scheduling import schedule, view_of
from app.kinds.workflow.queue.state import Floats
from app.kinds.workflow.scheduling import fleet
from app.kinds.workflow.scheduling.decide import Choice, is_pool
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, Head, Indices, Pool
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.kinds.workflow.scheduling.strategies import ranking
from app.kinds.workflow.spec import Spec


def choose_by(policy: Picker, situation: QueueSituation, spec: Spec) -> Choice:
    """Scores of the ready tasks by a policy; on one machine also which of them start."""
    mechanism = MECHANISMS.index(spec.backfilling)
    ready = situation.ready[np.argsort(situation.queue.submit[situation.ready], kind="stable")]
    fill = None if spec.backfill_order == "fcfs" else ranking(spec.backfill_order, situation)
    if not len(ready):
        return Choice(policy.name, np.zeros(0), mechanism, fill)
    if is_pool(situation) and mechanism != CONSERVATIVE:
        return _on_pool(policy, situation, mechanism, ready, fill)
    pool = _as_one(situation)
    seen = EASY if mechanism == CONSERVATIVE else mechanism
    task, view = view_of(seen, situation.now, ready, situation.tasks(), pool, _machine(situation), situation.recent)
    picked = policy.pick(view)
    return _choice(policy, mechanism, fill, _scores(situation, task, picked), picked)


def _on_pool(policy: Picker, situation: QueueSituation, mechanism: int, ready: Indices, fill: Floats | None) -> Choice:
    """One pick after the other, each seeing what the ones before have started."""
    head, tasks = situation.state.head, situation.tasks()
    speed = float(situation.layout.nodes.speed[0])
    tasks = tasks._replace(expected=tasks.expected / speed)
    before = Head(situation.queue.row[head[0]], *head[1:]) if head else Head(-1, np.inf, 0)
    overtaking = ready if fill is None else situation.ready[np.argsort(fill, kind="stable")]
    pool, machine = situation.pool(), _machine(situation)
    first, view = view_of(mechanism, situation.now, ready, tasks, situation.pool(), machine, situation.recent)
    found = schedule(
        policy, mechanism, situation.now, before, ready, overtaking, tasks, pool, machine, situation.recent
    )
    picked = found.picks[0] if found.picks else policy.pick(view)
    scores = _scores(situation, first, picked)
    waits = found.head
    window = fleet.OPEN
    if waits.task >= 0:
        window = fleet.Window(int(waits.task), 0, float(waits.until), int(waits.spare), float("inf"))
    picks = len(found.picks)
    started = fleet.Started([(task, 0) for task in found.tasks], _overtook(found.tasks, picks, window), window)
    return _choice(policy, mechanism, fill, scores, picked)._replace(started=started)


def _overtook(tasks: list[int], picks: int, window: fleet.Window) -> list[int]:
    """Those that start beyond the picks that started: the last pick is what the others wait for."""
    return tasks[picks - 1 :] if window.task >= 0 and picks else tasks if window.task >= 0 else []


def _machine(situation: QueueSituation) -> int:
    """Processors of all nodes that take tasks."""
    return max(int(situation.layout.nodes.processors[situation.up].sum()), 1)


def _as_one(situation: QueueSituation) -> Pool:
    """All nodes as if they were one machine."""
    by_end, rows = np.argsort(situation.ends, kind="stable"), situation.running
    held = situation.queue.processors[rows]
    level = np.array([_machine(situation) - held.sum(), len(rows)])
    return Pool(level, situation.ends[by_end], held[by_end], rows[by_end], *situation.room())


def _scores(situation: QueueSituation, task: Indices, picked: Pick) -> Floats:
    """Of all ready tasks, the smallest first; those that the policy did not look at come last, by submission."""
    worst = -float(picked.scores.min(initial=0.0)) + 1.0
    scores = worst + np.argsort(np.argsort(situation.queue.submit[situation.ready], kind="stable")).astype(np.float64)
    scores[np.searchsorted(situation.ready, task)] = -picked.scores
    return scores


def _choice(policy: Picker, mechanism: int, fill: Floats | None, scores: Floats, picked: Pick) -> Choice:
    members = getattr(policy, "members", ())
    estimates = {}
    if len(picked.losses) and len(members) == len(picked.losses):
        estimates = {member.name: float(loss) for member, loss in zip(members, picked.losses, strict=True)}
    return Choice(picked.member, scores, mechanism, fill, estimates)
