"""Policy in a client's own process: decides locally with the same queues and servers that the service keeps.

Times are seconds since the run's start. An event at the time of a start is moved a moment later, as the service orders
events of equal time, so that both keep the same state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.engine import DEFAULT_ROLE, RolePolicy, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.inference.choices import decide
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.policies import Compiled, check, load
from app.kinds.inference.queue import begin, pack, unpack
from app.kinds.inference.report import LARGEST_REPORT, ServerState
from app.kinds.inference.spec import InferenceSpec

Seconds = Mapping[str, Mapping[str, Sequence[float]]]
FULL = LARGEST_REPORT // 2
"""Approximate number of events per report; a decision may add several."""
DECIDED, SEALED = "decided", "sealed"
"""Keys of entries kept beside events: a decision that changed the state, and the end of a report."""


class StartNow(NamedTuple):
    """A batch of size ``batch`` to start now on ``server`` with ``variant``: the user's oldest requests, whose names
    are ``requests``."""

    server: str
    user: str
    variant: str
    batch: int
    requests: Sequence[str]


class Turn(NamedTuple):
    """A server, by name, to turn on (``on`` is True) or off now."""

    server: str
    on: bool


class Now(NamedTuple):
    """Batches to start and servers to turn on or off now."""

    start: Sequence[StartNow]
    turn: Sequence[Turn]


Event = dict[str, Any]


class Carried:
    """Decides from events in the client's process, and collects reports for the service.

    Passing every entry given to ``keep`` to ``replay``, in order, restores the state.

    Attributes:
        events: number of events since the last report.
        keep: called with every event and other change of the state before a method returns; None: not called.

    Args:
        spec: spec of the workload, from the service; an invalid one raises Pydantic's ValidationError.
        artifacts: serialised policies by role; ``default`` may be one for all users. Empty: a heuristic decides. One
            that can't be used raises IncompatibleArtifact.
        seconds: expected seconds per batch by class, variant and size, from ``expected`` of the run's first decision;
            None: no domain model.
        role: only user to decide for, if every user has its own policy; None: all. An unknown one raises InvalidInput.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        artifacts: Mapping[str, bytes],
        seconds: Seconds | None = None,
        role: str | None = None,
    ) -> None:
        self._compiled = _compile(InferenceSpec.model_validate(spec), artifacts, seconds, role)
        layout, fleet = self._compiled.layout, self._compiled.fleet
        self._layout, self._fleet = layout, fleet
        self._ledger = self._compiled.ledger(begin(layout, fleet, None, carried=True))
        self._chooser = self._compiled.agent or self._compiled.spare
        self._earliest = 0.0
        self.events = 0
        self.keep: Callable[[Event], None] | None = None
        self._report: Event = {}

    @property
    def policy(self) -> str:
        """Name of the deciding policy."""
        return self._chooser.name

    @property
    def now(self) -> float:
        """Time of the last event or decision, seconds since the run's start."""
        return self._ledger.now

    @property
    def wake_at(self) -> float | None:
        """Latest time for the next decision, seconds since the run's start; None: at the next event."""
        return self._ledger.next_look()

    @property
    def full(self) -> bool:
        """Whether ``FULL`` events are collected, so that a report should be made before more."""
        return self.events >= FULL

    def arrived(self, user: str, at: float, name: str | None = None) -> None:
        """Record a request of ``user`` that arrived ``at`` seconds; without a ``name`` it gets a number.

        Raises:
            InvalidInput: the user is unknown.
        """
        position = self._layout.user_index.get(user)
        if position is None:
            raise invalid("/user", f"unknown name; known: {', '.join(self._layout.users)}", user)
        at = self._pass(at)
        self._ledger.arrive(position, at, name)
        self._note("arrived", {"user": user, "at": at} | ({} if name is None else {"id": name}))

    def finished(self, server: str, at: float) -> None:
        """Record the end, ``at`` seconds, of the batch on ``server``.

        Raises:
            InvalidInput: the server is unknown or idle.
        """
        place = self._place(server)
        if not self._ledger.busy(place):
            raise invalid("/server", "must be a busy server; this one is idle", server)
        at = self._pass(at)
        self._ledger.finish(place, at)
        self._note("finished", {"server": server, "at": at})

    def turned(self, server: str, state: ServerState, at: float) -> None:
        """Record that a server is up, starting or down ``at`` seconds; requests of a batch on one that goes down wait
        again.

        Raises:
            InvalidInput: the server is unknown.
        """
        place = self._place(server)
        at = self._pass(at)
        self._ledger.turn(place, state)
        self._note("servers", {"server": server, "state": state, "at": at})

    def decide(self, at: float) -> Now:
        """Decide which batches start and which servers turn on or off at ``at`` seconds.

        Raises IllegalAction if the policy chose a masked action."""
        ledger, names = self._ledger, self._fleet.names
        at, control = self._pass(at), self._ledger.control
        ledger.drop()
        gave_up = bool(ledger.dropped)
        ledger.dropped.clear()
        [decided] = decide([ledger], self._chooser)
        if self.keep is not None and (gave_up or ledger.control != control):
            self.keep({DECIDED: {"at": at, "control": ledger.control}})
        for place, _ in decided.turns:
            server = ledger.servers.get(place)
            state = "down" if server is None else "up" if server.up else "starting"
            self._note("servers", {"server": names[place], "state": state, "at": at})
        start = [self._start_batch(one.place, one.size, at) for one in decided.starts]
        if start:
            self._earliest = nextafter(at, inf)
        return Now(start, [Turn(names[place], on) for place, on in decided.turns])

    def report(self) -> dict[str, Any]:
        """Return the report of the events since the last one, as the API accepts it, and begin a new one."""
        report, self._report, self.events = {**self._report, "at": self.now}, {}, 0
        if self.keep is not None:
            self.keep({SEALED: self.now})
        return report

    def working(self) -> Mapping[str, StartNow]:
        """Return the batches in progress, by name of the server."""
        busy = {place: server.batch for place, server in self._ledger.servers.items() if server.batch is not None}
        users, variants = self._layout.users, self._layout.variants
        return {
            (name := self._fleet.names[place]): StartNow(
                name, users[batch.user], variants[batch.variant], len(batch.ids), batch.ids
            )
            for place, batch in busy.items()
        }

    def state(self) -> list[Any]:
        """Return the state as lists, numbers and texts, for ``restore``; call it when every event is reported."""
        return pack(self._ledger.state())

    def restore(self, state: list[Any]) -> None:
        """Continue from a result of ``state``; raises ValueError or TypeError if it has another form."""
        self._ledger = self._compiled.ledger(unpack(state))
        self._earliest = nextafter(self._ledger.now, inf)

    def replay(self, entry: Event) -> dict[str, Any] | None:
        """Apply an entry that was given to ``keep``; returns the report if the entry ended one, else None.

        Raises:
            KeyError: the entry names an unknown user or server.
        """
        [(part, event)] = entry.items()
        ledger = self._ledger
        if part == SEALED:
            ledger.pass_time(event)
            return self.report()
        ledger.pass_time(event["at"])
        if part == "arrived":
            ledger.arrive(self._layout.user_index[event["user"]], event["at"], event.get("id"))
        elif part == "finished":
            ledger.finish(self._fleet.index[event["server"]], event["at"])
        elif part == "servers":
            ledger.turn(self._fleet.index[event["server"]], event["state"])
        elif part == "started":
            self._give_up()
            user, variant = self._layout.user_index[event["user"]], self._layout.variants.index(event["variant"])
            self._ledger.start(self._fleet.index[event["server"]], user, variant, event["batch"])
            self._earliest = nextafter(event["at"], inf)
        else:
            self._give_up()
            ledger.control = event["control"]
            return None
        self._note(part, event)
        return None

    def _give_up(self) -> None:
        self._ledger.drop()
        self._ledger.dropped.clear()

    def _start_batch(self, place: int, size: int, at: float) -> StartNow:
        batch = self._ledger.servers[place].batch
        assert batch is not None  # noqa: S101 - it was started just now
        layout = self._layout
        server, user, variant = self._fleet.names[place], layout.users[batch.user], layout.variants[batch.variant]
        self._note("started", {"server": server, "user": user, "variant": variant, "batch": size, "at": at})
        return StartNow(server, user, variant, size, batch.ids)

    def _pass(self, at: float) -> float:
        """Advance to the time ``at`` of an event, seconds since the run's start, and return it. A time up to the last
        start's is moved just after that, and one before the last event to it."""
        at = max(at, self._earliest, self._ledger.now)
        self._ledger.pass_time(at)
        return at

    def _note(self, part: str, event: Event) -> None:
        self._report.setdefault(part, []).append(event)
        self.events += 1
        if self.keep is not None:
            self.keep({part: event})

    def _place(self, server: str) -> int:
        place = self._fleet.index.get(server)
        if place is None:
            raise invalid("/server", self._fleet.known, server)
        return place


def _compile(
    spec: InferenceSpec, artifacts: Mapping[str, bytes], seconds: Seconds | None, role: str | None
) -> Compiled:
    """Compile the workload, for all users or only user ``role``, with expected ``seconds`` per batch by server class,
    variant and size (None: no domain model). Raises InvalidInput if no user has that name, IncompatibleArtifact if an
    artifact can't be read or has another layout, and KeyError if a class or variant lacks ``seconds``."""
    if role is not None:
        own = [user for user in spec.users if user.name == role]
        if not own:
            raise invalid("/role", f"must be one of {', '.join(user.name for user in spec.users)}", role)
        spec = spec.model_copy(update={"users": tuple(own)})
    layout = Layout(spec)
    result = {name: load(data) for name, data in artifacts.items()}
    for one in result.values():
        check(one, layout)
    policies = {name: RolePolicy(1, one) for name, one in result.items()}
    model = None if seconds is None else _model(layout, seconds)
    return Compiled(
        Snapshot(spec.name, spec.name, 1, spec, layout, model, None, None, result.get(DEFAULT_ROLE), 1, "", policies)
    )


def _model(layout: Layout, seconds: Seconds) -> ServiceModel:
    """Return a domain model with nothing but expected seconds; raises KeyError if a class or variant is missing."""
    users, variants, _ = layout.shape
    table = np.array([[seconds[server][variant] for variant in layout.variants] for server in layout.servers])
    measured = np.ones((len(layout.servers), variants), np.bool_)
    return ServiceModel(np.log(table)[None], np.zeros(variants), np.zeros((users, 1)), np.zeros(users), measured)
