"""From a run's book to what starts: first how many servers are on, then one free server after another is asked for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from app.kinds.inference.decisions.choose import Chooser
from app.kinds.inference.layout import WAIT
from app.kinds.inference.queue.ledger import Ledger, Row
from app.kinds.inference.queue.state import Batch
from app.kinds.inference.state import CONTROL
from app.kinds.inference.transitions import Transitions

T = TypeVar("T")
Asking = Generator[Row, int, T]
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


def decide(ledgers: Sequence[Ledger], chooser: Chooser) -> list[Decided]:
    """Ask until nothing more is to be started in any of several runs, in all of them at once; the books are kept.

    Raises:
        IllegalAction: a policy chose what it may not.
    """
    if len(ledgers) == 1:
        return [_alone(ledgers[0], chooser)]
    asking, found = [_asking(ledger) for ledger in ledgers], [Decided([], [])] * len(ledgers)
    actions: dict[int, int | None] = dict.fromkeys(range(len(ledgers)))
    while actions:
        rows: dict[int, Row] = {}
        for run, action in actions.items():
            try:
                rows[run] = next(asking[run]) if action is None else asking[run].send(action)
            except StopIteration as done:
                found[run] = done.value
        recent = joined([ledgers[run].recent() for run in rows]) if chooser.adapts and rows else None
        chosen = chooser.choose(list(rows.values()), recent) if rows else []
        actions = dict(zip(rows, chosen, strict=True))
    return found


def _alone(ledger: Ledger, chooser: Chooser) -> Decided:
    asking = _asking(ledger)
    try:
        row = next(asking)
        while True:
            recent = ledger.recent() if chooser.adapts else None
            row = asking.send(chooser.choose([row], recent)[0])
    except StopIteration as done:
        decided: Decided = done.value
        return decided


def joined(recent: Sequence[Transitions]) -> Transitions:
    """The last transitions of several runs as one, B of all together."""
    return Transitions(*(np.concatenate(parts) for parts in zip(*recent, strict=True)))


def _asking(ledger: Ledger) -> Asking[Decided]:
    """One run's questions, each answered by an action."""
    turns = (yield from _turns(ledger)) if ledger.now >= ledger.control else []
    starts = yield from _starts(ledger)
    return Decided(starts, turns)


def _turns(ledger: Ledger) -> Asking[list[tuple[int, bool]]]:
    """One server after another, until the policy waits."""
    seconds, turns = ledger.layout.spec.control_seconds, list[tuple[int, bool]]()
    ledger.control = (ledger.now // seconds + 1) * seconds
    while ledger.scalable and len(turns) < MOST_TURNS:
        action = yield ledger.seen(CONTROL)
        if action == WAIT:
            break
        position, off = divmod(action - 1 - ledger.layout.dispatches, 2)
        turns.append((ledger.turn_off(position) if off else ledger.turn_on(position), not off))
    return turns


def _starts(ledger: Ledger) -> Asking[list[Start]]:
    """A server that waits is not asked for again; nor is one like it while nothing else has changed."""
    waited, starts = set[tuple[int, int]](), list[Start]()
    for place in ledger.idle():
        if not ledger.anyone_waits:
            break
        alike = ledger.fleet.of[place], ledger.servers[place].loaded
        if alike in waited:
            continue
        action = yield ledger.seen(place)
        if action == WAIT:
            waited.add(alike)
            continue
        starts.append(_start(ledger, place, action))
        waited.clear()
    return starts


def _start(ledger: Ledger, place: int, action: int) -> Start:
    _, variants, sizes = ledger.layout.shape
    user, own = divmod(action - 1, variants * sizes)  # as `Layout.dispatch_of` has it, of one action
    variant, position = divmod(own, sizes)
    size = ledger.layout.spec.batches[position]
    loaded = ledger.servers[place].loaded
    seconds, waiting = ledger.expected(place, loaded, variant, size), ledger.waiting()[user]
    return Start(place, ledger.start(place, user, variant, size), size, loaded, seconds, waiting)
