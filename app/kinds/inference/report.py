"""Ledger of a live run, and the schemas of its reports."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from math import exp
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from app.kinds.columns import LATEST
from app.kinds.fields import Part
from app.kinds.inference.dynamics import BATCHES, CONTROL, NONE, NOTHING_LOADED, PARTS, State, Transitions, part_of
from app.kinds.inference.layout import Layout
from app.kinds.inference.queue import Batch, Fleet, RunState, Server, Waiting
from app.kinds.inference.samples import LARGEST

# Mutable state of a run. The service and clients that decide use the same code.


IDLE, BUSY, STARTING = range(3)
_NEVER = (0,) * (PARTS + 1)
TOO_OLD, TOO_MANY = "too_old", "too_many"


class DroppedRequest(NamedTuple):
    """A dropped request: position of its user, its name, and ``TOO_OLD`` or ``TOO_MANY``."""

    user: int
    id: str
    why: str


class Row(NamedTuple):
    """The ``numbers`` at one decision, in the order of ``State``; position of the server class to decide for
    (``context``) or ``CONTROL`` (decides the number of servers); and of the variant ``loaded`` there, or
    ``NOTHING_LOADED``."""

    numbers: list[float]
    context: int
    loaded: int


Durations = Sequence[Sequence[Sequence[float]]]
"""Expected seconds per batch by class, variant and size, [C][V][K], as lists: faster to read one by one."""


class Ledger:
    """Queues and servers of a run, updated by events; constructed from a ``RunState``, converted back by ``state``.

    Attributes:
        now: seconds since the run's start.
        dropped: requests dropped since construction.
        servers: servers that are on, by position in the fleet.
        carried: whether the client decides.
        ended: batches finished since construction, with the server's position.
        worth, judged: sum of the qualities of requests answered or dropped since construction, and their number, both
            weighted by user.
        midnight, counted_from: second of the UTC day at the run's start, and start of the present count of arrivals.
    """

    def __init__(self, layout: Layout, fleet: Fleet, seconds: Durations | None, state: RunState) -> None:
        self.layout, self.fleet = layout, fleet
        self.now, self.control, self.requests = state.now, state.control, state.requests
        self.dropped: list[DroppedRequest] = []
        self.servers: dict[int, Server] = dict(state.servers)
        self._seconds, self.carried = seconds, state.carried
        self._at = [deque(queue.at) for queue in state.queues]
        self._ids = [deque(queue.ids) for queue in state.queues]
        self._rate, self._answered, self._quality = list(state.rate), list(state.answer_count), list(state.quality)
        self._zero_at = fleet.zero_at
        self._ended = deque(state.ended, BATCHES)
        self._arrived = [[*counts] for counts in state.arrived or [_NEVER] * len(state.queues)]
        self._part = part_of(state.now, layout.spec.control_seconds)
        self._counts = [[0] * len(layout.servers) for _ in range(3)]
        self._soonest: float | None = None
        self.ended: list[tuple[int, Batch]] = []
        self.worth = self.judged = 0.0
        self.midnight, self.counted_from = state.midnight, state.counted_from
        self._arrivals = list(state.counts) or [0] * len(layout.users)
        for place, server in self.servers.items():
            self._counts[_status(server)][fleet.of[place]] += 1

    def state(self) -> RunState:
        """Return the immutable state of the run."""
        queues = tuple([Waiting(tuple(at), tuple(ids)) for at, ids in zip(self._at, self._ids, strict=True)])
        return RunState(
            self.now,
            self.control,
            queues,
            dict(self.servers),
            tuple(self._rate),
            tuple(self._answered),
            tuple(self._quality),
            self.requests,
            self.carried,
            self.midnight,
            self.counted_from,
            tuple(self._arrivals),
            tuple(self._ended),
            tuple([tuple(counts) for counts in self._arrived]),
        )

    def pass_time(self, now: float) -> None:
        """Advance to ``now`` seconds since the run's start; rates and quality sums decay. Earlier times do nothing."""
        elapsed = now - self.now
        if elapsed > 0:
            spec = self.layout.spec
            rate, known = exp(-elapsed / spec.control_seconds), exp(-elapsed / spec.episode_seconds)
            self._rate = [value * rate for value in self._rate]
            self._answered = [value * known for value in self._answered]
            self._quality = [value * known for value in self._quality]
            self.now = now
            part = part_of(now, spec.control_seconds)
            new = min(part - self._part, PARTS + 1)
            if new > 0:
                self._arrived = [[*counts[new:], *_NEVER[:new]] for counts in self._arrived]
                self._part = part

    def arrive(self, user: int, at: float, name: str | None) -> None:
        """Add a request of ``user`` (a position) that arrived at ``at`` seconds, not after ``now``; ``name`` None: it
        gets a number."""
        self._at[user].append(at)
        self._ids[user].append(f"#{self.requests}" if name is None else name)
        self.requests += 1
        self._arrivals[user] += 1
        window = self.layout.spec.control_seconds
        self._rate[user] += exp((at - self.now) / window) / window
        ago = self._part - part_of(at, window)
        if ago <= PARTS:
            self._arrived[user][-1 - ago] += 1

    def finish(self, place: int, at: float) -> None:
        """Finish the batch of the server at ``place`` at ``at`` seconds since the run's start, and count its answers.

        Raises KeyError for a server that is off, and AssertionError for an idle one."""
        server = self.servers[place]
        assert server.batch is not None  # noqa: S101 - callers check that it is busy
        user, variant, arrived = server.batch.user, server.batch.variant, server.batch.at
        quality = self.layout.quality.total(user, variant, [at - one for one in arrived])
        self._count(user, len(arrived), quality, at)
        self.ended.append((place, server.batch))
        self._note_pace(place, server.batch, at)
        self._put(place, Server(up=True, loaded=server.loaded))

    def _note_pace(self, place: int, batch: Batch, at: float) -> None:
        """Record the ratio of a finished batch's seconds to those expected; nothing without a domain model."""
        if self._seconds is None:
            return
        size = bisect_left(self.layout.spec.batches, len(batch.at))
        position = self.fleet.of[place]
        expected = self._seconds[position][batch.variant][size]
        _, variants, sizes = self.layout.shape
        which = (position * variants + batch.variant) * sizes + size
        self._ended.append((which, (expected + at - batch.until) / expected))

    def turn(self, place: int, status: str) -> None:
        """Set the server at ``place`` to `starting`, `up` or `down`; requests of a batch on one that goes down wait
        again."""
        server = self.servers.get(place)
        if status == "down":
            if server is not None and server.batch is not None:
                user = server.batch.user
                waiting: Sequence[tuple[float, str]] = sorted(
                    [
                        *zip(server.batch.at, server.batch.ids, strict=True),
                        *zip(self._at[user], self._ids[user], strict=True),
                    ],
                    key=lambda request: request[0],
                )
                self._at[user] = deque(at for at, _ in waiting)
                self._ids[user] = deque(name for _, name in waiting)
            self._put(place, None)
        elif server is None:
            self._put(place, Server(up=status == "up"))
        elif status == "up" and not server.up:
            self._put(place, Server(up=True))

    @property
    def scalable(self) -> bool:
        """Whether any class may have more or fewer servers on."""
        return self.fleet.scalable

    def turn_on(self, position: int) -> int:
        """Turn on the first server that is off of the class with index ``position``; return its index in the fleet,
        from 0.

        Raises StopIteration if none is off."""
        place = next(place for place in self.fleet.members(position) if place not in self.servers)
        self._put(place, Server(up=not self.layout.startup[position]))
        return place

    def turn_off(self, position: int) -> int:
        """Turn off the last starting server of the class with index ``position``, else the last idle one; return its
        index in the fleet. Raises ValueError if all that are on are busy."""
        free = [place for place in self.fleet.members(position) if place in self.servers and not self.busy(place)]
        place = max(free, key=lambda place: (not self.servers[place].up, place))
        self._put(place, None)
        return place

    def drop(self) -> None:
        """Drop requests whose answer is worth nothing by now, and the oldest beyond ``queue_limit`` of each user."""
        limit = self.layout.spec.queue_limit
        for user, (at, zero) in enumerate(zip(self._at, self._zero_at, strict=True)):
            while at and at[0] + zero <= self.now:  # as `wake_at` has it, to the last digit
                self._drop(user, TOO_OLD, at[0] + zero)
            while len(at) > limit:
                self._drop(user, TOO_MANY, self.now)

    def start(self, place: int, user: int, variant: int, size: int) -> Batch:
        """Start a batch of the user's oldest requests, at most ``size``, with ``variant`` on the idle server at
        ``place``; raises KeyError if that is off or, with a domain model, if ``size`` isn't in the spec."""
        seconds = self.expected(place, self.servers[place].loaded, variant, size)
        count = min(size, len(self._at[user]))
        at = tuple([self._at[user].popleft() for _ in range(count)])
        ids = tuple([self._ids[user].popleft() for _ in range(count)])
        batch = Batch(user, variant, self.now, self.now + (seconds or 0.0), at, ids)
        self._put(place, Server(up=True, loaded=variant, batch=batch))
        return batch

    def expected(self, place: int, loaded: int, variant: int, size: int) -> float | None:
        """Return the expected seconds of a batch of ``variant`` on the server at ``place`` with variant ``loaded``,
        loading included; None without a domain model."""
        if self._seconds is None:
            return None
        position = self.fleet.of[place]
        alone = self._seconds[position][variant][self.fleet.size_at[size]]
        return alone if loaded in (NOTHING_LOADED, variant) else alone + self.fleet.switch[position]

    def expected_of_each(self, place: int, loaded: int, size: int) -> list[float]:
        """Return the expected seconds, [V], of a batch of ``size`` requests with each of V variants on the server at
        position ``place``; empty without a domain model. They include loading the variant, unless it is ``loaded`` or
        nothing is. Raises KeyError if ``size`` isn't in the spec."""
        if self._seconds is None:
            return []
        position, at = self.fleet.of[place], self.fleet.size_at[size]
        switch = self.fleet.switch[position]
        return [
            sizes[at] if loaded in (NOTHING_LOADED, variant) else sizes[at] + switch
            for variant, sizes in enumerate(self._seconds[position])
        ]

    def busy(self, place: int) -> bool:
        """Return whether a batch is in progress on the server at ``place``."""
        return place in self.servers and self.servers[place].batch is not None

    def idle(self) -> list[int]:
        """Return the indices in the fleet of the idle servers, in order of class and number."""
        return sorted(place for place, server in self.servers.items() if server.up and server.batch is None)

    def waiting(self) -> list[int]:
        """Return the number of waiting requests of each user."""
        return [len(at) for at in self._at]

    @property
    def anyone_waits(self) -> bool:
        """Whether any request waits."""
        return any(self._at)

    def on(self) -> list[int]:
        """Return the number of servers of each class that are on, those starting included."""
        idle, busy, starting = self._counts
        return [a + b + c for a, b, c in zip(idle, busy, starting, strict=True)]

    def qualities(self) -> list[float]:
        """Return the recent mean response quality of each user, 0 to 1; 1 before the first answer."""
        return [q / n if n > 0 else 1.0 for q, n in zip(self._quality, self._answered, strict=True)]

    def take_counts(self) -> tuple[float, list[int]]:
        """Return the start of the present count (seconds) and each user's arrivals since; begin a new count now."""
        since, counts = self.counted_from, self._arrivals
        self.counted_from, self._arrivals = self.now, [0] * len(counts)
        return since, counts

    def names(self) -> Iterable[str]:
        """Yield the names of all waiting requests and of those in batches."""
        yield from (name for ids in self._ids for name in ids)
        yield from (name for server in self.servers.values() if server.batch for name in server.batch.ids)

    def next_look(self) -> float | None:
        """Return when, without further events, the next decision on servers or drop is due, seconds since the run's
        start; None: never."""
        moments = [at[0] + zero for at, zero in zip(self._at, self._zero_at, strict=True) if at]
        return min([*moments, self.control] if self.scalable else moments, default=None)

    def observe(self, place: int) -> Row:
        """Return the observation for the idle server at ``place``, or for ``CONTROL`` (on the number of servers)."""
        now, control = self.now, place == CONTROL
        context = CONTROL if control else self.fleet.of[place]
        loaded = NOTHING_LOADED if control else self.servers[place].loaded
        oldest = [now - at[0] if at else 0.0 for at in self._at]
        newest = [now - at[-1] if at else 0.0 for at in self._at]
        idle, busy, starting = self._counts
        of_users = [*map(len, self._at), *oldest, *newest, *self._rate, *self.qualities()]
        if self._soonest is None:
            ends = (server.batch.until for server in self.servers.values() if server.batch is not None)
            self._soonest = min(ends, default=0.0)
        return Row([*of_users, *idle, *busy, *starting, max(self._soonest - self.now, 0.0)], context, loaded)

    def recent(self) -> Transitions:
        """Return the last ended batches and arrivals of the run, as arrays of a batch of one run."""
        known = min(self._part, PARTS)
        batches, paces = np.full((1, BATCHES), NONE), np.ones((1, BATCHES))
        for place, (batch, pace) in enumerate(self._ended, BATCHES - len(self._ended)):
            batches[0, place], paces[0, place] = batch, pace
        arrived = np.array([[counts[:PARTS] for counts in self._arrived]])
        arrived[:, :, : PARTS - known] = NONE
        return Transitions(batches, paces, arrived)

    def _put(self, place: int, server: Server | None) -> None:
        before, position = self.servers.pop(place, None), self.fleet.of[place]
        if before is not None:
            self._counts[_status(before)][position] -= 1
        if server is not None:
            self.servers[place] = server
            self._counts[_status(server)][position] += 1
        self._soonest = None

    def _count(self, user: int, requests: int, quality: float, at: float) -> None:
        """Add answered or dropped requests, with the sum of their qualities, at ``at``, seconds since the run's start
        that are not after ``now``."""
        weight = self.layout.spec.users[user].weight
        self.worth, self.judged = self.worth + weight * quality, self.judged + weight * requests
        known = exp((at - self.now) / self.layout.spec.episode_seconds)
        self._answered[user] += requests * known
        self._quality[user] += quality * known

    def _drop(self, user: int, why: str, at: float) -> None:
        self._at[user].popleft()
        self.dropped.append(DroppedRequest(user, self._ids[user].popleft(), why))
        self._count(user, 1, 0.0, at)


def states(fleet: Fleet, rows: Sequence[Row]) -> State:
    """Combine B decisions ``rows`` to a ``State``; its arrays are views of one array, for speed."""
    known = np.array([row.numbers for row in rows])
    whole, classes = known.astype(np.int64), np.array([row[1:] for row in rows])
    waiting, oldest, newest, rate, quality, idle, busy, starting = fleet.places
    return State(
        whole[:, waiting],
        known[:, oldest],
        known[:, newest],
        known[:, rate],
        known[:, quality],
        whole[:, idle],
        whole[:, busy],
        whole[:, starting],
        known[:, -1],
        classes[:, 0],
        classes[:, 1],
    )


def _status(server: Server) -> int:
    return STARTING if not server.up else IDLE if server.batch is None else BUSY


# Reports of kind ``inference``: lists of events. Times are seconds since the run's start, never decreasing in a list.


LONGEST_ID = 63
"""Most characters of a request's name: a decision names every request that it starts or drops."""
LARGEST_REPORT = 10_000
Id = Annotated[str, Meta(min_length=1, max_length=255)]
RequestId = Annotated[str, Meta(pattern=r"^[^#]", max_length=LONGEST_ID)]
BatchSize = Annotated[int, Meta(ge=1, le=1_024)]
Moment = Annotated[float, Meta(ge=0, le=LATEST)]
Took = Annotated[float, Meta(gt=0, le=LARGEST)]
ServerState = Literal["starting", "up", "down"]
AtMost = Meta(max_length=LARGEST_REPORT)


class Arrived(Part, frozen=True, gc=False):
    """A request that arrived."""

    user: Id
    at: Moment
    id: Annotated[RequestId | None, Meta(description="null: a number is assigned; a name must not begin with `#`")] = (
        None
    )


class Finished(Part, frozen=True, gc=False):
    """The end of a batch; its details are used for the run's samples, which are made from reports only."""

    server: Annotated[Id, Meta(description="Class and index, starting at 0.", examples=["cpu-0"])]
    at: Moment
    variant: Id | None = None
    batch: BatchSize | None = None
    seconds: Annotated[Took | None, Meta(description="measured duration of the batch")] = None


class ServerChange(Part, frozen=True, gc=False):
    """A change of a server's state. If it goes down, the requests of its batch return to the queue."""

    server: Id
    state: ServerState
    at: Annotated[Moment | None, Meta(description="null: the time of the report")] = None


class Started(Part, frozen=True, gc=False):
    """A batch of the user's oldest requests that the client itself started; only in carried runs."""

    server: Id
    user: Id
    variant: Id
    batch: BatchSize
    at: Moment


class InferenceReport(Part, frozen=True):
    """Events since the last report, in order of time within each list."""

    at: Annotated[Moment, Meta(description="Time of the report, in seconds since the run's start.")]
    kind: Literal["inference"] = "inference"
    arrived: Annotated[tuple[Arrived, ...], AtMost] = ()
    finished: Annotated[tuple[Finished, ...], AtMost] = ()
    servers: Annotated[tuple[ServerChange, ...], AtMost] = ()
    started: Annotated[tuple[Started, ...], AtMost] = ()
