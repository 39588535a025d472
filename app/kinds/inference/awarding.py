"""Whom a server works for where each user has an agent of its own: the best offer is taken.

An offer is a batch at a price per request. What it pays a second is price · requests · the user's weight over the
seconds that the batch is expected to take; the server takes the one that pays most, and of equals that of the request
that has waited longest. So at equal prices servers do most for all, and who wants more of them than that must be ready
to offer it; what an agent is paid for decides when it is. Servers are turned on or off as most agents want; where as
many want to wait, they wait.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Policy, Situation, View
from app.kinds.inference.acting import asked
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.observation import mask, observe
from app.kinds.inference.per_user import PRICES, Client, clients
from app.kinds.inference.projector import Projector
from app.kinds.inference.state import CONTROL, NOTHING_LOADED, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def awarded(projector: Projector, state: State, chosen: Integers) -> Integers:
    """The workload's actions [B] that follow from those of its users' agents, [B, U]."""
    controlled = state.asked == CONTROL
    if not controlled.any():
        return _started(projector, state, chosen)
    turned = _turned(projector.layout, chosen)
    return turned if controlled.all() else np.where(controlled, turned, _started(projector, state, chosen))


def _started(projector: Projector, state: State, chosen: Integers) -> Integers:
    """The start of the best offer, or waiting where there is none, [B]."""
    layout, rows = projector.layout, np.arange(len(chosen))
    _, variants, batches = layout.shape
    starts = variants * batches
    price, own = np.divmod(np.maximum(chosen - 1, 0), starts)
    variant, size = np.divmod(own, batches)
    offered = (chosen != WAIT) & (price < len(PRICES))
    worth = PRICES[np.minimum(price, len(PRICES) - 1)] * layout.quality.weight
    requests = np.minimum(layout.batches[size], state.waiting)
    pays = np.where(offered, worth * requests / _seconds(projector, state, variant, size), -1.0)
    longest = np.where(pays == pays.max(axis=1, keepdims=True), state.oldest, -1.0)
    user = longest.argmax(axis=1)
    return np.where(offered.any(axis=1), 1 + user * starts + own[rows, user], WAIT)


def _seconds(projector: Projector, state: State, variant: Integers, size: Integers) -> Floats:
    """That each user's batch is expected to take, loading included; 1 without a domain model, [B, U]."""
    if projector.seconds is None:
        return np.ones(variant.shape)
    server, loaded = np.maximum(state.asked, 0)[:, None], state.loaded[:, None]
    switching = np.where((loaded != NOTHING_LOADED) & (loaded != variant), projector.layout.switch[server], 0.0)
    seconds: Floats = projector.seconds[server, variant, size] + switching
    return seconds


def _turned(layout: Layout, chosen: Integers) -> Integers:
    """What most want of servers, [B]."""
    first = len(PRICES) * layout.shape[1] * layout.shape[2]
    wanted = np.maximum(chosen - first, WAIT)
    votes = (wanted[:, :, None] == np.arange(1 + 2 * len(layout.servers))).sum(axis=1) + 0.0
    votes[:, WAIT] += 0.5
    most = votes.argmax(axis=1)
    return np.where(most == WAIT, WAIT, most + layout.dispatches)


class Together:
    """The agents of all users as one policy of the workload.

    Args:
        layout: of the workload.
        policies: by user; each reads and does what ``Client`` says.
        rule: decides for users without one, at the usual price.
    """

    def __init__(self, layout: Layout, policies: Mapping[str, Policy], rule: Policy) -> None:
        self._members = [(client, policies.get(name)) for name, client in clients(layout).items()]
        self._rule = rule
        self.name = "per_user: " + ", ".join(dict.fromkeys((one or rule).name for _, one in self._members))

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``.

        Raises:
            IllegalAction: an agent chose what it may not.
        """
        projector, state = situation.projector, situation.state
        chosen = np.full(state.waiting.shape, WAIT, np.int64)
        for client, policy in self._members:
            rows = np.flatnonzero((state.asked == CONTROL) | (state.waiting[:, client.user] > 0))
            if len(rows):
                own = state if len(rows) == len(chosen) else State(*(part[rows] for part in state))
                chosen[rows, client.user] = self._wanted(projector, client, policy, own)
        return Choice(awarded(projector, state, chosen))

    def _wanted(self, projector: Projector, client: Client, policy: Policy | None, state: State) -> list[int]:
        own, alone = client.of(state), client.alone
        told = Projector(alone, projector.seconds)
        if policy is not None:
            return asked(policy, Situation(told, own, client.seen(state)))
        view = View(observe(alone, own), mask(alone, own))
        return [client.usual(action) for action in asked(self._rule, Situation(told, own, view))]
