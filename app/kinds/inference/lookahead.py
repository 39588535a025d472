"""The start after which most quality is left: what the batch is worth, and what remains, were that served in one way.

One step of policy improvement (a rollout: Bertsekas, Tsitsiklis and Wu, 1997). After a start whatever else waits, and
what comes within a horizon, is served with the variant and batch size that would then be best if held: the queues drain
at its rate, from when a server is free again. It is chosen anew at each start. Starts that load another variant pay
what the workload says that costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.projector import Projector
from app.kinds.inference.starts import POINTS, Expected, Floats, Integers, expected
from app.kinds.inference.state import NOTHING_LOADED, State

HORIZON = 0.05  # short: the choice is made anew before much of what it foresees has come
MOST_SIZES = 4  # of batches, of the ways to serve what remains
CHANGES = 2.0  # a variant that is loaded in place of another is mostly followed by that again
DECIMALS = 6  # of equals the first is taken, wherever the last digits were lost
WORK = 1 << 16  # qualities that are looked up at a decision, about: of so many starts what remains is looked at


class Lookahead:
    """See the module.

    Args:
        horizon: for how long arrivals are counted, in units of the mean time until an answer is worth nothing.
    """

    name = "lookahead"

    def __init__(self, horizon: float = HORIZON) -> None:
        self.horizon = horizon

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """See ``Dispatcher``."""
        layout, weights = projector.layout, projector.layout.spec.weights
        each = expected(projector, state)
        known = legal[:, 1 : 1 + layout.dispatches]
        tried = _tried(layout, each, known)
        rows = np.arange(len(known))[:, None]
        user, variant, size = np.unravel_index(tried, layout.shape)
        left = _left(layout, state, _Start(user, each.seconds[rows, variant, size], each.size[rows, user, size]))
        ways = _ways(layout, each)
        kept = each.quality[rows, user, variant, size] + _kept(layout, state, left, ways, self.horizon)
        loaded = state.loaded[:, None]
        changed = (loaded != NOTHING_LOADED) & (loaded != variant)
        worth = np.round(weights.quality * kept - CHANGES * weights.switching * changed, DECIMALS)
        score = np.where(known[rows, tried], worth, -np.inf)
        top = score.argmax(axis=1)
        row = rows[:, 0]
        return np.where(score[row, top] > -np.inf, 1 + tried[row, top], WAIT)


class _Start(NamedTuple):
    """A starts that are compared: whose, seconds until they end, and requests in them, [B, A] each."""

    user: Integers
    seconds: Floats
    requests: Integers


class _Left(NamedTuple):
    """What waits after each start, and no server looks at for a while.

    Attributes:
        waiting: requests of each user, [B, A, U].
        ages: of them, at points of the queue, [B, A, U, P].
        pause: seconds until a server is free again, [B, A].
    """

    waiting: Floats
    ages: Floats
    pause: Floats


class _Ways(NamedTuple):
    """W ways to serve what remains: accuracy [W], seconds of a batch, and requests per second of one server, [B, W]."""

    accuracy: Floats
    seconds: Floats
    rate: Floats


def _tried(layout: Layout, each: Expected, legal: NDArray[np.bool_]) -> Integers:
    """The starts that are looked at, [B, A]: all, or those of most quality per second."""
    users, variants, batches = layout.shape
    most = max(WORK // (variants * min(batches, MOST_SIZES) * users * len(POINTS)), 8)
    if layout.dispatches <= most:
        return np.broadcast_to(np.arange(layout.dispatches), legal.shape)
    rate = (each.quality / each.seconds[:, None]).reshape(legal.shape)
    return np.argpartition(np.where(legal, -rate, np.inf), most, axis=1)[:, :most]


def _left(layout: Layout, state: State, start: _Start) -> _Left:
    waiting = np.repeat(state.waiting[:, None].astype(np.float64), start.user.shape[1], axis=1)  # [B, A, U]
    own = start.user[..., None] == np.arange(layout.shape[0])
    first = np.where(own, start.requests[..., None], 0)
    waiting -= first
    place = first[..., None] + POINTS * np.maximum(waiting - 1, 0)[..., None]
    share = place / np.maximum(state.waiting - 1, 1)[:, None, :, None]
    oldest, newest = (ages[:, None, :, None] for ages in (state.oldest, state.newest))
    servers = np.maximum((state.idle + state.busy).sum(axis=1), 1)
    return _Left(waiting, oldest + share * (newest - oldest), start.seconds / servers[:, None])


def _ways(layout: Layout, each: Expected) -> _Ways:
    sizes = np.unique(np.linspace(0, layout.shape[2] - 1, MOST_SIZES).round().astype(np.int64))
    seconds = each.seconds[:, :, sizes].reshape(len(each.seconds), -1)
    rate = np.tile(layout.batches[sizes], layout.shape[1]) / seconds
    return _Ways(np.repeat(layout.quality.accuracy, len(sizes)), seconds, rate)


def _kept(layout: Layout, state: State, left: _Left, ways: _Ways, horizon: float) -> Floats:
    """Σ weight · quality of what remains and comes within the horizon, served in the best of the ways, [B, A]."""
    quality, span = layout.quality, horizon * layout.quality.zero_at.mean()
    servers = np.maximum((state.idle + state.busy).sum(axis=1), 1)[:, None]
    rate, seconds = (part[:, None, :, None] for part in (servers * ways.rate, ways.seconds))  # [B, 1, W, 1]
    total, pause = left.waiting.sum(axis=2)[:, :, None, None], left.pause[:, :, None, None]
    before = total / rate * POINTS + seconds + pause  # [B, A, W, P]
    arriving, at = state.rate.sum(axis=1)[:, None, None, None], POINTS * span
    after = np.maximum(at - pause, 0.0)
    queue = np.maximum(total + arriving * (at - after) + (arriving - rate) * after, 0.0)
    coming = np.maximum(pause - at, 0.0) + queue / rate + seconds  # delays of what comes, [B, A, W, P]
    kept = np.zeros(())
    for user, weight in enumerate(quality.weight):
        waits = left.ages[:, :, None, user] + before
        waited = left.waiting[:, :, None, user] * quality.by_delay(user, waits).mean(axis=-1)
        came = span * state.rate[:, None, None, user] * quality.by_delay(user, coming).mean(axis=-1)
        kept = kept + weight * (waited + came)
    return np.asarray((ways.accuracy * kept).max(axis=2))
