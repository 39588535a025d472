"""A table of Q values over a discretised observation."""

from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.policies.base import RETURN_SCALE, Arrays, IncompatibleArtifact
from app.policies.functions import masked


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Greedy in a table.

    ``config``: ``algorithm``; ``entries``, which entries of the observation are read; ``low``, ``high``, ``bins``, how
    each is cut into equal bins (what lies beyond falls into the outermost). ``arrays``: ``q`` [cells, N].
    ``advice`` as in ``NetworkPolicy``.
    """

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """The algorithm that filled it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check the table's size, and build.

        Raises:
            IncompatibleArtifact: the table is missing or has another number of cells.
        """
        cells = prod(config["bins"])
        if "q" not in arrays or arrays["q"].shape[:-1] != (cells,):
            raise IncompatibleArtifact(f"the table should have {cells} rows named q")
        if len({len(config[name]) for name in ("entries", "low", "high", "bins")}) != 1:
            raise IncompatibleArtifact("entries, low, high and bins should be as many as each other")
        return cls(config, arrays)

    def cell(self, observation: NDArray[np.floating]) -> NDArray[np.intp]:
        """Row of the table of each observation [B, D] → [B]."""
        return cell(observation, self.config)

    def act(self, situation: Situation) -> Choice:
        """The legal action of the highest Q."""
        observation, q = situation.view.observation, self.arrays["q"]
        values = q[cell(observation, self.config)]
        if self.config.get("advice"):
            start, stop = self.config["advice"]
            values = values + observation[:, start:stop]
        values = masked(values, situation.view.mask)
        return Choice(values.argmax(axis=1), values / RETURN_SCALE)


def cell(observation: NDArray[np.floating], config: dict[str, Any]) -> NDArray[np.intp]:
    """Row of the table of each observation [B, D] → [B]; ``config`` as in ``TablePolicy``."""
    row = np.zeros(len(observation), np.intp)
    for entry, low, high, bins in zip(config["entries"], config["low"], config["high"], config["bins"], strict=True):
        position = (observation[:, entry] - low) / (high - low) * bins
        row = row * bins + np.clip(position.astype(np.intp), 0, bins - 1)
    return row
