"""Who chooses at a decision."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation, View
from app.kinds.inference.acting import asked, legal
from app.kinds.inference.layout import Layout
from app.kinds.inference.observation import mask, scaled, seen
from app.kinds.inference.projector import Projector
from app.kinds.inference.queue.fleet import Fleet
from app.kinds.inference.queue.ledger import Row, states
from app.kinds.inference.state import CONTROL
from app.kinds.inference.transitions import Transitions
from app.policies.network import NetworkPolicy

MOST_KEPT = 4096  # sets of legal starts


class Chooser:
    """A policy of a workload, and what it is shown of it.

    Attributes:
        adapts: whether the policy wants the runs' last transitions.
    """

    def __init__(self, projector: Projector, fleet: Fleet, policy: Policy) -> None:
        self._projector, self._fleet, self._policy = projector, fleet, policy
        self._glance = Glance(projector.layout, fleet)
        self._network = policy if isinstance(policy, NetworkPolicy) and not policy.units else None
        self.name, self.adapts = policy.name, bool(getattr(policy, "adapts", False))

    def choose(self, rows: Sequence[Row], recent: Transitions | None = None) -> list[int]:
        """Actions of the workload's layout at B decisions; with the last transitions where it ``adapts``.

        Raises:
            IllegalAction: the policy chose one that is not legal.
        """
        if self._network is not None:
            view = self._glance.view(rows)
            return legal(self._network.name, self._network.best(*view).tolist(), view.mask)
        state = states(self._fleet, rows)
        projector = self._projector if recent is None else self._projector._replace(recent=recent)
        return asked(self._policy, Situation(projector, state, seen(projector.layout, state)))


class Glance:
    """What policies are shown who read nothing but a view: the same as ``seen`` gives, in fewer steps.

    Which starts are legal recurs, and is kept.
    """

    def __init__(self, layout: Layout, fleet: Fleet) -> None:
        self._layout, self._fleet = layout, fleet
        self._starts: dict[tuple[float, ...], NDArray[np.bool_]] = {}

    def view(self, rows: Sequence[Row]) -> View:
        """Of B decisions."""
        told = self._layout.told_numbers
        known = np.array([row.known + told[row.asked][row.loaded] for row in rows])
        masks = [self._mask(row) for row in rows]
        observation = scaled(self._layout, known).astype(np.float32)
        return View(observation, masks[0] if len(masks) == 1 else np.concatenate(masks))

    def _mask(self, row: Row) -> NDArray[np.bool_]:
        """Legal actions, [1, N]: on a server they depend on which batch sizes each user has requests for alone."""
        if row.asked == CONTROL:
            return mask(self._layout, states(self._fleet, [row]))
        sizes, users = self._layout.spec.batches, len(self._layout.users)
        waiting = tuple([count and (bisect_right(sizes, count) or 1) for count in row.known[:users]])
        found = self._starts.get(waiting)
        if found is None:
            found = mask(self._layout, states(self._fleet, [row]))
            found.setflags(write=False)
            if len(self._starts) < MOST_KEPT:
                self._starts[waiting] = found
        return found
