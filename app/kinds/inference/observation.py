"""What a policy sees of a state, and what it may do: the one encoder of the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import View
from app.kinds.inference.state import CONTROL, State

if TYPE_CHECKING:
    from app.kinds.inference.layout import Layout

LARGEST_AGE = 2.0  # in units of the age at which an answer is worth nothing


def seen(layout: Layout, state: State) -> View:
    """Observation [B, D] and mask [B, N] of B decisions."""
    return View(observe(layout, state), mask(layout, state))


def observe(layout: Layout, state: State) -> NDArray[np.float32]:
    """Observations of order 1, [B, D], as ``Layout.entries`` names them."""
    spec, zero_at = layout.spec, layout.quality.zero_at
    classes, variants = np.arange(len(layout.servers)), np.arange(len(layout.variants))
    parts = (
        np.log1p(state.waiting) / np.log1p(spec.queue_limit),
        np.minimum(state.oldest / zero_at, LARGEST_AGE),
        np.minimum(state.newest / zero_at, LARGEST_AGE),
        np.log1p(state.rate * zero_at),
        state.quality,
        state.idle / layout.maximum,
        state.busy / layout.maximum,
        state.starting / layout.maximum,
        np.minimum(state.next_free / zero_at.mean(), LARGEST_AGE)[:, None],
        (state.asked == CONTROL)[:, None],
        state.asked[:, None] == classes,
        state.loaded[:, None] == variants,
    )
    return np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")


def mask(layout: Layout, state: State) -> NDArray[np.bool_]:
    """Legal actions, [B, N].

    A batch is legal where as many requests wait; the smallest one where any does. A server that works isn't
    turned off. Waiting is always legal.
    """
    batch, dispatching = len(state.asked), state.asked != CONTROL
    users, variants, batches = layout.shape
    needed = np.concatenate([[1], layout.batches[1:]])
    enough = (state.waiting[:, :, None] >= needed) & dispatching[:, None, None]  # [B, U, K]
    starts = np.broadcast_to(enough[:, :, None, :], (batch, users, variants, batches)).reshape(batch, -1)
    on = state.idle + state.busy + state.starting
    off = (on > layout.minimum) & (state.busy < on)
    turns = np.stack([on < layout.maximum, off], axis=2).reshape(batch, -1) & ~dispatching[:, None]
    return np.concatenate([np.ones((batch, 1), np.bool_), starts, turns], axis=1)
