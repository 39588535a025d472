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
from app.kinds.inference.state import CONTROL, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
POINTS = (np.arange(4) + 0.5) / 4  # where along a batch, or a queue, qualities are taken
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
        projector, state, view = situation
        action = self.dispatcher.start(projector, state, view.mask)
        controlled = state.asked == CONTROL
        if controlled.any():
            action = np.where(controlled, scaled(projector.layout, state, self.scaler, projector, view.mask), action)
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
    seconds: Floats = projector.seconds[server] + switching[:, :, None]
    return seconds


def ages_of(state: State, first: Integers, count: Integers) -> Floats:
    """How long ``count`` requests from the ``first`` on have waited: [B, U, K], at P points of them [B, U, K, P]."""
    position = first[..., None] + POINTS * np.maximum(count - 1, 0)[..., None]
    share = position / np.maximum(state.waiting - 1, 1)[:, :, None, None]
    ages: Floats = state.oldest[:, :, None, None] + share * (state.newest - state.oldest)[:, :, None, None]
    return ages


def best(projector: Projector, score: Floats, legal: NDArray[np.bool_], wait: float = -np.inf) -> Integers:
    """The legal start of the highest score [B, U, V, K], or waiting where none is above ``wait``, [B]."""
    starts = slice(1, 1 + projector.layout.dispatches)
    scores = np.where(legal[:, starts], score.reshape(len(score), -1), -np.inf)
    top = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(scores)), top] > wait, top + 1, WAIT).astype(np.int64)


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
    """What leaves most quality in all: of the batch, of the requests that must wait for its end, less its time's price.

    The others are served by all servers that are on, at the highest rate of requests of any variant. Seconds beyond
    those that the batch's requests take at that rate cost the requests that come meanwhile, times the load: the share
    of the servers that these take at that rate.
    """

    name = "lookahead"

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        each = expected(projector, state)
        rate = _highest_rate(projector, each)
        servers = np.maximum((state.idle + state.busy).sum(axis=1), 1)
        arrivals = np.minimum(state.rate.sum(axis=1) / servers, rate)
        price = arrivals * (arrivals / rate)  # requests that come in a second, times the chance that they wait for it
        lost = each.seconds[:, None] - (each.size / rate[:, None, None])[:, :, None]
        score = each.quality + postponed(projector, state, each, servers) - price[:, None, None, None] * lost
        return best(projector, score, legal)


def _highest_rate(projector: Projector, each: Expected) -> Floats:
    """Requests per second of the fastest variant in its best batch size, of one server, [B]."""
    rates: Floats = (projector.layout.batches / each.seconds).reshape(len(each.seconds), -1).max(axis=1)
    return rates


def postponed(projector: Projector, state: State, each: Expected, servers: Integers) -> Floats:
    """Σ weight · quality of the requests that a start leaves waiting, [B, U, V, K], up to what is the same for all.

    Args:
        servers: that are on, [B].
    """
    untouched = _postponed(projector, state, each, servers, np.zeros_like(each.size))
    remaining = _postponed(projector, state, each, servers, each.size)
    return untouched.sum(axis=1, keepdims=True) - untouched + remaining


def _postponed(projector: Projector, state: State, each: Expected, servers: Integers, started: Integers) -> Floats:
    """The same of each user's own requests but the first ``started`` [B, U, K]."""
    quality, batches = projector.layout.quality, projector.layout.batches
    quickest = each.seconds.min(axis=1)  # of the batch sizes, [B, K]
    rate = _highest_rate(projector, each) * servers
    left = state.waiting[:, :, None] - started
    fitting = np.minimum(np.searchsorted(batches, left), len(batches) - 1)  # the batch size that takes them
    own = np.take_along_axis(quickest[:, None], fitting, axis=2)  # [B, U, K]
    ahead = (left.sum(axis=1, keepdims=True) / rate[:, None, None])[..., None] * POINTS
    ages = ages_of(state, started, left) + ahead + own[..., None]
    delay = ages[:, :, None] + (each.seconds / servers[:, None, None])[:, None, :, :, None]
    users = np.arange(len(projector.layout.users))[:, None, None, None]
    kept = quality.by_delay(users, delay).mean(axis=-1)
    weighted: Floats = (quality.weight[:, None] * left)[:, :, None] * kept
    return weighted


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
    Composed(Lookahead(), AllOn()),
    Composed(Lookahead(), Utilisation()),
    Composed(QualityRate(), AllOn()),
    Composed(LargestBatch(), AllOn()),
    Composed(LargestBatch(), Utilisation()),
    Composed(ShortestDelay(), AllOn()),
    WITHOUT_MODEL,
)
