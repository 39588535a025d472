"""Choice of batches and servers by a policy, with checks of its actions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation, View
from app.kinds.inference.dynamics import CONTROL, Projector, Transitions, mask, scale_columns, view_of
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.queue import Batch, Fleet
from app.kinds.inference.report import Ledger, Row, states
from app.policies.network import NetworkPolicy

# Actions of a policy, checked against the mask.


class IllegalAction(ValueError):
    """A policy chose a masked action."""


def choose_actions(policy: Policy, situation: Situation) -> list[int]:
    """Return the actions that ``policy`` chooses for the B runs of a situation.

    Raises:
        IllegalAction: a chosen action is masked.
    """
    return legal(policy.name, policy.act(situation).action.tolist(), situation.view.mask)


def legal(name: str, actions: list[int], mask: NDArray[np.bool_]) -> list[int]:
    """Return ``actions`` of the policy ``name`` for B runs if all are legal.

    Raises:
        IllegalAction: one isn't legal by ``mask`` [B, N], or isn't from 0 to N − 1.
    """
    for row, action in enumerate(actions):  # faster than arrays for a single row, the usual case
        if not (0 <= action < mask.shape[1] and mask[row, action]):
            raise IllegalAction(f"{name} chose action {action}, which is not legal here")
    return actions


# Policy bound to a workload.


MOST_KEPT = 4096  # sets of legal starts


class Chooser:
    """A policy bound to a workload, which builds its situations.

    Attributes:
        name: name of the policy.
        adapts: whether the policy uses the runs' last transitions.
    """

    def __init__(self, projector: Projector, fleet: Fleet, policy: Policy) -> None:
        self._projector, self._fleet, self._policy = projector, fleet, policy
        self._glance = Glance(projector.layout, fleet)
        self._network = policy if isinstance(policy, NetworkPolicy) and not policy.units else None
        self.name, self.adapts = policy.name, bool(getattr(policy, "adapts", False))

    def choose(self, rows: Sequence[Row], recent: Transitions | None = None) -> list[int]:
        """Choose an action at each of B decisions ``rows``; ``recent``: last ended batches and arrivals (None:
        unknown), used if the policy ``adapts``.

        Raises:
            IllegalAction: the policy chose a masked action.
        """
        if self._network is not None:
            view = self._glance.view(rows)
            return legal(self._network.name, self._network.best(*view).tolist(), view.mask)
        state = states(self._fleet, rows)
        projector = self._projector if recent is None else self._projector._replace(recent=recent)
        return choose_actions(self._policy, Situation(projector, state, view_of(projector.layout, state)))


class Glance:
    """Computes observations and masks of legal actions with a cache, faster than ``dynamics.view_of``, for policies
    that use nothing else of a situation."""

    def __init__(self, layout: Layout, fleet: Fleet) -> None:
        self._layout, self._fleet = layout, fleet
        self._starts: dict[tuple[float, ...], NDArray[np.bool_]] = {}

    def view(self, rows: Sequence[Row]) -> View:
        """Return the observation [B, D] and the mask of legal actions [B, N] at B decisions ``rows``."""
        told_numbers = self._layout.told_numbers
        known = np.array([row.numbers + told_numbers[row.context][row.loaded] for row in rows])
        masks = [self._mask(row) for row in rows]
        observation = scale_columns(self._layout, known).astype(np.float32)
        return View(observation, masks[0] if len(masks) == 1 else np.concatenate(masks))

    def _mask(self, row: Row) -> NDArray[np.bool_]:
        """Return the mask of legal actions, [1, N]; for starts it is cached by the batch sizes that queues allow."""
        if row.context == CONTROL:
            return mask(self._layout, states(self._fleet, [row]))
        sizes, users = self._layout.spec.batches, len(self._layout.users)
        waiting = tuple([count and (bisect_right(sizes, count) or 1) for count in row.numbers[:users]])
        result = self._starts.get(waiting)
        if result is None:
            result = mask(self._layout, states(self._fleet, [row]))
            result.setflags(write=False)
            if len(self._starts) < MOST_KEPT:
                self._starts[waiting] = result
        return result


# Decision of a run: first the number of servers, then one idle server after another.


T = TypeVar("T")
Asking = Generator[Row, int, T]
MOST_TURNS = 4
"""Most servers turned on or off at once."""


class Start(NamedTuple):
    """A batch that starts on a server.

    Attributes:
        place: position of the server in the fleet.
        batch: the batch, with its requests.
        size: chosen batch size; the batch may have fewer requests.
        loaded: position of the variant loaded before, or ``NOTHING_LOADED``.
        seconds: expected duration in seconds, loading included; None without a domain model.
        waiting: number of the user's requests that waited before.
    """

    place: int
    batch: Batch
    size: int
    loaded: int
    seconds: float | None
    waiting: int


class DecisionChanges(NamedTuple):
    """Changes of a decision: batches that start, and servers turned on (True) or off by position."""

    starts: list[Start]
    turns: list[tuple[int, bool]]


def decide(ledgers: Sequence[Ledger], chooser: Chooser) -> list[DecisionChanges]:
    """Decide several runs at once until no more batches start, one result per ledger; updates the ledgers in place.

    Raises:
        IllegalAction: the policy chose a masked action.
    """
    if len(ledgers) == 1:
        return [_alone(ledgers[0], chooser)]
    asking, decision = [_asking(ledger) for ledger in ledgers], [DecisionChanges([], [])] * len(ledgers)
    actions: dict[int, int | None] = dict.fromkeys(range(len(ledgers)))
    while actions:
        rows: dict[int, Row] = {}
        for run, action in actions.items():
            try:
                rows[run] = next(asking[run]) if action is None else asking[run].send(action)
            except StopIteration as done:
                decision[run] = done.value
        recent = concatenate([ledgers[run].recent() for run in rows]) if chooser.adapts and rows else None
        chosen = chooser.choose(list(rows.values()), recent) if rows else []
        actions = dict(zip(rows, chosen, strict=True))
    return decision


def _alone(ledger: Ledger, chooser: Chooser) -> DecisionChanges:
    asking = _asking(ledger)
    try:
        row = next(asking)
        while True:
            recent = ledger.recent() if chooser.adapts else None
            row = asking.send(chooser.choose([row], recent)[0])
    except StopIteration as done:
        decided: DecisionChanges = done.value
        return decided


def concatenate(recent: Sequence[Transitions]) -> Transitions:
    """Concatenate the last transitions of several runs to one batch of runs; raises TypeError if there are none."""
    return Transitions(*(np.concatenate(parts) for parts in zip(*recent, strict=True)))


def _asking(ledger: Ledger) -> Asking[DecisionChanges]:
    """Decide one run as a coroutine, which yields rows to decide and receives actions."""
    turns = (yield from _turns(ledger)) if ledger.now >= ledger.control else []
    starts = yield from _starts(ledger)
    return DecisionChanges(starts, turns)


def _turns(ledger: Ledger) -> Asking[list[tuple[int, bool]]]:
    """Turn servers on or off, at most ``MOST_TURNS``, until the policy waits; return (fleet index, whether on) each."""
    seconds, turns = ledger.layout.spec.control_seconds, list[tuple[int, bool]]()
    ledger.control = (ledger.now // seconds + 1) * seconds
    while ledger.scalable and len(turns) < MOST_TURNS:
        action = yield ledger.observe(CONTROL)
        if action == WAIT:
            break
        position, off = divmod(action - 1 - ledger.layout.dispatches, 2)
        turns.append((ledger.turn_off(position) if off else ledger.turn_on(position), not off))
    return turns


def _starts(ledger: Ledger) -> Asking[list[Start]]:
    """Start batches on idle servers, and return them; after a waiting action, equal servers are skipped until another
    starts."""
    waited, starts = set[tuple[int, int]](), list[Start]()
    for place in ledger.idle():
        if not ledger.anyone_waits:
            break
        alike = ledger.fleet.of[place], ledger.servers[place].loaded
        if alike in waited:
            continue
        action = yield ledger.observe(place)
        if action == WAIT:
            waited.add(alike)
            continue
        _, variants, sizes = ledger.layout.shape
        user, own = divmod(action - 1, variants * sizes)  # as `Layout.dispatch_of` has it, of one action
        variant, position = divmod(own, sizes)
        size = ledger.layout.spec.batches[position]
        loaded = ledger.servers[place].loaded
        seconds, waiting = ledger.expected(place, loaded, variant, size), ledger.waiting()[user]
        starts.append(Start(place, ledger.start(place, user, variant, size), size, loaded, seconds, waiting))
        waited.clear()
    return starts
