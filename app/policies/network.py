"""A Q-network, acting in NumPy."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.policies.base import RETURN_SCALE, Arrays, IncompatibleArtifact
from app.policies.functions import ACTIVATIONS, dueling, linear, masked


@dataclass(frozen=True, eq=False)
class NetworkPolicy:
    """Greedy in Q = advice + head(trunk(observation)), in hundredths of return.

    ``config``: ``algorithm``; ``layers``, the trunk's widths; ``activation``; ``dueling``; ``advice``, the part
    ``[start, stop]`` of the observation that is added to the head's output, or null. ``arrays`` are
    ``trunk.{i}.weight`` [out, in], ``trunk.{i}.bias``, ``advantage.weight``, ``advantage.bias``, and for a dueling
    head ``value.weight``, ``value.bias``.
    """

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check names and shapes, and build.

        Raises:
            IncompatibleArtifact: an array is missing or of the wrong shape.
        """
        heads = ["advantage", "value"] if config["dueling"] else ["advantage"]
        names = [f"trunk.{i}" for i in range(len(config["layers"]))] + heads
        missing = [f"{n}.{part}" for n in names for part in ("weight", "bias") if f"{n}.{part}" not in arrays]
        if missing:
            raise IncompatibleArtifact(f"the network lacks {', '.join(missing)}")
        return cls(config, {k: np.ascontiguousarray(v, np.float32) for k, v in arrays.items()})

    @property
    def observation_size(self) -> int:
        """Length of the observations that it reads."""
        return int(next(iter(self._layers()))[0].shape[1])

    def q_values(self, observation: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
        """Q of every action, [B, N], −∞ where illegal, from ``observation`` [B, D]."""
        observation = observation.astype(np.float32, copy=False)
        hidden, activation = observation, ACTIVATIONS[self.config["activation"]]
        for i in range(len(self.config["layers"])):
            hidden = activation(linear(hidden, self.arrays[f"trunk.{i}.weight"], self.arrays[f"trunk.{i}.bias"]))
        q = linear(hidden, self.arrays["advantage.weight"], self.arrays["advantage.bias"])
        if self.config["dueling"]:
            q = dueling(linear(hidden, self.arrays["value.weight"], self.arrays["value.bias"]), q, mask)
        if self.config["advice"]:
            start, stop = self.config["advice"]
            q = q + observation[:, start:stop]
        result: NDArray[np.floating] = masked(q, mask)
        return result

    def act(self, situation: Situation) -> Choice:
        """The legal action of the highest Q."""
        q = self.q_values(situation.view.observation, situation.view.mask)
        return Choice(q.argmax(axis=1), q / RETURN_SCALE)

    def _layers(self) -> list[tuple[NDArray[np.generic], NDArray[np.generic]]]:
        names = [f"trunk.{i}" for i in range(len(self.config["layers"]))] + ["advantage"]
        return [(self.arrays[f"{n}.weight"], self.arrays[f"{n}.bias"]) for n in names]
