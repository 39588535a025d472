"""One run in real time: requests arrive, and servers read them under a player's decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from app.demo.api import Json
from app.demo.serving.load import Request
from app.demo.serving.players import Choice, Events, Player, Start
from app.demo.serving.pool import Answered, Pool

IDLE_SECONDS = 0.25  # longest time between two calls of the player


class Response(NamedTuple):
    """Outcome of a request; ``variant`` is empty if it was dropped.

    Attributes:
        request: the request.
        at: when it was answered or dropped, in seconds since the start.
        variant: network that answered.
        batch: number of requests answered together.
        right: share of its digits read correctly.
        quality: the variant's normalised accuracy times the discount for the delay, 0 to 1.
    """

    request: Request
    at: float
    variant: str
    batch: int
    right: float
    quality: float


class Played(NamedTuple):
    """A completed run: its player, the response of every request, and the queue's length as (seconds, length) at each
    change.
    """

    name: str
    responses: Sequence[Response]
    waiting: Sequence[tuple[float, int]]

    @property
    def quality(self) -> float:
        """Mean quality of all responses."""
        return mean(response.quality for response in self.responses)

    @property
    def right(self) -> float:
        """Mean share of correctly read digits, counting 0 for responses of no quality."""
        return mean(response.right if response.quality else 0.0 for response in self.responses)

    @property
    def delay(self) -> float:
        """Mean seconds from arrival to answer or drop."""
        return mean(response.at - response.request.at for response in self.responses)

    def of(self, user: str) -> Played:
        """The same run with one user's responses only."""
        return self._replace(responses=[one for one in self.responses if one.request.user == user])


def worth(users: Mapping[str, Json], accuracy: Mapping[str, float], request: Request, variant: str, at: float) -> float:
    """Response quality, 0 to 1: normalised accuracy × discount, which falls linearly between the user's two delays
    (seconds).
    """
    quality = users[request.user]
    late = (at - request.at - quality["full_until"]) / (quality["zero_at"] - quality["full_until"])
    return accuracy[variant] / max(accuracy.values()) * (1 - min(max(late, 0.0), 1.0))


class Run:
    """Client of a run: sends requests to the servers and records the responses."""

    def __init__(
        self,
        pool: Pool,
        player: Player,
        users: Mapping[str, Json],
        accuracy: Mapping[str, float],
        load: Sequence[Request],
    ) -> None:
        self.pool, self.player, self.users, self.accuracy, self.load = pool, player, users, accuracy, load
        self.under_way: dict[int, Start] = {}
        self.responses: dict[int, Response] = {}
        self.waiting: list[tuple[float, int]] = []
        self.came = 0

    def play(self, on_moment: Callable[[float], None]) -> Played:
        """Play the whole load in real time; ``on_moment`` is called with the seconds since the start."""
        began = time.monotonic()
        done: list[Answered] = []
        while len(self.responses) < len(self.load):
            now = time.monotonic() - began
            choice = self.player.react(self.events(now, done))
            self.carry_out(choice, now)
            on_moment(now)
            done = self.pool.wait(began + min(self.next_arrival(), self.wake(choice, now)))
        return Played(self.player.name, [self.responses[page] for page in sorted(self.responses)], self.waiting)

    def events(self, now: float, done: Sequence[Answered]) -> Events:
        """Events since the last call: arrivals and finished servers; answers are recorded as responses."""
        first = self.came
        while self.came < len(self.load) and self.load[self.came].at <= now:
            self.came += 1
        for answer in done:
            self.answered(answer, now)
        return Events(now, self.load[first : self.came], [(answer.server, now) for answer in done])

    def answered(self, answer: Answered, now: float) -> None:
        """Record the responses of a batch that a server has finished."""
        start = self.under_way.pop(answer.server)
        for page, right in zip(start.pages, answer.right, strict=True):
            request = self.load[page]
            quality = worth(self.users, self.accuracy, request, start.variant, now)
            self.responses[page] = Response(request, now, start.variant, len(start.pages), right, quality)

    def carry_out(self, choice: Choice, now: float) -> None:
        """Start batches and drop requests as chosen; record the queue's length."""
        for start in choice.starts:
            self.pool.start(start.server, start.variant, start.pages)
            self.under_way[start.server] = start
        for page in choice.dropped:
            self.responses[page] = Response(self.load[page], now, "", 0, 0.0, 0.0)
        served = sum(len(start.pages) for start in self.under_way.values())
        waiting = self.came - len(self.responses) - served
        if not self.waiting or self.waiting[-1][1] != waiting:
            self.waiting.append((now, waiting))

    def next_arrival(self) -> float:
        """Arrival of the next request in seconds since the start; infinity after the last."""
        return self.load[self.came].at if self.came < len(self.load) else float("inf")

    def wake(self, choice: Choice, now: float) -> float:
        """Latest time of the player's next call, in seconds since the start."""
        return min(now + IDLE_SECONDS, choice.wake_at if choice.wake_at is not None else float("inf"))
