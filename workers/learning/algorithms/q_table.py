"""Tabular Q-learning (Watkins, 1989) on a discretised observation, for whole slabs at once."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.policies.table import cell
from workers.learning.algorithms.base import Acted, Actions, Experience, LearnStats, Masks, Observations
from workers.learning.algorithms.config import QTable
from workers.learning.components.exploration import ApeX, EpsilonGreedy, Linear
from workers.learning.components.value import FORBIDDEN


class Discretiser:
    """Observation [B, D] → cell [B]: entries are cut into equal bins from `low` to `high`, as in `TablePolicy`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.cells = math.prod(config["bins"])

    @classmethod
    def fit(
        cls, observations: Observations, entries: tuple[int, ...], at_most: int, bins: int, skip: slice | None
    ) -> "Discretiser":
        """Cut what was seen; few distinct values get a bin each. Without `entries`, take those that vary most."""
        if not entries:
            spread = observations.std(axis=0)
            if skip is not None:
                spread[skip] = 0.0
            entries = tuple(sorted(int(d) for d in np.argsort(-spread, kind="stable")[:at_most] if spread[d] > 0)) or (
                0,
            )
        cuts = [_cut(observations[:, entry], bins) for entry in entries]
        low, high, counts = (list(column) for column in zip(*cuts, strict=True))
        return cls({"entries": list(entries), "low": low, "high": high, "bins": counts})

    def cell(self, observations: Observations) -> NDArray[np.intp]:
        """Return the cell of each observation."""
        return cell(observations, self.config)


def _cut(values: NDArray[np.float32], bins: int) -> tuple[float, float, int]:
    """Return low, high and number of bins; evenly spaced distinct values fall into the middles of theirs."""
    distinct = np.unique(values)
    if len(distinct) == 1:
        return float(distinct[0]) - 0.5, float(distinct[0]) + 0.5, 1
    low, high = float(distinct[0]), float(distinct[-1])
    count = min(bins, len(distinct))
    margin = (high - low) / (count - 1) / 2 if len(distinct) <= bins else 0.0
    return low - margin, high + margin, count


class TableAgent:
    """Q(s, a) = advice + table[cell(s), a]."""

    def __init__(self, config: QTable, observation: spaces.Box, actions: spaces.Discrete, advice: slice | None) -> None:
        wide = int(observation.shape[0])
        if any(entry >= wide for entry in config.entries):
            raise ValueError(f"entries {config.entries} are not all below the observation's length {wide}")
        self.config, self.actions, self.advice = config, int(actions.n), advice
        wanted = config.exploration
        self.schedule = (
            ApeX(wanted.start) if wanted.schedule == "apex" else Linear(wanted.start, wanted.end, wanted.fraction)
        )
        self.explore = EpsilonGreedy(actions)
        self.discretiser: Discretiser | None = None
        self.table = np.zeros((0, self.actions), np.float32)
        self.visits = np.zeros((0, self.actions), np.float64)
        self.waiting: list[Observations] = []
        self.latest: Experience | None = None

    def values(self, observation: Observations) -> NDArray[np.float32]:
        """Q of every action: [B, D] → [B, N]."""
        found = np.zeros((len(observation), self.actions), np.float32)
        if self.discretiser is not None:
            found += self.table[self.discretiser.cell(observation)]
        if self.advice is not None and self.config.advice:
            found += observation[:, self.advice]
        return found

    def act(self, observation: Observations, mask: Masks, progress: float, rng: np.random.Generator) -> Acted:
        """ε-greedy: [B, D], [B, N] → [B]."""
        batch = len(observation)
        feeds = {
            "values": self.values(observation),
            "mask": mask,
            "noise": rng.random((batch, 2), np.float32),
            "epsilon": self.schedule.epsilon(progress, batch),
        }
        return Acted(self.explore.run(_namespace(), {}, feeds)["action"], np.zeros(batch, np.float32))

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """Best legal action."""
        return np.where(mask, self.values(observation), FORBIDDEN).argmax(axis=1)

    def remember(self, experience: Experience) -> None:
        """Keep the slab for `learn`; before the cells are cut, only its observations."""
        if self.discretiser is None:
            self.waiting.append(np.array(experience.observation))
            if sum(len(slab) for slab in self.waiting) >= self.config.warm_up:
                self._cut()
        else:
            self.latest = experience

    def _cut(self) -> None:
        seen, config = np.concatenate(self.waiting), self.config
        self.discretiser = Discretiser.fit(seen, config.entries, config.at_most, config.bins, self.advice)
        self.table = np.zeros((self.discretiser.cells, self.actions), np.float32)
        self.visits = np.zeros(self.table.shape, np.float64)
        self.waiting = []

    def learn(self, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Move each visited (cell, action) toward the mean of its targets in the slab.

        n visits at rate α are one step of 1 − (1 − α)ⁿ; at first the step is n / visits, the running mean.
        """
        del rng
        if self.latest is None or self.discretiser is None:
            return None
        slab, self.latest = self.latest, None
        following = np.where(slab.next_mask, self.values(slab.next_observation), FORBIDDEN).max(axis=1)
        target = slab.reward + self.config.gamma * np.where(slab.done, 0.0, following)
        rows = np.arange(len(target))
        error = target - self.values(slab.observation)[rows, slab.action]
        places = self.discretiser.cell(slab.observation) * self.actions + slab.action
        counts = np.bincount(places, minlength=self.table.size)
        hit = np.flatnonzero(counts)
        mean = np.bincount(places, weights=error, minlength=self.table.size)[hit] / counts[hit]
        visits = self.visits.reshape(-1)
        visits[hit] += counts[hit]
        rate = max(self.config.rate * (1.0 - progress), 1e-4)
        step = np.maximum(1.0 - (1.0 - rate) ** counts[hit], counts[hit] / visits[hit])
        self.table.reshape(-1)[hit] += (step * mean).astype(np.float32)
        explored = float(self.schedule.epsilon(progress, len(target)).mean())
        return LearnStats(1, float(np.abs(error).mean()), rate, explored)

    def imitate(self, slabs: Iterable[Experience], rng: np.random.Generator) -> LearnStats:
        """Learn from what an expert did as from one's own experience; what it never tried keeps its advice."""
        stats, updates = None, 0
        for slab in slabs:
            self.remember(slab)
            stats = self.learn(0.0, rng)
            updates += stats is not None
        return LearnStats(updates, stats.loss if stats else 0.0, self.config.rate, 0.0)

    def forget(self) -> None:
        """Nothing is remembered beyond a slab."""

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Cells, table, visits."""
        del memory
        arrays: dict[str, NDArray[Any]] = {"table": self.table, "visits": self.visits}
        if self.waiting:
            arrays["waiting"] = np.concatenate(self.waiting)
        cut = None if self.discretiser is None else self.discretiser.config
        return {name: value.copy() for name, value in arrays.items()}, {"cut": cut}

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""
        self.table, self.visits = arrays["table"].copy(), arrays["visits"].copy()
        self.waiting = [arrays["waiting"].copy()] if "waiting" in arrays else []
        self.discretiser = Discretiser(values["cut"]) if values["cut"] is not None else None

    def parameters(self) -> NDArray[np.float32]:
        """The table, flat."""
        return self.table.reshape(-1).copy()

    def load(self, parameters: NDArray[np.float32]) -> None:
        """Overwrite the table, cell by cell."""
        self.table = np.array(parameters, np.float32).reshape(-1, self.actions)

    def export(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """A `table` policy: which entries are cut where, and the values of each cell."""
        if self.discretiser is None:
            raise ValueError(f"no cells yet: needs {self.config.warm_up} observations")
        used = self.advice if self.config.advice else None
        advice = None if used is None else [used.start, used.stop]
        return "table", {**self.discretiser.config, "advice": advice}, {"q": self.table}

    def start_from(self, arrays: Mapping[str, NDArray[Any]], config: Mapping[str, Any] | None = None) -> None:
        """Go on from a published table: its cells, cut as its policy's config says, count as visited often.

        Raises ValueError where the config is missing, or the table has another number of cells or actions.
        """
        if config is None:
            raise ValueError("a table can't be read without its policy's config, which says how its cells are cut")
        made = Discretiser({name: config[name] for name in ("entries", "low", "high", "bins")})
        if arrays["q"].shape != (made.cells, self.actions):
            wanted = made.cells, self.actions
            raise ValueError(f"the published table has {arrays['q'].shape} cells and actions, wanted is {wanted}")
        self.discretiser, self.table = made, np.array(arrays["q"], np.float32)
        self.visits = np.full(self.table.shape, 1.0 / self.config.rate)


def _namespace() -> Any:
    from workers.learning.backends.numpy import NumpyBackend

    return NumpyBackend.xp
