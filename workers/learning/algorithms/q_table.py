"""Tabular Q-learning, and centred rewards for problems without end.

Where the future is discounted by the duration of decisions and nothing ends, the values of all states share one level
that is many times as large as their differences. Learning it takes as long as the horizon, and it does not matter for
decisions. Rewards are therefore centred (Naik et al., Reward Centering, 2024): reduced by the level's share of each
decision's duration. The optimal policy stays the same, since all values change by one number. The level is
estimated anew in each batch, as the one at which the mean temporal-difference error is 0.

Shapes: B environments, D observation entries, N actions, n observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.policies.artifact import cell
from workers.learning.algorithms.base import (
    ActResult,
    Batch,
    Buffer,
    Experience,
    Exported,
    Host,
    LearnStats,
    Masks,
    Observations,
    State,
)
from workers.learning.algorithms.buffers import SlabBuffer
from workers.learning.algorithms.config import Exploration, QTable
from workers.learning.backends import Array, Backend, NumpyBackend
from workers.learning.components.exploration import ApeX, EpsilonGreedy, Linear, Schedule
from workers.learning.components.value import FORBIDDEN

NEVER = 1e-9  # avoids division by 0


def centre_rewards(xp: Any, reward: Array, ends: Array, surplus: Array) -> Array:
    """Return rewards or targets minus each decision's share of the common level; all arrays have one shape.

    Args:
        xp: array namespace (NumPy's or the backend's).
        reward: rewards, or value targets.
        ends: 1 − discount of the following state, shaped as `reward`.
        surplus: temporal-difference errors, whose mean becomes 0, shaped as `reward`.
    """
    return reward - ends * (xp.mean(surplus) / (xp.mean(ends) + NEVER))


# Tabular Q-learning (Watkins, 1989) on a discretised observation, for whole slabs at once.


MOST_BINS = 64  # of an entry with few distinct values
MOST_CELLS = 1 << 19  # limit, as the table is copied at each update and published whole
EVEN = 1e-3  # relative tolerance of equal spacing


class Discretiser:
    """Map from observations [B, D] to cell indices [B], by equal bins from `low` to `high` in some of D `entries`.

    Args:
        config: lists of equal length: `entries` (indices), `low`, `high`, and `bins` (their numbers).
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.cells = math.prod(config["bins"])

    @classmethod
    def fit(cls, observations: Observations, entries: tuple[int, ...], at_most: int, bins: int) -> Discretiser:
        """Return a discretiser with bins chosen from observations [n, D].

        An entry of more than ``bins`` distinct values has ``bins`` bins; others have a bin for each value (at most 64),
        unless the table would exceed 2¹⁹ cells. Without ``entries``, the ``at_most`` entries of largest standard
        deviation are used.
        """
        if not entries:
            spread = observations.std(axis=0)
            entries = tuple(sorted(int(d) for d in np.argsort(-spread, kind="stable")[:at_most] if spread[d] > 0)) or (
                0,
            )
        cuts = [_cut(observations[:, entry], bins) for entry in entries]
        while math.prod(count for *_, count in cuts) > MOST_CELLS:
            most = max(range(len(cuts)), key=lambda place: cuts[place][2])
            if cuts[most][2] <= bins:
                break
            cuts[most] = (*_ends(observations[:, entries[most]]), bins)
        low, high, counts = (list(column) for column in zip(*cuts, strict=True))
        return cls({"entries": list(entries), "low": low, "high": high, "bins": counts})

    def cell(self, observations: Observations) -> NDArray[np.intp]:
        """Return the cell index [B] of each observation [B, D]."""
        return cell(observations, self.config)


def _ends(values: NDArray[np.float32]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _cut(values: NDArray[np.float32], bins: int) -> tuple[float, float, int]:
    """Return low, high and number of bins for values [n]; at most ``bins`` distinct values get separate bins."""
    distinct = np.unique(values)
    if len(distinct) == 1:
        return float(distinct[0]) - 0.5, float(distinct[0]) + 0.5, 1
    low, high = _ends(distinct)
    if len(distinct) > bins:
        return low, high, bins
    spaces = (high - low) / float(np.diff(distinct).min())  # by the narrowest gap
    count = min(math.ceil(spaces - EVEN), MOST_BINS - 1) + 1
    margin = (high - low) / (count - 1) / 2
    return low - margin, high + margin, count


def ladder(wanted: Exploration) -> Schedule:
    """Return a schedule of ε: for `apex` constant and different by environment, else linear and equal for all."""
    return ApeX(wanted.start) if wanted.schedule == "apex" else Linear(wanted.start, wanted.end, wanted.fraction)


class TableLearner:
    """Learner of a table Q(s, a) = table[cell(s), a] for D observation entries and N actions.

    Its state holds `table` and `visits` [cells, N], and until the bins are chosen the observations `seen` [n, D].

    Raises:
        ValueError: the config names an entry that the observation does not have.
    """

    backend: Backend = NumpyBackend()
    acting: tuple[str, ...] = ("table",)
    shared: tuple[str, ...] = ("table",)

    def __init__(self, config: QTable, observation: spaces.Box, actions: spaces.Discrete) -> None:
        wide = int(observation.shape[0])
        if any(entry >= wide for entry in config.entries):
            raise ValueError(f"entries {config.entries} are not all below the observation's length {wide}")
        self.config, self.actions, self.wide = config, int(actions.n), wide
        self.schedule = ladder(config.exploration)
        self.explore = EpsilonGreedy(actions)

    def init(self, rng: np.random.Generator) -> State:
        """Return the initial state with an empty table; `update` chooses the bins from the first observations."""
        del rng
        return State({**self._cells(0), "seen": np.zeros((0, self.wide), np.float32)}, {"cut": None})

    def _cells(self, count: int) -> Host:
        return {"table": np.zeros((count, self.actions), np.float32), "visits": np.zeros((count, self.actions))}

    def buffer(self, rng: np.random.Generator) -> SlabBuffer:
        """Return a new buffer of the latest transition of each environment; ``rng`` is not used."""
        del rng
        return SlabBuffer()

    def values(self, state: State, observation: Observations, mask: Masks | None = None) -> NDArray[np.float32]:
        """Return Q-values [B, N] for ``observation`` [B, D], 0 before the bins are chosen; ``mask`` is unused."""
        del mask
        result = np.zeros((len(observation), self.actions), np.float32)
        if state.values["cut"] is not None:
            result += state.arrays["table"][Discretiser(state.values["cut"]).cell(observation)]
        return result

    def act(
        self,
        state: State,
        observation: Observations,
        mask: Masks,
        exploration: NDArray[np.float32],
        rng: np.random.Generator,
        carry: NDArray[np.float32] | None = None,
    ) -> ActResult:
        """Choose the actions [B] for observations [B, D] ε-greedily among the legal ones (``mask`` [B, N]).

        ``exploration`` [B] is ε; the returned `log_prob` [B] is 0.
        """
        del carry
        noise = rng.random((len(observation), 2), np.float32)
        feeds = {"values": self.values(state, observation), "mask": mask, "noise": noise, "epsilon": exploration}
        action = self.explore.run(self.backend.xp, {}, feeds)["action"]
        return ActResult(action, np.zeros(len(observation), np.float32))

    def update(self, state: State, batch: Batch, rng: np.random.Generator) -> tuple[State, LearnStats]:
        """Return the state with each visited (cell, action) moved toward the mean of its targets, and statistics.

        Before the bins are chosen, observations are only added, and there are 0 updates.
        n visits at rate α are one step of 1 − (1 − α)ⁿ; early on the step is n / visits, the running mean.
        """
        del rng
        if state.values["cut"] is None:
            return self._observe_batch(state, batch.arrays["observation"]), LearnStats(0, 0.0, self.config.rate)
        slab, places, error = batch.arrays, *self._errors(state, batch.arrays)
        table, visits = state.arrays["table"].reshape(-1).copy(), state.arrays["visits"].reshape(-1).copy()
        hit, example, counts = np.unique(places, return_inverse=True, return_counts=True)  # tables may be large
        mean = np.bincount(example, weights=error) / counts
        visits[hit] += counts
        rate = max(self.config.rate * (1.0 - batch.progress), 1e-4)
        step = np.maximum(1.0 - (1.0 - rate) ** counts, counts / visits[hit])
        table[hit] += (step * mean).astype(np.float32)
        explored = float(self.schedule.epsilon(batch.progress, len(slab["reward"])).mean())
        learned = {"table": table.reshape(-1, self.actions), "visits": visits.reshape(-1, self.actions)}
        return state.but(learned), LearnStats(1, float(np.abs(error).mean()), rate, explored)

    def _observe_batch(self, state: State, observation: Observations) -> State:
        """Return the state with observations [B, D] added, and with bins once there are `warm_up` observations."""
        observations, config = np.concatenate([state.arrays["seen"], observation]), self.config
        if len(observations) < config.warm_up:
            return state.but({"seen": observations})
        fit = Discretiser.fit(observations, config.entries, config.at_most, config.bins)
        return state.but({**self._cells(fit.cells), "seen": observations[:0]}, cut=fit.config)

    def _errors(self, state: State, slab: Host) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        """Return each example's flat index in the table, and its target minus the present value, [B] each."""
        following = np.where(slab["next_mask"], self.values(state, slab["next_observation"]), FORBIDDEN).max(axis=1)
        gamma = self.config.gamma * (1.0 if slab.get("discount") is None else slab["discount"])
        alive = np.where(slab["done"], 0.0, gamma)
        target = slab["reward"] + alive * following
        taken = self.values(state, slab["observation"])[np.arange(len(target)), slab["action"]]
        if self.config.centred:
            target = centre_rewards(np, target, 1.0 - alive, target - taken)
        cells = Discretiser(state.values["cut"]).cell(slab["observation"])
        return cells * self.actions + slab["action"], target - taken

    def imitate(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> tuple[State, LearnStats]:
        """Learn from an expert's transitions as from the agent's own; return the new state, and statistics.

        Actions that the expert never took keep the value 0.
        """
        del buffer
        loss, updates = 0.0, 0
        for slab in slabs:
            state, stats = self.update(state, Batch(slab._asdict(), 0.0), rng)
            loss, updates = (stats.loss, updates + 1) if stats.updates else (loss, updates)
        return state, LearnStats(updates, loss, self.config.rate)

    def export(self, state: State) -> Exported:
        """Return the policy as type `table`, with its bins as config and the array `q` [cells, N] of values.

        Raises:
            ValueError: the bins are not chosen yet.
        """
        if state.values["cut"] is None:
            raise ValueError(f"no cells yet: needs {self.config.warm_up} observations")
        return "table", {**state.values["cut"]}, {"q": state.arrays["table"]}

    def start(self, state: State, arrays: Host, config: Mapping[str, Any] | None = None) -> State:
        """Return the state with a published table and its bins (``config``); cells count as visited 1 / rate times.

        Raises:
            ValueError: the config is missing, or the table has another number of cells or actions.
        """
        if config is None:
            raise ValueError("a table can't be read without its policy's config, which says how its cells are cut")
        bins = Discretiser({name: config[name] for name in ("entries", "low", "high", "bins")})
        if arrays["q"].shape != (bins.cells, self.actions):
            wanted = bins.cells, self.actions
            raise ValueError(f"the published table has {arrays['q'].shape} cells and actions, wanted is {wanted}")
        table = np.array(arrays["q"], np.float32)
        return state.but({"table": table, "visits": np.full(table.shape, 1.0 / self.config.rate)}, cut=bins.config)
