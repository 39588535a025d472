"""The servers that a layout may have on, each by its name: its class and a number from 0."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from app.kinds.inference.dynamics import NOTHING_LOADED, Floats
from app.kinds.inference.layout import Layout

# The servers that a layout may have on, each by its name: its class and a number from 0.


class Fleet:
    """S servers, those of a class beside each other.

    Attributes:
        names: [S].
        index: where each name stands.
        of: class of each, [S].
        first: the first server of each class, and S at the end, [C + 1].
        known: what a name of a server must be, in words.
        places: where decisions see users' waiting, oldest, newest, rate and quality, and idle, busy and starting
            servers.
        switch: seconds that another variant takes to load on a server of each class, [C].
        size_at: where each batch size stands among those of the workload.
        zero_at: seconds from which on each user's answers are worth nothing, [U].
        scalable: whether there is a class of which more or fewer may be on.
    """

    def __init__(self, layout: Layout) -> None:
        self.names: list[str] = []
        self.of: list[int] = []
        self.first = [0]
        for position, server in enumerate(layout.spec.servers):
            self.names += [f"{server.name}-{number}" for number in range(server.maximum)]
            self.of += [position] * server.maximum
            self.first.append(len(self.names))
        self.scalable = any(server.maximum > server.minimum for server in layout.spec.servers)
        self.switch: list[float] = layout.switch.tolist()
        self.zero_at: list[float] = layout.quality.zero_at.tolist()
        self.size_at = {size: at for at, size in enumerate(layout.spec.batches)}
        self.places = _places(len(layout.users), len(layout.servers))
        self.index = {name: at for at, name in enumerate(self.names)}
        ranges = [f"{server.name}-0 to {server.name}-{server.maximum - 1}" for server in layout.spec.servers]
        self.known = f"unknown server; known: {', '.join(ranges)}"

    def members(self, position: int) -> range:
        """The servers of a class."""
        return range(self.first[position], self.first[position + 1])


def _places(users: int, classes: int) -> list[slice]:
    ends = [*range(0, 6 * users, users), *(5 * users + classes * part for part in (1, 2, 3))]
    return [slice(first, last) for first, last in pairwise(ends)]


# A run's state: who waits and what servers do, as its reports so far tell it. It never changes in place.


REQUEST_BYTES, SERVER_BYTES, RUN_BYTES = 120, 400, 2_000
"""Of what holds them, about."""


class Waiting(NamedTuple):
    """Requests of one user, the oldest first: when each arrived, and its name."""

    at: tuple[float, ...]
    ids: tuple[str, ...]


class Batch(NamedTuple):
    """Requests that a server works on.

    Attributes:
        user, variant: positions.
        started: seconds.
        until: when it is expected to end; ``started`` where no domain model tells.
        at, ids: of its requests, as in ``Waiting``.
    """

    user: int
    variant: int
    started: float
    until: float
    at: tuple[float, ...]
    ids: tuple[str, ...]


class Server(NamedTuple):
    """A server that is on.

    Attributes:
        up: whether it takes work; else it is being started.
        loaded: position of the variant that it has loaded, or ``NOTHING_LOADED``.
        batch: what it works on; None while it is idle.
    """

    up: bool
    loaded: int = NOTHING_LOADED
    batch: Batch | None = None


class RunState(NamedTuple):
    """A run between two reports; U users.

    Attributes:
        now: of the last report; 0 before the first.
        control: when the number of servers is decided next.
        queues: [U].
        servers: those that are on, by their place in the fleet.
        rate: smoothed requests per second, at ``now``, [U].
        answered, quality: how many requests were answered or dropped, and the sum of their qualities, both forgotten
            over ``episode_seconds``: a run of days tells of its users what an episode does, [U].
        requests: how many have arrived.
        carried: whether the client decides by itself.
        midnight: seconds since 0:00 UTC at the run's start; None where the client decides.
        counted_from, counts: requests that have arrived since a moment, [U].
        ended: the last batches that ended, the newest last: position and pace as in ``transitions.Transitions``.
        arrived: requests of each user in the present part of a control interval and ``transitions.PARTS`` before it,
            the newest last, [U].
    """

    now: float
    control: float
    queues: tuple[Waiting, ...]
    servers: dict[int, Server]
    rate: tuple[float, ...]
    answered: tuple[float, ...]
    quality: tuple[float, ...]
    requests: int
    carried: bool
    midnight: float | None = None
    counted_from: float = 0.0
    counts: tuple[int, ...] = ()
    ended: tuple[tuple[int, float], ...] = ()
    arrived: tuple[tuple[int, ...], ...] = ()


def begin(
    layout: Layout, fleet: Fleet, usual: Floats | None, *, carried: bool, midnight: float | None = None
) -> RunState:
    """A run that has reported nothing: nobody waits, and of each class the minimum of servers is up.

    Args:
        usual: requests per second of each user, [U], from which rates are smoothed on; None: not known, 0.
    """
    users = len(layout.users)
    up = [place for position, count in enumerate(layout.minimum) for place in fleet.members(position)[:count]]
    zeros = (0.0,) * users
    servers = {place: Server(up=True) for place in up}
    rate = zeros if usual is None else tuple(map(float, usual))
    return RunState(0.0, 0.0, (Waiting((), ()),) * users, servers, rate, zeros, zeros, 0, carried, midnight)


def pack(state: RunState) -> list[Any]:
    """A state as plain lists, numbers and texts, for JSON."""
    return [*state._replace(servers=[[place, *server] for place, server in state.servers.items()])]  # type: ignore[arg-type]


def unpack(stored: list[Any]) -> RunState:
    """The state whose ``pack`` went through JSON."""
    (
        now,
        control,
        queues,
        servers,
        rate,
        answered,
        quality,
        requests,
        carried,
        midnight,
        since,
        counts,
        ended,
        arrived,
    ) = stored
    return RunState(
        float(now),
        float(control),
        tuple(Waiting(tuple(map(float, at)), tuple(ids)) for at, ids in queues),
        {place: Server(up, loaded, _batch(batch)) for place, up, loaded, batch in servers},
        tuple(map(float, rate)),
        tuple(map(float, answered)),
        tuple(map(float, quality)),
        requests,
        carried,
        midnight,
        float(since),
        tuple(counts),
        tuple((batch, float(pace)) for batch, pace in ended),
        tuple(map(tuple, arrived)),
    )


def _batch(stored: list[Any] | None) -> Batch | None:
    if stored is None:
        return None
    user, variant, started, until, at, ids = stored
    return Batch(user, variant, float(started), float(until), tuple(map(float, at)), tuple(ids))


def weight(state: RunState) -> int:
    """About how many bytes a state takes in memory."""
    requests = sum([len(queue.at) for queue in state.queues])
    for server in state.servers.values():
        if server.batch is not None:
            requests += len(server.batch.at)
    return RUN_BYTES + REQUEST_BYTES * requests + SERVER_BYTES * len(state.servers)
