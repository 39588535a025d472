"""What starts are expected to give.

Delays of requests whose ages are known only at both ends of a queue are taken evenly in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import WAIT
from app.kinds.inference.projector import Projector
from app.kinds.inference.state import State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
POINTS = (np.arange(4) + 0.5) / 4  # where along a batch, or a queue, qualities are taken


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
