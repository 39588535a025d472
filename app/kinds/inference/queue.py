"""Fleet of servers by name, and the immutable state of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from app.kinds.inference.dynamics import NOTHING_LOADED, Floats
from app.kinds.inference.layout import Layout

# Fleet: all servers that may be on, named by class and number from 0.


class Fleet:
    """S servers, those of a class next to each other.

    Attributes:
        names: names of the S servers, such as "cpu-0".
        index: position of each server by name.
        of: class of each server, [S].
        first: position of the first server of each class, and S at the end, [C + 1].
        known: error message that lists valid names.
        places: slices of a decision's numbers: users' waiting, oldest, newest, rate and quality; idle, busy and
            starting servers.
        switch: seconds to load another variant on each class, [C].
        size_at: position of each batch size, by size.
        zero_at: delay in seconds from which each user's answers are worth nothing, [U].
        scalable: whether any class may have more or fewer servers on.
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
        users = len(layout.users)
        classes = len(layout.servers)
        ends = [*range(0, 6 * users, users), *(5 * users + classes * part for part in (1, 2, 3))]
        self.places = [slice(first, last) for first, last in pairwise(ends)]
        self.index = {name: at for at, name in enumerate(self.names)}
        ranges = [f"{server.name}-0 to {server.name}-{server.maximum - 1}" for server in layout.spec.servers]
        self.known = f"unknown server; known: {', '.join(ranges)}"

    def members(self, position: int) -> range:
        """Return the positions of the servers of the class at ``position``."""
        return range(self.first[position], self.first[position + 1])


# State of a run: waiting requests and servers. Immutable.


REQUEST_BYTES, SERVER_BYTES, RUN_BYTES = 120, 400, 2_000
"""Approximate memory of a request, a server and a run, in bytes."""


class Waiting(NamedTuple):
    """Waiting requests of one user, oldest first: arrival times in seconds since the run's start, and names."""

    at: tuple[float, ...]
    ids: tuple[str, ...]


class Batch(NamedTuple):
    """A batch in progress on a server. Times are seconds since the run's start.

    Attributes:
        user, variant: positions of user and variant in the layout.
        started: start time.
        until: expected end; ``started`` without a domain model.
        at, ids: arrival times and names of its requests.
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
        up: whether it accepts batches; False: it is starting.
        loaded: position of the loaded variant, or ``NOTHING_LOADED``.
        batch: batch in progress; None: idle.
    """

    up: bool
    loaded: int = NOTHING_LOADED
    batch: Batch | None = None


class RunState(NamedTuple):
    """A run between two reports; U users. Times are seconds since the run's start.

    Attributes:
        now: time of the last report; 0 before the first.
        control: time of the next decision on the number of servers.
        queues: waiting requests, [U].
        servers: servers that are on, by position in the fleet.
        rate: smoothed requests per second at ``now``, [U].
        answer_count, quality: number of answered or dropped requests and sum of their qualities, both decaying with
            time constant ``episode_seconds``, [U].
        requests: number of arrivals.
        carried: whether the client decides.
        midnight: seconds since 0:00 UTC at the run's start; None if the client decides.
        counted_from, counts: start of the present count of arrivals, and the counts, [U].
        ended: last finished batches, newest last: flat index into [C, V, K] and seconds over those expected.
        arrived: arrivals in the present part of a control interval and the parts before, newest last, [U].
    """

    now: float
    control: float
    queues: tuple[Waiting, ...]
    servers: dict[int, Server]
    rate: tuple[float, ...]
    answer_count: tuple[float, ...]
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
    """Return the state of a run before its first report: no requests, and the minimum of servers of each class up.

    Args:
        layout: layout of the workload.
        fleet: servers of the workload.
        usual: initial requests per second, [U]; None: 0.
        carried: whether the client decides.
        midnight: seconds since 0:00 UTC at the run's start; None: unknown.
    """
    users = len(layout.users)
    up = [place for position, count in enumerate(layout.minimum) for place in fleet.members(position)[:count]]
    zeros = (0.0,) * users
    servers = {place: Server(up=True) for place in up}
    rate = zeros if usual is None else tuple(map(float, usual))
    return RunState(0.0, 0.0, (Waiting((), ()),) * users, servers, rate, zeros, zeros, 0, carried, midnight)


def pack(state: RunState) -> list[Any]:
    """Return a state as lists, numbers and texts, for JSON."""
    return [*state._replace(servers=[[place, *server] for place, server in state.servers.items()])]  # type: ignore[arg-type]


def unpack(stored: list[Any]) -> RunState:
    """Return the state from lists of ``pack`` after JSON; raises ValueError or TypeError for other lists."""
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
    """Return the approximate size of a state in memory, in bytes."""
    requests = sum([len(queue.at) for queue in state.queues])
    for server in state.servers.values():
        if server.batch is not None:
            requests += len(server.batch.at)
    return RUN_BYTES + REQUEST_BYTES * requests + SERVER_BYTES * len(state.servers)
