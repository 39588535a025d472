"""A policy that a client carries: decisions in its own process, by the book that the service keeps of what it reports.

Times are seconds since the run's start. What comes after a start at the same moment is taken to be a moment later, so
that the service, which orders the events of a moment, keeps the very same book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.engine import DEFAULT_ROLE, RolePolicy, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.decisions.decide import decide
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.policies import check, load
from app.kinds.inference.queue.report import LARGEST_REPORT, ServerState
from app.kinds.inference.queue.state import begin
from app.kinds.inference.spec import InferenceSpec

Seconds = Mapping[str, Mapping[str, Sequence[float]]]
FULL = LARGEST_REPORT // 2
"""Events in a report, about: a decision adds more than one."""


class StartNow(NamedTuple):
    """A batch to start now: the user's oldest requests, by name."""

    server: str
    user: str
    variant: str
    batch: int
    requests: Sequence[str]


class Turn(NamedTuple):
    """A server to turn on or off now."""

    server: str
    on: bool


class Now(NamedTuple):
    """What to do now."""

    start: Sequence[StartNow]
    turn: Sequence[Turn]


class Carried:
    """Takes events, decides, and tells in reports what was.

    Attributes:
        events: how many there are since the last report.

    Args:
        spec: of the workload, as the service tells it.
        artifacts: policies by role; ``default`` may be one policy for all users. Without any a heuristic decides.
        seconds: that batches are expected to take, by class, variant and size: ``expected`` of a run's first decision.
        role: the one user whose requests are decided here, where every user has its own policy; None: all.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        artifacts: Mapping[str, bytes],
        seconds: Seconds | None = None,
        role: str | None = None,
    ) -> None:
        self._compiled = _compiled(InferenceSpec.model_validate(spec), artifacts, seconds, role)
        layout, fleet = self._compiled.layout, self._compiled.fleet
        self._layout, self._fleet = layout, fleet
        self._ledger = self._compiled.ledger(begin(layout, fleet, carried=True))
        self._chooser = self._compiled.responder.chooser
        self._earliest = 0.0
        self.events = 0
        self._report: dict[str, Any] = {}

    @property
    def policy(self) -> str:
        """What decides is called."""
        return self._chooser.name

    @property
    def now(self) -> float:
        """The moment of the last event or decision."""
        return self._ledger.now

    @property
    def wake_at(self) -> float | None:
        """When to decide again at the latest; None: at the next event."""
        return self._ledger.next_look()

    @property
    def full(self) -> bool:
        """Whether a report should be made before more is taken."""
        return self.events >= FULL

    def arrived(self, user: str, at: float, name: str | None = None) -> None:
        """A request came; without a name it is given a number.

        Raises:
            InvalidInput: no such user.
        """
        position = self._layout.user_index.get(user)
        if position is None:
            raise invalid("/user", f"unknown name; known: {', '.join(self._layout.users)}", user)
        at = self._pass(at)
        self._ledger.arrive(position, at, name)
        self._note("arrived", {"user": user, "at": at} | ({} if name is None else {"id": name}))

    def finished(self, server: str, at: float) -> None:
        """A server's batch has ended.

        Raises:
            InvalidInput: no such server, or it does nothing.
        """
        place = self._place(server)
        if not self._ledger.busy(place):
            raise invalid("/server", "must be a server that works; nothing runs on this one", server)
        at = self._pass(at)
        self._ledger.finish(place, at)
        self._note("finished", {"server": server, "at": at})

    def turned(self, server: str, state: ServerState, at: float) -> None:
        """A server is up, is being started, or is down; requests of a batch on one that is down wait again.

        Raises:
            InvalidInput: no such server.
        """
        place = self._place(server)
        at = self._pass(at)
        self._ledger.turn(place, state)
        self._note("servers", {"server": server, "state": state, "at": at})

    def decide(self, at: float) -> Now:
        """All that is to be started now."""
        ledger, names = self._ledger, self._fleet.names
        at = self._pass(at)
        ledger.drop()
        ledger.dropped.clear()
        [decided] = decide([ledger], self._chooser)
        for place, _ in decided.turns:
            server = ledger.servers.get(place)
            state = "down" if server is None else "up" if server.up else "starting"
            self._note("servers", {"server": names[place], "state": state, "at": at})
        start = [self._started(one.place, one.size, at) for one in decided.starts]
        if start:
            self._earliest = nextafter(at, inf)
        return Now(start, [Turn(names[place], on) for place, on in decided.turns])

    def report(self) -> dict[str, Any]:
        """What was since the last report, as the API takes it."""
        report, self._report, self.events = {**self._report, "at": self.now}, {}, 0
        return report

    def _started(self, place: int, size: int, at: float) -> StartNow:
        batch = self._ledger.servers[place].batch
        assert batch is not None  # noqa: S101 - it was started just now
        layout = self._layout
        server, user, variant = self._fleet.names[place], layout.users[batch.user], layout.variants[batch.variant]
        self._note("started", {"server": server, "user": user, "variant": variant, "batch": size, "at": at})
        return StartNow(server, user, variant, size, batch.ids)

    def _pass(self, at: float) -> float:
        """The moment of an event: no earlier than what came before, and later than a start."""
        at = max(at, self._earliest, self._ledger.now)
        self._ledger.pass_time(at)
        return at

    def _note(self, part: str, event: dict[str, Any]) -> None:
        self._report.setdefault(part, []).append(event)
        self.events += 1

    def _place(self, server: str) -> int:
        place = self._fleet.index.get(server)
        if place is None:
            raise invalid("/server", self._fleet.known, server)
        return place


def _compiled(
    spec: InferenceSpec, artifacts: Mapping[str, bytes], seconds: Seconds | None, role: str | None
) -> Compiled:
    """The workload as far as it is decided here."""
    if role is not None:
        own = [user for user in spec.users if user.name == role]
        if not own:
            raise invalid("/role", f"must be one of {', '.join(user.name for user in spec.users)}", role)
        spec = spec.model_copy(update={"users": tuple(own)})
    layout = Layout(spec)
    made = {name: load(data) for name, data in artifacts.items()}
    for one in made.values():
        check(one, layout)
    policies = {name: RolePolicy(1, one) for name, one in made.items()}
    model = None if seconds is None else _model(layout, seconds)
    return Compiled(
        Snapshot(spec.name, spec.name, 1, spec, layout, model, None, None, made.get(DEFAULT_ROLE), 1, "", policies)
    )


def _model(layout: Layout, seconds: Seconds) -> ServiceModel:
    """A domain model of nothing but expected seconds."""
    users, variants, _ = layout.shape
    table = np.array([[seconds[server][variant] for variant in layout.variants] for server in layout.servers])
    measured = np.ones((len(layout.servers), variants), np.bool_)
    return ServiceModel(np.log(table)[None], np.zeros(variants), np.zeros((users, 1)), np.zeros(users), measured)
