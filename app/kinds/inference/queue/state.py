"""A run's state: who waits and what servers do, as its reports so far tell it. It never changes in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from app.kinds.inference.layout import Layout
from app.kinds.inference.queue.fleet import Fleet
from app.kinds.inference.state import NOTHING_LOADED, Floats

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
        midnight: seconds since 0:00 UTC at the run's start; None for a run of a version that did not keep it.
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
    now, control, queues, servers, rate, answered, quality, requests, carried, *rest = stored
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
        *_counted(*rest[:3]),
        *_recent(*rest[3:]),
    )


def _counted(
    midnight: float | None = None, since: float = 0.0, counts: Sequence[int] = ()
) -> tuple[float | None, float, tuple[int, ...]]:
    """Fields that rows of an earlier version have not."""
    return midnight, float(since), tuple(counts)


def _recent(
    ended: list[Any] | None = None, arrived: list[Any] | None = None
) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, ...], ...]]:
    """What a run keeps of its last transitions; nothing for one of a version that did not."""
    return tuple((batch, float(pace)) for batch, pace in ended or ()), tuple(map(tuple, arrived or ()))


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
