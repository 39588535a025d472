"""Policies per user: each user's agent offers batches, and servers take the best offer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.policy import Choice, Policy, Situation, View
from app.kinds.inference.choices import choose_actions
from app.kinds.inference.dynamics import CONTROL, Projector, State, mask, observe
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.quality import slope
from app.kinds.inference.scaling import ages_of, seconds_of
from app.kinds.inference.spec import InferenceSpec

# Observation and actions of one user's agent; live and simulated use the same.
#
# It observes its own requests, rate and quality, the servers, and the mean quality of all users, nothing else of other
# users. Its actions are those of a workload with this user alone, except that each start is an *offer*, of which the
# best of all users is taken.


class Client:
    """Representation of one user's agent: its spaces, and its observation of all users' state.

    Actions are those of ``alone``: 0 waits, 1 to V·K offer one of V variants with one of K batch sizes, the batch size
    varying fastest; the last 2·C turn a server of one of C classes on or off.

    Attributes:
        user: position of the user in the layout.
        alone: layout of a workload with this user only.
        entries: names of the observation's D entries; actions: number of actions N.
    """

    def __init__(self, spec: InferenceSpec, user: int) -> None:
        self.user = user
        self.alone = Layout(spec.model_copy(update={"users": (spec.users[user],)}))
        self.entries = [*self.alone.entries, "mean_quality"]
        self.actions = self.alone.actions

    def observe(self, state: State) -> View:
        """Return the user's observation [B, D] and mask of legal actions [B, N] at B decisions of the workload."""
        own = self.of(state)
        shared = state.quality.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        return View(np.concatenate([observe(self.alone, own), shared], axis=1), mask(self.alone, own))

    def of(self, state: State) -> State:
        """Return ``state`` with the requests of this user only, and all servers."""
        own = slice(self.user, self.user + 1)
        return state._replace(
            waiting=state.waiting[:, own],
            oldest=state.oldest[:, own],
            newest=state.newest[:, own],
            rate=state.rate[:, own],
            quality=state.quality[:, own],
        )


def roles(spec: InferenceSpec) -> tuple[str, ...]:
    """Return the names of the users, or the default role if one policy decides for all."""
    return (DEFAULT_ROLE,) if spec.policies == "one" else tuple(user.name for user in spec.users)


def clients(layout: Layout) -> Mapping[str, Client]:
    """Return the representation of each user's agent, by name of the user."""
    return {name: Client(layout.spec, user) for user, name in enumerate(layout.users)}


def layouts(layout: Layout) -> Mapping[str, Layout | Client]:
    """Return the layout, or representation of a user's agent, that each role's policy is made for, by role."""
    return {DEFAULT_ROLE: layout} if layout.spec.policies == "one" else clients(layout)


# Selection among the offers of users' agents.
#
# An offer is a batch. Its value is its expected gain of the workload's objective: response quality by user weight, and
# the change of Jain's index, by its gradient at the users' present qualities (gradient scheduling: Stolyar, 2005). A
# charge for the server's seconds, at the value of their alternative use, is subtracted. The offer of largest remainder
# is taken; ties go to the request that waited longest. Agents learn which batches to offer, and when to wait. Servers
# are turned on or off by majority; ties mean waiting.


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CHARGE = 0.3  # share of the quality that a server would achieve in the same time if requests never waited
LEAST = 0.05  # least share of a user in all requests, and least value relative to a mean user's request


def award(projector: Projector, state: State, chosen: Integers) -> Integers:
    """Return the workload's action in B decisions, [B], given those of its U users' agents, ``chosen`` [B, U]: the
    offered start of highest value, or the change of servers with most votes (ties: ``WAIT``)."""
    controlled = state.context == CONTROL
    if not controlled.any():
        return _start_best_offer(projector, state, chosen)
    # Action on servers with most votes, [B]; ties with waiting mean ``WAIT``
    first = projector.layout.shape[1] * projector.layout.shape[2]
    wanted = np.maximum(chosen - first, WAIT)
    votes = (wanted[:, :, None] == np.arange(1 + 2 * len(projector.layout.servers))).sum(axis=1) + 0.0
    votes[:, WAIT] += 0.5
    most = votes.argmax(axis=1)
    turned = np.where(most == WAIT, WAIT, most + projector.layout.dispatches)
    return turned if controlled.all() else np.where(controlled, turned, _start_best_offer(projector, state, chosen))


def _start_best_offer(projector: Projector, state: State, chosen: Integers) -> Integers:
    """Return the action that starts the offered batch of highest value, of equals that of the oldest request, [B];
    ``WAIT``: there is none. ``chosen`` [B, U]: the users' agents' actions."""
    layout, rows = projector.layout, np.arange(len(chosen))
    _, variants, batches = layout.shape
    starts = variants * batches
    offered = (chosen != WAIT) & (chosen <= starts)
    own = np.where(offered, chosen - 1, 0)
    left = np.where(offered, _net_values(projector, state, *np.divmod(own, batches)), -np.inf)
    longest = np.where(left == left.max(axis=1, keepdims=True), state.oldest, -1.0)
    user = longest.argmax(axis=1)
    return np.where(offered.any(axis=1), 1 + user * starts + own[rows, user], WAIT)


def _net_values(projector: Projector, state: State, variant: Integers, size: Integers) -> Floats:
    """Return the value to the objective minus a charge for the server's time of each user's offer, [B, U], a batch with
    ``variant`` and ``size`` (positions, [B, U]); without a domain model, weight times number of requests."""
    quality, requests = projector.layout.quality, np.minimum(projector.layout.batches[size], state.waiting)
    if projector.seconds is None or projector.usual is None:
        return quality.weight * requests
    each = seconds_of(projector, state)
    seconds = each[np.arange(len(size))[:, None], variant, size]
    ages = ages_of(state, np.zeros_like(requests)[:, :, None], requests[:, :, None])[:, :, 0]  # [B, U, P]
    users = np.arange(len(quality.weight))[:, None]
    delays = quality.by_delay(users, ages + seconds[:, :, None]).mean(axis=2)
    # Value to the objective of one immediately answered request of each user, [B, U]; above 0 if quality or fairness
    # has a weight
    wanted, share = (
        projector.layout.spec.weights,
        np.maximum(projector.usual / max(float(projector.usual.sum()), 1e-300), LEAST),
    )
    value = wanted.quality * projector.layout.quality.weight + wanted.fairness * slope(state.quality) / share
    value = np.maximum(value, LEAST * (wanted.quality + wanted.fairness))
    most = (quality.accuracy[:, None] * projector.layout.batches / each).max(axis=(1, 2))  # a second, [B]
    charge = CHARGE * projector.layout.spec.weights.quality * most[:, None]
    left: Floats = value * quality.accuracy[variant] * delays * requests - charge * seconds
    return left


class Together:
    """Agents of all users combined into one policy of the workload.

    Args:
        layout: of the workload.
        policies: agents by name of the user, made for the representation of ``Client``.
        rule: policy of users without an agent.
    """

    def __init__(self, layout: Layout, policies: Mapping[str, Policy], rule: Policy) -> None:
        self._members = [(client, policies.get(name)) for name, client in clients(layout).items()]
        self._rule = rule
        self.name = "per_user: " + ", ".join(dict.fromkeys((one or rule).name for _, one in self._members))

    def act(self, situation: Situation) -> Choice:
        """Combine the offers and votes of the users' agents to one action for each of B runs, [B], by ``award``.

        Raises:
            IllegalAction: an agent chose a masked action.
        """
        projector, state = situation.projector, situation.state
        chosen = np.full(state.waiting.shape, WAIT, np.int64)
        for client, policy in self._members:
            rows = np.flatnonzero((state.context == CONTROL) | (state.waiting[:, client.user] > 0))
            if len(rows):
                own = state if len(rows) == len(chosen) else State(*(part[rows] for part in state))
                chosen[rows, client.user] = self._choose_actions(projector, client, policy, own)
        return Choice(award(projector, state, chosen))

    def _choose_actions(self, projector: Projector, client: Client, policy: Policy | None, state: State) -> list[int]:
        situation = Situation(projector.of_user(client.alone, client.user), client.of(state), client.observe(state))
        return choose_actions(policy or self._rule, situation)
