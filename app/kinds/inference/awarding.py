"""Quality of answers, and what each user is credited."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.policy import Choice, Policy, Situation, View
from app.kinds.inference.choices import asked
from app.kinds.inference.dynamics import CONTROL, Projector, State, mask, observe
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.quality import slope
from app.kinds.inference.scaling import ages_of, seconds_of
from app.kinds.inference.spec import InferenceSpec

# What one user's agent sees and may do where every user has its own: the one encoder of it.
#
# It sees its own requests, rate and quality, the servers, and the mean of all users' qualities, which the service tells
# everybody; nothing else of other users. It does what a policy could in a workload with no other user in it, but that
# each start is an *offer*, of which the best of all users' is taken. See ``awarding``.


class Client:
    """The representation of one user's agent: of its spaces, and of what it sees of a state of all users.

    Actions are those of ``alone``: 0 waits, the V·K after it offer (variant, batch size), the last fastest; the 2·C
    after them turn servers on or off.

    Attributes:
        user: its position.
        alone: of a workload that no other user is in.
    """

    def __init__(self, spec: InferenceSpec, user: int) -> None:
        self.user = user
        self.alone = Layout(spec.model_copy(update={"users": (spec.users[user],)}))
        self.entries = [*self.alone.entries, "mean_quality"]
        self.actions = self.alone.actions

    def seen(self, state: State) -> View:
        """Observation [B, D] and mask [B, N] of B decisions of all users' workload."""
        own = self.of(state)
        shared = state.quality.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        return View(np.concatenate([observe(self.alone, own), shared], axis=1), mask(self.alone, own))

    def of(self, state: State) -> State:
        """B decisions as far as they are the user's: its requests, and all servers."""
        own = slice(self.user, self.user + 1)
        return state._replace(
            waiting=state.waiting[:, own],
            oldest=state.oldest[:, own],
            newest=state.newest[:, own],
            rate=state.rate[:, own],
            quality=state.quality[:, own],
        )


def roles(spec: InferenceSpec) -> tuple[str, ...]:
    """The users' names, or the default role where one policy answers for all."""
    return (DEFAULT_ROLE,) if spec.policies == "one" else tuple(user.name for user in spec.users)


def clients(layout: Layout) -> Mapping[str, Client]:
    """The representation of each user's agent."""
    return {name: Client(layout.spec, user) for user, name in enumerate(layout.users)}


def layouts(layout: Layout) -> Mapping[str, Layout | Client]:
    """What each role's policy reads and does."""
    return {DEFAULT_ROLE: layout} if layout.spec.policies == "one" else clients(layout)


# Whom a server works for where each user has an agent of its own: the best offer is taken.
#
# An offer is a batch. Its worth is what the workload's objective is expected to gain by it: the response quality of its
# requests, by the user's weight, and what that moves Jain's index by, as its slope at the users' present qualities has
# it (gradient scheduling: Stolyar, 2005). From that goes what the server's seconds cost, which all are charged alike:
# what they could be worth to others. The server takes the offer of which most is left, and of equals that of the
# request that has waited longest. So servers do most for all, whatever each agent knows of the others, and what an
# agent learns is which batches to offer, and when to wait. Servers are turned on or off as most agents want; where as
# many want to wait, they wait.


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CHARGE = 0.3  # of the quality that a server could give in the same time, were every request answered at once
LEAST = 0.05  # of all requests that are a user's; of what a mean user's request is worth


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
    offered = (chosen != WAIT) & (chosen <= starts)
    own = np.where(offered, chosen - 1, 0)
    left = np.where(offered, _left(projector, state, *np.divmod(own, batches)), -np.inf)
    longest = np.where(left == left.max(axis=1, keepdims=True), state.oldest, -1.0)
    user = longest.argmax(axis=1)
    return np.where(offered.any(axis=1), 1 + user * starts + own[rows, user], WAIT)


def _left(projector: Projector, state: State, variant: Integers, size: Integers) -> Floats:
    """What is left of each user's offer, [B, U]; without a domain model, what its requests weigh."""
    quality, requests = projector.layout.quality, np.minimum(projector.layout.batches[size], state.waiting)
    if projector.seconds is None or projector.usual is None:
        return quality.weight * requests
    each = seconds_of(projector, state)
    seconds = each[np.arange(len(size))[:, None], variant, size]
    ages = ages_of(state, np.zeros_like(requests)[:, :, None], requests[:, :, None])[:, :, 0]  # [B, U, P]
    users = np.arange(len(quality.weight))[:, None]
    kept = quality.by_delay(users, ages + seconds[:, :, None]).mean(axis=2)
    value = _value(projector.layout, projector.usual, state)
    most = (quality.accuracy[:, None] * projector.layout.batches / each).max(axis=(1, 2))  # a second, [B]
    charge = CHARGE * projector.layout.spec.weights.quality * most[:, None]
    left: Floats = value * quality.accuracy[variant] * kept * requests - charge * seconds
    return left


def _value(layout: Layout, usual: Floats, state: State) -> Floats:
    """What a request of each user, answered at once, is worth to the objective, [B, U]: never nothing."""
    wanted, share = layout.spec.weights, np.maximum(usual / max(float(usual.sum()), 1e-300), LEAST)
    value = wanted.quality * layout.quality.weight + wanted.fairness * slope(state.quality) / share
    return np.maximum(value, LEAST * (wanted.quality + wanted.fairness))


def _turned(layout: Layout, chosen: Integers) -> Integers:
    """What most want of servers, [B]."""
    first = layout.shape[1] * layout.shape[2]
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
        rule: offers for users without one.
    """

    def __init__(self, layout: Layout, policies: Mapping[str, Policy], rule: Policy) -> None:
        self._members = [(client, policies.get(name)) for name, client in clients(layout).items()]
        self._rule = rule
        self.name = "per_user: " + ", ".join(dict.fromkeys((one or rule).name for _, one in self._members))

    def act(self, situation: Situation) -> Choice:
        """The start or the numbers of servers that the users' offers come to, for each run [B].

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
        situation = Situation(projector.of_user(client.alone, client.user), client.of(state), client.seen(state))
        return asked(policy or self._rule, situation)
