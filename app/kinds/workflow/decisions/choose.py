"""Choices of an agent's policy: the order in which ready tasks start, and that in which they overtake."""

from __future__ import annotations

import numpy as np

from app.kinds.workflow.policies.base import QueuePolicy, Waiting
from app.kinds.workflow.scheduling.decide import Choice
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.kinds.workflow.scheduling.strategies import ranking
from app.kinds.workflow.spec import Spec


def choose_by(policy: QueuePolicy, situation: QueueSituation, spec: Spec) -> Choice:
    """Scores of the ready tasks by a policy; tasks overtake in its order, where it has one of its own."""
    mechanism = MECHANISMS.index(spec.backfilling)
    scores, overtaking = policy.orders(waiting_of(situation, mechanism))
    if overtaking is None and spec.backfill_order != "fcfs":
        overtaking = ranking(spec.backfill_order, situation)
    return Choice(policy.name, scores, mechanism, overtaking)


def waiting_of(situation: QueueSituation, mechanism: int) -> Waiting:
    """The ready tasks as a policy sees them."""
    ready, queue = situation.ready, situation.queue
    nodes = situation.layout.nodes
    machine = max(int(nodes.processors[situation.up].sum()), 1)
    speed = float(nodes.speed[situation.up].mean()) if situation.up else 1.0
    submit, expected, need = queue.submit[ready], situation.expected[ready], queue.processors[ready]
    requested = np.where(np.isnan(queue.estimate[ready]), expected, queue.estimate[ready]) / speed
    return Waiting(situation.now, submit, expected, requested, situation.shares, need, machine, mechanism)
