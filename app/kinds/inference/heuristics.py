"""The classic policies of kind ``inference``: what is started on a free server, and how many servers are on.

A policy is a *dispatcher* and a *scaler*. Dispatchers score every start by what they expect of it: delays of requests
whose ages are known only at both ends of a queue are taken evenly in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.projector import Projector
from app.kinds.inference.scaling import ExpectedReturn
from app.kinds.inference.state import CONTROL, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
POINTS = (np.arange(4) + 0.5) / 4  # where along a batch, or a queue, qualities are taken
HORIZON = 0.05  # short: the choice is made anew before much of what it foresees has come
BUSY_SHARE = 0.7  # of the time, that autoscalers aim at


class Dispatcher(Protocol):
    """Chooses starts where a server is asked for."""

    name: str

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """Actions [B] among the legal ones [B, N]; what it says where control is asked for is not used."""
        ...


class Scaler(Protocol):
    """Chooses how many servers are on where control is asked for."""

    name: str

    def wanted(self, projector: Projector, state: State) -> Integers:
        """Servers of each class, [B, C]."""
        ...


class Composed:
    """A policy of a dispatcher and a scaler."""

    def __init__(self, dispatcher: Dispatcher, scaler: Scaler) -> None:
        self.dispatcher, self.scaler = dispatcher, scaler
        self.name = dispatcher.name if isinstance(scaler, AllOn) else f"{dispatcher.name}+{scaler.name}"

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        projector, state, view, _ = situation
        action = self.dispatcher.start(projector, state, view.mask)
        rows = np.flatnonzero(state.asked == CONTROL)
        if len(rows):
            controlled = State(*(part[rows] for part in state))
            action[rows] = scaled(projector.layout, controlled, self.scaler, projector.of_runs(rows), view.mask[rows])
        return Choice(action.astype(np.int64))


def scaled(layout: Layout, state: State, scaler: Scaler, projector: Projector, legal: NDArray[np.bool_]) -> Integers:
    """One step towards what the scaler wants, of the first class that hasn't it, [B]."""
    wanted = np.clip(scaler.wanted(projector, state), layout.minimum, layout.maximum)
    missing = wanted - (state.idle + state.busy + state.starting)
    action = np.full(len(state.asked), WAIT, np.int64)
    for server in reversed(range(len(layout.servers))):
        for on, needed in ((True, missing[:, server] > 0), (False, missing[:, server] < 0)):
            step = layout.scaling(server, on=on)
            action = np.where(needed & legal[:, step], step, action)
    return action


class Expected(NamedTuple):
    """What starting each (user, variant, batch size) on the server that is asked for would give.

    Attributes:
        seconds: until it ends, switching included, [B, V, K].
        size: requests in it, [B, U, K].
        quality: sum over its requests of weight · quality, [B, U, V, K].
    """

    seconds: Floats
    size: Integers
    quality: Floats


def expected(projector: Projector, state: State) -> Expected:
    """See ``Expected``; the projector has a domain model."""
    layout = projector.layout
    seconds = seconds_of(projector, state)
    size = np.minimum(layout.batches, state.waiting[:, :, None])
    ages = ages_of(state, np.zeros_like(size), size)  # [B, U, K, P]
    delay = ages[:, :, None] + seconds[:, None, :, :, None]  # [B, U, V, K, P]
    users = np.arange(len(layout.users))[:, None, None, None]
    kept = layout.quality.by_delay(users, delay).mean(axis=-1)
    worth = layout.quality.weight[:, None] * layout.quality.accuracy  # [U, V]
    return Expected(seconds, size, worth[:, :, None] * kept * size[:, :, None])


def seconds_of(projector: Projector, state: State) -> Floats:
    """Seconds of a batch of each variant and size on the server that is asked for, switching included, [B, V, K]."""
    server = np.maximum(state.asked, 0)
    if projector.seconds is None:
        raise ValueError("without a domain model nothing is known of how long batches take")
    other = state.loaded[:, None] != np.arange(len(projector.layout.variants))
    switching = np.where(other, projector.layout.switch[server][:, None], 0.0)
    each = projector.seconds if projector.seconds.ndim == 4 else projector.seconds[None]
    rows = np.arange(len(server)) if len(each) > 1 else 0
    seconds: Floats = each[rows, server] + switching[:, :, None]
    return seconds


def ages_of(state: State, first: Integers, count: Integers) -> Floats:
    """How long ``count`` requests from the ``first`` on have waited: [B, U, K], at P points of them [B, U, K, P]."""
    position = first[..., None] + POINTS * np.maximum(count - 1, 0)[..., None]
    share = position / np.maximum(state.waiting - 1, 1)[:, :, None, None]
    ages: Floats = state.oldest[:, :, None, None] + share * (state.newest - state.oldest)[:, :, None, None]
    return ages


def best(projector: Projector, score: Floats, legal: NDArray[np.bool_]) -> Integers:
    """The legal start of the highest score [B, U, V, K], or waiting where there is none, [B]."""
    starts = slice(1, 1 + projector.layout.dispatches)
    scores = np.where(legal[:, starts], score.reshape(len(score), -1), -np.inf)
    top = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(scores)), top] > -np.inf, top + 1, WAIT).astype(np.int64)


class FirstComeFirstServed:
    """The request that has waited longest, with one variant, in batches up to one size.

    Args:
        variant: its position; the fastest is unknown without a domain model, the least accurate is assumed to be.
        batch: position of the largest size.
    """

    def __init__(self, variant: int | None = None, batch: int = -1, name: str = "first_come_first_served") -> None:
        self.variant, self.batch, self.name = variant, batch, name

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        layout = projector.layout
        users, variants, batches = layout.shape
        variant = int(layout.quality.accuracy.argmin()) if self.variant is None else self.variant
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        size = np.arange(batches)
        allowed = (size <= (self.batch % batches)) & (np.arange(variants)[:, None] == variant)
        score = np.where(allowed, longest + 1e-9 * size, -np.inf)
        return best(projector, np.broadcast_to(score, (len(state.asked), users, variants, batches)), legal)


class ShortestDelay:
    """Whatever answers the request that has waited longest soonest: the fastest variant, in the smallest batch."""

    name = "shortest_delay"

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        fastest = -seconds_of(projector, state)[:, None]
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        return best(projector, longest * 1e6 + fastest, legal)


class LargestBatch:
    """For the request that has waited longest: the largest batch, then the most accurate variant, in full quality.

    Where nothing is quick enough for full quality, what answers soonest.
    """

    name = "largest_batch"

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        quality, seconds = projector.layout.quality, seconds_of(projector, state)[:, None]
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        intime = longest + seconds <= quality.full_until[:, None, None]
        preferred = np.arange(projector.layout.shape[2]) + quality.accuracy[:, None]
        return best(projector, longest * 1e6 + np.where(intime, 1e3 + preferred, -seconds), legal)


class QualityRate:
    """Most response quality per second of the server: Σ weight · quality over the batch's seconds."""

    name = "quality_rate"

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        each = expected(projector, state)
        return best(projector, each.quality / each.seconds[:, None], legal)


class Lookahead:
    """Receding horizon: the variant and batch size that would be best if held for a while, chosen anew at each start.

    Were they held, the queues would drain at their rate against arrivals at the present one; requests that wait then
    wait for those before them, and new ones for what waits when they come. The user served is the one whose requests
    lose most by one more batch.

    Args:
        horizon: for how long arrivals are counted, in units of the mean time until an answer is worth nothing.
    """

    name = "lookahead"

    def __init__(self, horizon: float = HORIZON) -> None:
        self.horizon = horizon

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        layout = projector.layout
        each = expected(projector, state)
        held = _held(projector, state, each, self.horizon)
        mode = held.reshape(len(held), -1).argmax(axis=1)
        variant, largest = np.unravel_index(mode, held.shape[1:])
        fitting = np.searchsorted(layout.batches, state.waiting)  # the size that takes all of a user's, [B, U]
        size = np.minimum(fitting, largest[:, None])
        urgent = _urgency(projector, state, each, variant, size)
        chosen = (np.arange(layout.shape[1])[:, None] == variant[:, None, None, None]) & (
            np.arange(layout.shape[2]) == size[:, :, None, None]
        )
        return best(projector, np.where(chosen, urgent[:, :, None, None], -np.inf), legal)


def _held(projector: Projector, state: State, each: Expected, horizon: float) -> Floats:
    """Σ weight · quality of what waits and comes within the horizon, if a variant and size were held, [B, V, K]."""
    layout, quality = projector.layout, projector.layout.quality
    servers = np.maximum((state.idle + state.busy).sum(axis=1), 1)[:, None, None]
    rate = servers * layout.batches / each.seconds  # requests per second, [B, V, K]
    waiting, arriving = state.waiting.sum(axis=1)[:, None, None], state.rate.sum(axis=1)[:, None, None]
    span = horizon * quality.zero_at.mean()
    queue = np.maximum(waiting[..., None] + (arriving - rate)[..., None] * span * POINTS, 0)
    coming = queue / rate[..., None] + each.seconds[..., None]  # delays of what comes, [B, V, K, P]
    ages = ages_of(state, np.zeros_like(state.waiting)[:, :, None], state.waiting[:, :, None])[:, :, 0]  # [B, U, P]
    before = (waiting / rate)[..., None] * POINTS + each.seconds[..., None]  # [B, V, K, P]
    users = np.arange(len(layout.users))[:, None, None, None]
    kept_waiting = quality.by_delay(users, ages[:, :, None, None] + before[:, None]).mean(axis=-1)
    kept_coming = quality.by_delay(users, coming[:, None]).mean(axis=-1)  # [B, U, V, K]
    count_waiting, count_coming = (quality.weight * n for n in (state.waiting, state.rate * span))
    total = count_waiting[:, :, None, None] * kept_waiting + count_coming[:, :, None, None] * kept_coming
    held: Floats = quality.accuracy[:, None] * total.sum(axis=1)
    return held


def _urgency(projector: Projector, state: State, each: Expected, variant: Integers, size: Integers) -> Floats:
    """Σ weight · quality that each user's batch loses if it is started one batch later, per second of it, [B, U]."""
    rows, users = np.arange(len(variant))[:, None], np.arange(len(projector.layout.users))
    seconds = each.seconds[rows, variant[:, None], size]  # [B, U]
    count = each.size[rows, users, size]
    ages = ages_of(state, np.zeros_like(count)[:, :, None], count[:, :, None])[:, :, 0]
    now = ages + seconds[..., None]
    quality = projector.layout.quality
    lost = (
        quality.by_delay(users[:, None], now)
        - quality.by_delay(users[:, None], now + seconds.max(axis=1)[:, None, None])
    ).mean(axis=-1)
    oldest = 1e-6 * (ages[..., 0] + 1e-9) / quality.zero_at  # where nothing is lost yet
    return np.where(state.waiting > 0, quality.weight * count * (lost + oldest) / seconds, -np.inf)


class AllOn:
    """Every server, all the time."""

    name = "all_on"

    def wanted(self, projector: Projector, state: State) -> Integers:
        """See ``Scaler``."""
        return np.broadcast_to(projector.layout.maximum, state.idle.shape)


class Fixed:
    """The same number of servers of each class throughout.

    Args:
        servers: [C].
    """

    def __init__(self, servers: tuple[int, ...]) -> None:
        self.servers, self.name = servers, "fixed_" + "_".join(map(str, servers))

    def wanted(self, projector: Projector, state: State) -> Integers:  # noqa: ARG002
        """See ``Scaler``."""
        return np.broadcast_to(np.array(self.servers), state.idle.shape)


class Utilisation:
    """⌈servers that arrivals keep busy / target⌉, as the Kubernetes horizontal autoscaler aims at it, cheapest first.

    Args:
        target: share of the time that servers are to be busy.
        variant: whose seconds in the largest batch are counted; None: the most accurate.
    """

    def __init__(self, target: float = BUSY_SHARE, variant: int | None = None) -> None:
        self.target, self.variant, self.name = target, variant, f"utilisation_{target:g}"

    def wanted(self, projector: Projector, state: State) -> Integers:
        """See ``Scaler``."""
        layout = projector.layout
        if projector.seconds is None:
            return np.broadcast_to(layout.maximum, state.idle.shape)
        variant = int(layout.quality.accuracy.argmax()) if self.variant is None else self.variant
        each = (projector.seconds[:, variant] / layout.batches).min(axis=1)  # seconds of a request, [C]
        missing = state.rate.sum(axis=1) / self.target  # requests per second that are to be served
        wanted = np.zeros(state.idle.shape, np.int64)
        for server in np.argsort(layout.price * each, kind="stable"):
            wanted[:, server] = np.clip(np.ceil(missing * each[server]), 0, layout.maximum[server])
            missing = missing - wanted[:, server] / each[server]
        return wanted


def statics(layout: Layout) -> Mapping[str, Composed]:
    """First come, first served with every variant and every batch size, on all servers."""
    found = {}
    for variant, name in enumerate(layout.variants):
        for batch, size in enumerate(layout.batches):
            rule = FirstComeFirstServed(variant, batch, f"{name}_{size}")
            found[rule.name] = Composed(rule, AllOn())
    return found


WITHOUT_MODEL = Composed(FirstComeFirstServed(), AllOn())
BASELINES = (
    Composed(Lookahead(), ExpectedReturn()),
    Composed(Lookahead(), AllOn()),
    Composed(QualityRate(), AllOn()),
    Composed(LargestBatch(), AllOn()),
    Composed(LargestBatch(), Utilisation()),
    Composed(ShortestDelay(), AllOn()),
    WITHOUT_MODEL,
)
