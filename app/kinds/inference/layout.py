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
PIECES = 16  # linear pieces in which the fall of quality is tabulated
WAIT = 0
"""Action that starts nothing, or leaves the servers as they are."""


class Dispatch(NamedTuple):
    """Positions of the user, variant and batch size that actions start, of one shape; −1 each if it starts none."""

    user: Integers
    variant: Integers
    batch: Integers


class Layout:
    """Representation of one spec: U users, V variants, K batch sizes, C server classes, N actions, D observation
    entries.

    Action 0 waits. Actions 1 to U·V·K start (user, variant, batch size), the batch size varying fastest, on the idle
    server to decide for. The last 2·C turn a server of a class on, or off. Turning is legal in decisions on the number
    of servers, starting in those on an idle server.

    Attributes:
        spec: spec that the layout is derived from.
        users, variants, servers: names of users, variants and server classes.
        batches: batch sizes, ascending, [K].
        maximum, minimum: most and fewest servers of each class that are on, [C].
        price: price of a server of each class per second, [C].
        startup, switch: seconds to start a server, and to load another variant, [C].
        quality: response qualities by user, variant and delay.
        shape: (U, V, K); dispatches: number of starts U·V·K; actions: number of actions N.
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
        """Position of each user by name."""
        return {name: position for position, name in enumerate(self.users)}

    def dispatch_of(self, action: ArrayLike) -> Dispatch:
        """Return the user, variant and batch size that actions start, in the shape of ``action``."""
        actions = np.asarray(action)
        starts = (actions > WAIT) & (actions <= self.dispatches)
        parts = np.unravel_index(np.where(starts, actions - 1, 0), self.shape)
        return Dispatch(*(np.where(starts, part, -1) for part in parts))

    def action_of(self, user: ArrayLike, variant: ArrayLike, batch: ArrayLike) -> Integers:
        """Return the actions that start (user, variant, batch size), given as positions, of their broadcast shape."""
        _, variants, batches = self.shape
        return 1 + (np.asarray(user) * variants + np.asarray(variant)) * batches + np.asarray(batch)

    def scaling(self, server: int, *, on: bool) -> int:
        """Return the action that turns a server of class ``server`` (a position) on, or off."""
        return 1 + self.dispatches + 2 * server + (not on)

    @cached_property
    def entries(self) -> list[str]:
        """Names of the observation's D entries."""
        of_user = [
            f"{name}.{user}" for name in ("waiting", "oldest", "newest", "rate", "quality") for user in self.users
        ]
        of_class = [f"{name}.{server}" for name in ("idle", "busy", "starting") for server in self.servers]
        entries = ["control", *(f"asked.{server}" for server in self.servers)]
        return [*of_user, *of_class, "next_free", *entries, *(f"loaded.{variant}" for variant in self.variants)]

    @cached_property
    def factors(self) -> NDArray[np.float64]:
        """Factors that scale the numbers of a state to the observation's D entries, [D]; 1 for the one-hot ones."""
        zero_at, ones = self.quality.zero_at, np.ones(len(self.users))
        of_users = [ones, 1 / zero_at, 1 / zero_at, ones * self.spec.control_seconds, ones]
        factors = np.ones(1 + len(self.servers) + len(self.variants))
        return np.concatenate([*of_users, *[1 / self.maximum] * 3, [1 / zero_at.mean()], factors])

    @cached_property
    def log_limit(self) -> float:
        """Natural logarithm of 1 + ``queue_limit``, the largest value for waiting requests."""
        return float(np.log1p(self.spec.queue_limit))

    @cached_property
    def ceilings(self) -> NDArray[np.float64]:
        """Upper bounds of the D scaled observation entries, [D]; infinite except for ages and ``next_free``."""
        of_users = np.repeat([np.inf, LARGEST_AGE, LARGEST_AGE, np.inf, np.inf], len(self.users))
        unbounded = np.full(1 + len(self.servers) + len(self.variants), np.inf)
        return np.concatenate([of_users, np.full(3 * len(self.servers), np.inf), [LARGEST_AGE], unbounded])

    @cached_property
    def one_hot_context(self) -> NDArray[np.float32]:
        """One-hot entries of an observation by class to decide for and loaded variant, [C + 1, V + 1, 1 + C + V]; index
        −1 is ``CONTROL`` or ``NOTHING_LOADED``."""
        classes, loaded = (
            np.roll(np.eye(1 + len(names), dtype=np.float32), -1, axis=0) for names in (self.servers, self.variants)
        )
        shape = len(classes), len(loaded)
        wide = np.broadcast_to(classes[:, None], (*shape, len(classes)))
        long = np.broadcast_to(loaded[:, 1:], (*shape, len(loaded) - 1))
        return np.concatenate([wide, long], axis=2)

    @cached_property
    def told_numbers(self) -> list[list[list[float]]]:
        """One-hot entries by class to decide for and loaded variant, as nested lists, [C + 1][V + 1][1 + C + V]."""
        numbers: list[list[list[float]]] = self.one_hot_context.tolist()
        return numbers

    @cached_property
    def user_of(self) -> Integers:
        """Position of the user of each of the U·V·K start actions."""
        return np.repeat(np.arange(len(self.users)), self.shape[1] * self.shape[2])

    @cached_property
    def needed(self) -> Integers:
        """Least number of the user's waiting requests for which each of the U·V·K start actions is legal."""
        return np.tile(np.concatenate([[1], self.batches[1:]]), self.shape[0] * self.shape[1])

    @cached_property
    def falling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """n ascending delays in seconds, [n], and the share (0 to 1) of quality left by each for U users, [U, n]; to be
        interpolated linearly."""
        starts, ends = self.quality.full_until, self.quality.zero_at
        delays = np.unique(np.concatenate([[0.0], np.linspace(starts, ends, PIECES + 1).ravel()]))
        return delays, self.quality.by_delay(np.arange(len(self.users))[:, None], delays)

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Space of observations: D unbounded float32 of order 1; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces  # from the extra `worker`, which the service doesn't install

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Space of the N actions, from 0; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)
