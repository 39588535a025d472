"""What a policy sees of a state, and what it may do: the one encoder of the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import View
from app.kinds.inference.layout import WAIT
from app.kinds.inference.state import CONTROL, State

if TYPE_CHECKING:
    from app.kinds.inference.layout import Layout


def seen(layout: Layout, state: State) -> View:
    """Observation [B, D] and mask [B, N] of B decisions."""
    return View(observe(layout, state), mask(layout, state))


def observe(layout: Layout, state: State) -> NDArray[np.float32]:
    """Observations of order 1, [B, D], as ``Layout.entries`` names them."""
    users, known = len(layout.users), np.concatenate([*state[:8], state.next_free[:, None]], axis=1, dtype=np.float64)
    known *= layout.factors
    waiting, rate = known[:, :users], known[:, 3 * users : 4 * users]
    np.log1p(waiting, out=waiting)
    np.log1p(rate, out=rate)
    waiting /= layout.log_limit
    rate /= layout.log_limit
    np.minimum(known, layout.ceilings, out=known)
    last, asked = known.shape[1], known.shape[1] + 1 + len(layout.servers)
    seen_now = np.empty((len(known), asked + len(layout.variants)), np.float32)
    seen_now[:, :last] = known
    seen_now[:, last:asked] = state.asked[:, None] == layout.asked_for
    seen_now[:, asked:] = state.loaded[:, None] == layout.loadable
    return seen_now


def mask(layout: Layout, state: State) -> NDArray[np.bool_]:
    """Legal actions, [B, N].

    A batch is legal where as many requests wait; the smallest where any does. A server that works is not turned off.
    Waiting is always legal.
    """
    legal = np.zeros((len(state.asked), layout.actions), np.bool_)
    legal[:, WAIT] = True
    dispatching = (state.asked != CONTROL)[:, None]
    starts, turns = slice(1, 1 + layout.dispatches), slice(1 + layout.dispatches, None)
    np.logical_and(state.waiting[:, layout.user_of] >= layout.needed, dispatching, out=legal[:, starts])
    if not dispatching.all():
        on = state.idle + state.busy + state.starting
        off = (on > layout.minimum) & (state.busy < on)
        legal[:, turns] = np.stack([on < layout.maximum, off], axis=2).reshape(len(on), -1) & ~dispatching
    return legal
