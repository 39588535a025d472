"""From a run's book to what starts: first how many servers are on, then one free server after another is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from app.kinds.inference.decisions.choose import Chooser
from app.kinds.inference.layout import WAIT
from app.kinds.inference.queue.ledger import Ledger
from app.kinds.inference.queue.state import Batch
from app.kinds.inference.state import CONTROL

MOST_TURNS = 4
"""Servers that are turned on or off at one instant."""


class Start(NamedTuple):
    """A batch that starts on a server.

    Attributes:
        place: of the server.
        size: that was chosen; the batch may have fewer requests.
        loaded: variant that the server had loaded, or ``NOTHING_LOADED``.
        seconds: that it is expected to take; None without a domain model.
        waiting: requests of the user that waited before.
    """

    place: int
    batch: Batch
    size: int
    loaded: int
    seconds: float | None
    waiting: int


class Decided(NamedTuple):
    """All that a decision changes: batches that start, and servers that are turned on (else off)."""

    starts: list[Start]
    turns: list[tuple[int, bool]]


def decide(ledger: Ledger, chooser: Chooser) -> Decided:
    """Ask until nothing more is to be started; the book is kept.

    Raises:
        IllegalAction: a policy chose what it may not.
    """
    turns = list(_turns(ledger, chooser)) if ledger.now >= ledger.control else []
    return Decided(list(_starts(ledger, chooser)), turns)


def _turns(ledger: Ledger, chooser: Chooser) -> Iterator[tuple[int, bool]]:
    """One server after another, until the policy waits."""
    seconds = ledger.layout.spec.control_seconds
    ledger.control = (ledger.now // seconds + 1) * seconds
    if not ledger.scalable:
        return
    for _ in range(MOST_TURNS):
        action = chooser.choose(ledger.seen(CONTROL))
        if action == WAIT:
            return
        position, off = divmod(action - 1 - ledger.layout.dispatches, 2)
        place = ledger.turn_off(position) if off else ledger.turn_on(position)
        yield place, not off


def _starts(ledger: Ledger, chooser: Chooser) -> Iterator[Start]:
    """A server that waits is not asked for again; nor is one like it while nothing else has changed."""
    waited: set[tuple[int, int]] = set()
    for place in ledger.idle():
        if not any(ledger.waiting()):
            return
        alike = ledger.fleet.of[place], ledger.servers[place].loaded
        if alike in waited:
            continue
        action = chooser.choose(ledger.seen(place))
        if action == WAIT:
            waited.add(alike)
            continue
        yield _start(ledger, place, action)
        waited.clear()


def _start(ledger: Ledger, place: int, action: int) -> Start:
    _, variants, sizes = ledger.layout.shape
    user, own = divmod(action - 1, variants * sizes)  # as `Layout.dispatch_of` has it, of one action
    variant, position = divmod(own, sizes)
    size = ledger.layout.spec.batches[position]
    loaded = ledger.servers[place].loaded
    seconds, waiting = ledger.expected(place, loaded, variant, size), ledger.waiting()[user]
    return Start(place, ledger.start(place, user, variant, size), size, loaded, seconds, waiting)
