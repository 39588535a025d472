"""Model-predictive control of how many servers are on: what a number of them would cost and win until the next choice.

Each candidate is worth the response quality of the best (variant, batch size) were it held, averaged over what is not
known of the load, less the price of its servers and of turning them on or off: the terms of the objective.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.heuristics import POINTS
from app.kinds.inference.layout import Layout
from app.kinds.inference.projector import Projector
from app.kinds.inference.state import CONTROL, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
STEPS = (0, 1, 2, 4, -1, -2, -4)
"""Servers more of one class: no more are turned at one control."""
NORMAL = (-1.2816, -0.5244, 0.0, 0.5244, 1.2816)
"""Quantiles of a standard normal variable, in the middles of fifths."""
SPREAD = 0.2


class Fleets(NamedTuple):
    """R rows, N candidates.

    Attributes:
        servers: on at the end, [R, N, C].
        working: on average until then, as servers take time to start, [R, N, C].
        turned: that are turned on or off, [R, N].
    """

    servers: Integers
    working: Floats
    turned: Integers


class Planned:
    """See the module.

    Args:
        usual: requests per second of all users by which quality is weighed against cost; None: those of late.
        spread: standard deviation of the log of what will come over what is expected.
    """

    name = "planned"

    def __init__(self, usual: float | None = None, spread: float = SPREAD) -> None:
        self.usual, self.spread = usual, spread

    def wanted(self, projector: Projector, state: State) -> Integers:
        """See ``Scaler``; rows in which nobody asks for control keep what they have."""
        on = state.idle + state.busy + state.starting
        rows = np.flatnonzero(state.asked == CONTROL)
        if projector.seconds is None or not len(rows):
            return on
        seconds = np.broadcast_to(projector.seconds, (len(on), *projector.seconds.shape[-3:]))[rows]
        parts: list[Any] = [part[rows] for part in state]
        asked = State(*parts)
        fleets = candidates(projector.layout, asked)
        best = self._worth(projector.layout, asked, seconds, fleets).argmax(axis=1)
        wanted = on.copy()
        wanted[rows] = fleets.servers[np.arange(len(rows)), best]
        return wanted

    def _worth(self, layout: Layout, state: State, seconds: Floats, fleets: Fleets) -> Floats:
        """Of each candidate, per control interval and request, [R, N]."""
        weights, rate = layout.spec.weights, np.maximum(state.rate, 1e-9)
        usual = rate.sum(axis=1, keepdims=True) if self.usual is None else np.array([[self.usual]])
        price = layout.price / max(float(layout.price @ layout.maximum), 1e-300)
        lost = self._lost(layout, state, seconds, fleets) / usual
        turned = fleets.turned / (usual * layout.spec.control_seconds)
        cost = fleets.servers @ price
        worth: Floats = -(weights.quality * lost + weights.cost * cost + weights.switching * turned)
        return worth

    def _lost(self, layout: Layout, state: State, seconds: Floats, fleets: Fleets) -> Floats:
        """Σ weight · (1 − quality) of the requests of a second, if the best mode were held, [R, N]."""
        quality, span = layout.quality, _span(layout)
        scale = np.exp(self.spread * np.array(NORMAL))
        arriving = (state.rate.sum(axis=1)[:, None] * scale)[:, None, None, None, :, None]  # [R, 1, 1, 1, S, 1]
        capacity = np.einsum("rnc,rcvk->rnvk", fleets.working, layout.batches / seconds)[..., None, None]
        servers = np.maximum(fleets.working.sum(axis=2), 1e-9)[..., None, None, None, None]
        capacity = np.maximum(capacity, 1e-9)
        each = servers * layout.batches[:, None, None] / capacity  # seconds of a batch, [R, N, V, K, 1, 1]
        waiting = state.waiting.sum(axis=1)[:, None, None, None, None, None]
        queue = np.maximum(waiting + (arriving - capacity) * span * POINTS, 0.0)
        delay = queue / capacity + each  # [R, N, V, K, S, P]
        lost = np.zeros((*delay.shape[:2], *delay.shape[2:5]))
        for user, weight in enumerate(quality.weight):
            kept = quality.accuracy[:, None, None] * quality.by_delay(user, delay).mean(axis=-1)
            lost += weight * state.rate[:, user, None, None, None, None] * scale * (1 - kept)
        best: Floats = lost.min(axis=(2, 3)).mean(axis=-1)
        return best


def _span(layout: Layout) -> float:
    """Seconds until servers that are turned on at the next control would work."""
    return float(layout.spec.control_seconds + layout.startup.max(initial=0.0))


def candidates(layout: Layout, state: State) -> Fleets:
    """More or fewer servers of one class, within its bounds."""
    on, span = state.idle + state.busy + state.starting, _span(layout)
    steps = [(server, step) for server in range(len(layout.servers)) for step in STEPS if step or not server]
    change = np.zeros((len(steps), len(layout.servers)), np.int64)
    for number, (server, step) in enumerate(steps):
        change[number, server] = step
    servers = np.clip(on[:, None] + change, layout.minimum, layout.maximum)
    added = servers - on[:, None]
    started = np.maximum(added, 0) * (1 - layout.startup / span)
    working = on[:, None] + np.minimum(added, 0) + started
    return Fleets(servers, working, np.abs(added).sum(axis=2))
