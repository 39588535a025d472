"""What became of every request of an evaluation's episodes under a policy.

Requests are the same whoever decides: they are drawn once, and told apart by episode, user and number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.inference.layout import Layout
from workers.evaluation.arena import Player, play
from workers.evaluation.levels import Level
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.arrivals import arrived
from workers.kinds.inference.simulator.world import InferenceWorld

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
GIVEN_UP = -1


class Requests(NamedTuple):
    """R requests of B episodes, by episode and user, each user's in order.

    Attributes:
        episode, user: positions, [R].
        time: seconds since the episode's start, [R].
        first: where those of each user begin, [B, U].
    """

    episode: Integers
    user: Integers
    time: Floats
    first: Integers


class Decisions(NamedTuple):
    """N decisions on what a server starts.

    Attributes:
        waiting: requests of all users, [N].
        rate: smoothed requests per second of all users, [N].
        variant: that is started, or ``GIVEN_UP`` where the server waits, [N].
        size: requests that are started at once, [N].
    """

    waiting: Integers
    rate: Floats
    variant: Integers
    size: Integers


class Answers(NamedTuple):
    """What one policy made of the requests.

    Attributes:
        requests: all of them.
        delay: seconds from arrival to answer; NaN where it was given up, [R].
        variant: that answered, or ``GIVEN_UP``, [R].
        size: requests that were answered at once, 0 where it was given up, [R].
        quality: of the response, 0 where it was given up, [R].
        decisions: how it came to that.
    """

    requests: Requests
    delay: Floats
    variant: Integers
    size: Integers
    quality: Floats
    decisions: Decisions


def answers(world: InferenceWorld, seed: int, player: Player) -> Answers:
    """Let a player decide all episodes of a fresh world at L1."""
    recorder = Recorder(world)
    play(world, Level.SEEDS, seed, player, recorder.watch)
    return recorder.answers()


def requests_of(world: InferenceWorld) -> Requests:
    """All requests of a world's present episodes; nothing in it changes."""
    users, load = len(world.layout.users), world.load
    copies: Iterator[Any] = (part.copy() for part in world.worlds[-3:])
    streams, rates, places = copies
    times = [
        arrived(load, streams, rates, places, b, u, world.given.seed[b])
        for b in range(world.batch)
        for u in range(users)
    ]
    counts = np.array([len(own) for own in times])
    episode, user = np.divmod(np.repeat(np.arange(len(times)), counts), users)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]).reshape(world.batch, users)
    return Requests(episode, user, np.concatenate(times), first)


class Recorder:
    """Watches the episodes of one world; see ``workers.evaluation.arena.Watcher``."""

    def __init__(self, world: InferenceWorld) -> None:
        self.world, self.layout = world, world.layout
        self._requests: Requests | None = None
        self._started: tuple[Integers, Integers, Integers] | None = None
        self._decisions: list[Decisions] = []

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Note what is started in the next step."""
        if self._requests is None:
            self._begin()
        self._settle()
        asked = self.world.worlds.counts[:, kernels.ASKED]
        rows = np.flatnonzero(going & (asked >= 0))
        user, variant, batch = (part[rows] for part in self.layout.dispatch_of(action))
        counts = self.world.worlds.user_count[rows, np.maximum(user, 0)]
        size = np.where(user >= 0, np.minimum(self.layout.batches[batch], counts[:, kernels.LENGTH]), 0)
        state = situation.state
        self._decisions.append(Decisions(state.waiting[rows].sum(axis=1), state.rate[rows].sum(axis=1), variant, size))
        starts = size > 0
        number = (counts[:, kernels.CAME] - counts[:, kernels.LENGTH])[starts]
        self._note(rows[starts], user[starts], number, variant[starts], size[starts], asked[rows][starts])

    def _note(
        self, rows: Integers, user: Integers, number: Integers, variant: Integers, size: Integers, server: Integers
    ) -> None:
        assert self._requests is not None  # noqa: S101  (narrows the type)
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        place = np.repeat(self._requests.first[rows, user] + number, size) + inside
        self.variant[place], self.size[place] = np.repeat(variant, size), np.repeat(size, size)
        self._started = place, np.repeat(rows, size), np.repeat(server, size)

    def _begin(self) -> None:
        self._requests = requests_of(self.world)
        count = len(self._requests.time)
        self.delay = np.full(count, np.nan)
        self.variant, self.size = np.full(count, GIVEN_UP), np.zeros(count, np.int64)

    def _settle(self) -> None:
        """When the last step's batches end."""
        if self._started is None or self._requests is None:
            return
        place, rows, server = self._started
        self.delay[place] = self.world.worlds.server_time[rows, server, kernels.UNTIL] - self._requests.time[place]
        self._started = None

    def answers(self) -> Answers:
        """What became of all requests, once the episodes are over."""
        self._settle()
        if self._requests is None:
            self._begin()
        requests = self._requests
        assert requests is not None  # noqa: S101  (narrows the type)
        return Answers(requests, self.delay, self.variant, self.size, self._quality(self.layout), self._all())

    def _quality(self, layout: Layout) -> Floats:
        answered = self.variant != GIVEN_UP
        assert self._requests is not None  # noqa: S101  (narrows the type)
        quality = layout.quality.quality(self._requests.user, self.variant, np.where(answered, self.delay, 0.0))
        return np.where(answered, quality, 0.0)

    def _all(self) -> Decisions:
        none = Decisions(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
        joined: Iterator[Any] = (np.concatenate(parts) for parts in zip(none, *self._decisions, strict=True))
        return Decisions(*joined)
