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
    known = np.concatenate([*state[:8], state.next_free[:, None]], axis=1, dtype=np.float64)
    seen_now = np.empty((len(known), len(layout.entries)), np.float32)
    last = known.shape[1]
    seen_now[:, :last] = scaled(layout, known)
    seen_now[:, last:] = layout.told[state.asked, state.loaded]
    return seen_now


def scaled(layout: Layout, known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of a state as an observation has them, in their place, [B, up to D]: ``waiting`` is the first."""
    width, users = known.shape[1], len(layout.users)
    known *= layout.factors[:width]
    counts = known[:, : 4 * users].reshape(-1, 4, users)[:, ::3]  # a view: waiting, and rate
    np.log1p(counts, out=counts)
    counts /= layout.log_limit
    return np.minimum(known, layout.ceilings[:width], out=known)


def mask(layout: Layout, state: State) -> NDArray[np.bool_]:
    """Legal actions, [B, N].

    A batch is legal where as many requests wait; the smallest where any does. A server that works is not turned off.
    Waiting is always legal.
    """
    legal = np.zeros((len(state.asked), layout.actions), np.bool_)
    legal[:, WAIT] = True
    starts, turns = slice(1, 1 + layout.dispatches), slice(1 + layout.dispatches, None)
    np.greater_equal(state.waiting.take(layout.user_of, axis=1), layout.needed, out=legal[:, starts])
    controlled = state.asked == CONTROL
    if np.count_nonzero(controlled):
        on = state.idle + state.busy + state.starting
        off = (on > layout.minimum) & (state.busy < on)
        legal[:, starts] &= ~controlled[:, None]
        legal[:, turns] = np.stack([on < layout.maximum, off], axis=2).reshape(len(on), -1) & controlled[:, None]
    return legal
