"""Names, spaces and scales of an ``inference`` workload, derived once from its spec."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kinds.inference.quality import QualityTable

if TYPE_CHECKING:
    from gymnasium import spaces

    from app.kinds.inference.spec import InferenceSpec

Integers = NDArray[np.int64]
LARGEST_AGE = 2.0  # in units of the age at which an answer is worth nothing
PIECES = 16  # in which quality falls from all to nothing, where it is tabulated
WAIT = 0
"""The action that starts nothing, or leaves the servers as they are."""


class Dispatch(NamedTuple):
    """Positions of what actions start; -1 each where an action starts nothing."""

    user: Integers
    variant: Integers
    batch: Integers


class Layout:
    """The representation of one spec: U users, V variants, K batch sizes, C server classes, N actions, D entries.

    Action 0 waits. Actions 1 to U·V·K start (user, variant, batch size), the last fastest, on the server that is asked
    for. The 2·C after them turn a server of a class on, or off; those are legal when control is asked for, the others
    when a server is.

    Attributes:
        batches: sizes, [K].
        maximum, minimum: servers of each class, [C].
        price: of a server of each class per second, [C].
    """

    def __init__(self, spec: InferenceSpec) -> None:
        self.spec = spec
        self.users = [user.name for user in spec.users]
        self.variants = [variant.name for variant in spec.variants]
        self.servers = [server.name for server in spec.servers]
        self.batches: Integers = np.array(spec.batches, np.int64)
        self.maximum: Integers = np.array([server.maximum for server in spec.servers])
        self.minimum: Integers = np.array([server.minimum for server in spec.servers])
        self.price = np.array([server.price_per_hour for server in spec.servers]) / 3600
        self.startup = np.array([server.startup_seconds for server in spec.servers])
        self.switch = np.array([server.switch_seconds for server in spec.servers])
        self.quality = QualityTable(spec)
        self.shape = len(self.users), len(self.variants), len(self.batches)
        self.dispatches = int(np.prod(self.shape))
        self.actions = 1 + self.dispatches + 2 * len(self.servers)

    @cached_property
    def user_index(self) -> dict[str, int]:
        """Where each user stands."""
        return {name: position for position, name in enumerate(self.users)}

    def dispatch_of(self, action: ArrayLike) -> Dispatch:
        """What actions start, in any shape."""
        actions = np.asarray(action)
        starts = (actions > WAIT) & (actions <= self.dispatches)
        parts = np.unravel_index(np.where(starts, actions - 1, 0), self.shape)
        return Dispatch(*(np.where(starts, part, -1) for part in parts))

    def action_of(self, user: ArrayLike, variant: ArrayLike, batch: ArrayLike) -> Integers:
        """The actions that start these positions; broadcast."""
        _, variants, batches = self.shape
        return 1 + (np.asarray(user) * variants + np.asarray(variant)) * batches + np.asarray(batch)

    def scaling(self, server: int, *, on: bool) -> int:
        """The action that turns a server of a class on, or off."""
        return 1 + self.dispatches + 2 * server + (not on)

    @cached_property
    def entries(self) -> list[str]:
        """What each entry of an observation is, [D]."""
        of_user = [
            f"{name}.{user}" for name in ("waiting", "oldest", "newest", "rate", "quality") for user in self.users
        ]
        of_class = [f"{name}.{server}" for name in ("idle", "busy", "starting") for server in self.servers]
        asked = ["control", *(f"asked.{server}" for server in self.servers)]
        return [*of_user, *of_class, "next_free", *asked, *(f"loaded.{variant}" for variant in self.variants)]

    @cached_property
    def factors(self) -> NDArray[np.float64]:
        """What the numbers of an observation are multiplied by, [D]: those from ``waiting`` to ``next_free``, and 1."""
        zero_at, ones = self.quality.zero_at, np.ones(len(self.users))
        of_users = [ones, 1 / zero_at, 1 / zero_at, ones * self.spec.control_seconds, ones]
        told = np.ones(1 + len(self.servers) + len(self.variants))
        return np.concatenate([*of_users, *[1 / self.maximum] * 3, [1 / zero_at.mean()], told])

    @cached_property
    def log_limit(self) -> float:
        """What the logarithm of requests that wait is at most."""
        return float(np.log1p(self.spec.queue_limit))

    @cached_property
    def ceilings(self) -> NDArray[np.float64]:
        """What they are at most, [D], once ``waiting`` and ``rate`` are logarithms: ages, ``next_free`` are bounded."""
        of_users = np.repeat([np.inf, LARGEST_AGE, LARGEST_AGE, np.inf, np.inf], len(self.users))
        unbounded = np.full(1 + len(self.servers) + len(self.variants), np.inf)
        return np.concatenate([of_users, np.full(3 * len(self.servers), np.inf), [LARGEST_AGE], unbounded])

    @cached_property
    def told(self) -> NDArray[np.float32]:
        """The last entries, by what is asked for and what is loaded, [C + 1, V + 1, 1 + C + V]: ``CONTROL`` and
        ``NOTHING_LOADED``, which are −1, have the last place.
        """
        asked, loaded = (
            np.roll(np.eye(1 + len(names), dtype=np.float32), -1, axis=0) for names in (self.servers, self.variants)
        )
        shape = len(asked), len(loaded)
        wide = np.broadcast_to(asked[:, None], (*shape, len(asked)))
        long = np.broadcast_to(loaded[:, 1:], (*shape, len(loaded) - 1))
        return np.concatenate([wide, long], axis=2)

    @cached_property
    def told_numbers(self) -> list[list[list[float]]]:
        """The same as plain lists."""
        numbers: list[list[list[float]]] = self.told.tolist()
        return numbers

    @cached_property
    def user_of(self) -> Integers:
        """Whose requests each start takes, [U·V·K]."""
        return np.repeat(np.arange(len(self.users)), self.shape[1] * self.shape[2])

    @cached_property
    def needed(self) -> Integers:
        """How many requests must wait for each start, [U·V·K]."""
        return np.tile(np.concatenate([[1], self.batches[1:]]), self.shape[0] * self.shape[1])

    @cached_property
    def falling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Delays, ascending [n], and the part of each user's quality that they leave, [U, n]: linear in between."""
        starts, ends = self.quality.full_until, self.quality.zero_at
        delays = np.unique(np.concatenate([[0.0], np.linspace(starts, ends, PIECES + 1).ravel()]))
        return delays, self.quality.by_delay(np.arange(len(self.users))[:, None], delays)

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Observations: D numbers of order 1."""
        from gymnasium import spaces  # of the extra `worker`: what serves has no use for it

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Actions by their number."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)
