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
_POINTS = POINTS[:, None, None]  # foremost: arrays of many starts are gone through in long rows
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
        layout = projector.layout
        each = expected(projector, state)
        known = legal[:, 1 : 1 + layout.dispatches]
        score, tried = np.full(known.shape, -np.inf), _tried(layout, each, known)
        row, start = np.nonzero(tried)  # of all runs in one list: hardly a run has all starts to choose from
        score[row, start] = self._worth(layout, state, each, row, start)
        top = score.argmax(axis=1)
        return np.where(tried.any(axis=1), 1 + top, WAIT)

    def _worth(self, layout: Layout, state: State, each: Expected, row: Integers, start: Integers) -> Floats:
        """Of N starts, each of a run, [N]."""
        weights = layout.spec.weights
        user, variant, size = np.unravel_index(start, layout.shape)
        begun = _Start(row, user, each.seconds[row, variant, size], each.size[row, user, size])
        kept = each.quality[row, user, variant, size] + _kept(
            layout, state, _left(layout, state, begun), _ways(layout, each), self.horizon
        )
        loaded = state.loaded[row]
        changed = (loaded != NOTHING_LOADED) & (loaded != variant)
        return np.round(weights.quality * kept - CHANGES * weights.switching * changed, DECIMALS)


class _Start(NamedTuple):
    """N starts that are compared: in which run, whose, seconds until they end, and requests in them, [N] each."""

    row: Integers
    user: Integers
    seconds: Floats
    requests: Integers


class _Left(NamedTuple):
    """What waits after each start, and no server looks at for a while.

    Attributes:
        row: the run of each start, [N].
        waiting: requests of each user, [N, U].
        ages: of them, at points of the queue, [P, N, U].
        pause: seconds until a server is free again, [N].
    """

    row: Integers
    waiting: Floats
    ages: Floats
    pause: Floats


class _Ways(NamedTuple):
    """W ways to serve what remains: accuracy [W], seconds of a batch, and requests per second of one server, [B, W]."""

    accuracy: Floats
    seconds: Floats
    rate: Floats


def _tried(layout: Layout, each: Expected, legal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which starts are looked at, [B, U·V·K]: all that are legal, or those of most quality per second."""
    users, variants, batches = layout.shape
    most = max(WORK // (variants * min(batches, MOST_SIZES) * users * len(POINTS)), 8)
    if layout.dispatches <= most:
        return legal
    rate = (each.quality / each.seconds[:, None]).reshape(legal.shape)
    best = np.argpartition(np.where(legal, -rate, np.inf), most, axis=1)[:, :most]
    chosen = np.zeros_like(legal)
    np.put_along_axis(chosen, best, values=True, axis=1)
    return chosen & legal


def _left(layout: Layout, state: State, start: _Start) -> _Left:
    known = state.waiting[start.row]  # [N, U]
    first = np.where(start.user[:, None] == np.arange(layout.shape[0]), start.requests[:, None], 0)
    waiting = known.astype(np.float64) - first
    share = (first + _POINTS * np.maximum(waiting - 1, 0)) / np.maximum(known - 1, 1)
    oldest, newest = state.oldest[start.row], state.newest[start.row]
    servers = _servers(state)[start.row]
    return _Left(start.row, waiting, oldest + share * (newest - oldest), start.seconds / servers)


def _servers(state: State) -> Integers:
    """That take work, one at least, [B]."""
    return np.maximum((state.idle + state.busy).sum(axis=1), 1)


def _ways(layout: Layout, each: Expected) -> _Ways:
    sizes = np.unique(np.linspace(0, layout.shape[2] - 1, MOST_SIZES).round().astype(np.int64))
    seconds = each.seconds[:, :, sizes].reshape(len(each.seconds), -1)
    rate = np.tile(layout.batches[sizes], layout.shape[1]) / seconds
    return _Ways(np.repeat(layout.quality.accuracy, len(sizes)), seconds, rate)


def _kept(layout: Layout, state: State, left: _Left, ways: _Ways, horizon: float) -> Floats:
    """Σ weight · quality of what remains and comes within the horizon, served in the best of the ways, [N]."""
    quality, span, row = layout.quality, horizon * layout.quality.zero_at.mean(), left.row
    rate, seconds = (_servers(state)[:, None] * ways.rate)[row], ways.seconds[row]  # [N, W]
    total, pause = left.waiting.sum(axis=1)[:, None], left.pause[:, None]
    before = total / rate * _POINTS + seconds + pause  # [P, N, W]
    arriving, at = state.rate.sum(axis=1)[row, None], _POINTS * span
    after = np.maximum(at - pause, 0.0)
    queue = np.maximum(total + arriving * (at - after) + (arriving - rate) * after, 0.0)
    coming = np.maximum(pause - at, 0.0) + queue / rate + seconds  # delays of what comes, [P, N, W]
    kept = np.zeros(())
    for user, weight in enumerate(quality.weight):
        waits = left.ages[:, :, user, None] + before
        waited = left.waiting[:, user, None] * quality.by_delay(user, waits).mean(axis=0)
        came = span * state.rate[row, user, None] * quality.by_delay(user, coming).mean(axis=0)
        kept = kept + weight * (waited + came)
    return np.asarray((ways.accuracy * kept).max(axis=1))
