"""A network of values, acting in NumPy; a recurrent one remembers what it has seen of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.policies.base import RETURN_SCALE, Arrays, IncompatibleArtifact, check_layers
from app.policies.functions import ACTIVATIONS, gated, tanh

CORE, PARTS = "core.", ("weight", "bias")
Layer = tuple[Any, Any]
GATES = ("input.weight", "input.bias", "memory.weight", "memory.bias")
NEVER, SCALE = np.full(1, -np.inf, np.float32), np.float32(RETURN_SCALE)  # arrays of their type: a number is cast anew


def rectified(x: NDArray[np.floating]) -> NDArray[np.floating]:
    """``functions.relu`` of a fresh array, in its place: of one row it takes a third of the time."""
    return np.maximum(x, 0.0, out=x)


def affine(x: NDArray[np.float32], weight: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
    """``functions.linear`` by a ``weight`` [in, out] that is turned already: it takes a third of the time."""
    found: NDArray[np.float32] = x.dot(weight)
    found += bias
    return found


def duelled(outputs: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """``functions.dueling`` of advantages and, last, the value, [B, N + 1]: of one row it takes half the time."""
    advantage, legal = outputs[:, :-1], mask.astype(np.float32)
    level = outputs[:, -1] - np.vecdot(advantage, legal) / np.vecdot(legal, legal)
    found: NDArray[np.float32] = advantage + level[:, None]
    return found


def _check_chain(arrays: Arrays, trunk: Sequence[str], heads: Sequence[str]) -> None:
    """Each layer reads what the one before gives, and the heads what the last does."""
    for before, after in [*pairwise(trunk), *((last, head) for last in trunk[-1:] for head in heads)]:
        given, read = len(arrays[f"{before}.weight"]), arrays[f"{after}.weight"].shape[1]
        if given != read:
            raise IncompatibleArtifact(f"{after} reads {read} numbers, and {before} gives {given}")


@dataclass(frozen=True, eq=False)
class NetworkPolicy:
    """Greedy in Q = advice + head(trunk(observation)), in hundredths of return.

    ``config``: ``algorithm``; ``layers``, the trunk's widths; ``activation``; ``dueling``; ``advice``, the part
    ``[start, stop]`` of the observation that is added to the head's output, or null. ``arrays`` are
    ``trunk.{i}.weight`` [out, in], ``trunk.{i}.bias``, ``advantage.weight``, ``advantage.bias``, and for a dueling
    head ``value.weight``, ``value.bias``. With ``recurrent`` units H in ``config``, a gated core (``functions.gated``,
    its arrays under ``core.``) reads each observation, and the trunk reads what it then remembers, too; both read
    observations through ``tanh``, so that no large entry saturates a gate.
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
        layers = [f"trunk.{i}" for i in range(len(config["layers"]))] + heads
        names = [f"{layer}.{part}" for layer in layers for part in PARTS]
        names += [f"{CORE}{name}" for name in GATES] if config.get("recurrent") else []
        missing = [name for name in names if name not in arrays]
        if missing:
            raise IncompatibleArtifact(f"the network lacks {', '.join(missing)}")
        check_layers(arrays)
        _check_chain(arrays, layers[: len(config["layers"])], heads)
        return cls(config, {k: np.ascontiguousarray(v, np.float32) for k, v in arrays.items()})

    @property
    def units(self) -> int:
        """How many numbers H it remembers of a run; 0: it remembers nothing."""
        return int(self.config.get("recurrent") or 0)

    @cached_property
    def _layers(self) -> tuple[Any, list[Layer], Layer]:
        """Activation, trunk, and head, by weights [in, out]; the value is the last output of a dueling head."""
        activation = rectified if self.config["activation"] == "relu" else ACTIVATIONS[self.config["activation"]]
        trunk = [self._layer(f"trunk.{i}") for i in range(len(self.config["layers"]))]
        names = ["advantage", "value"] if self.config["dueling"] else ["advantage"]
        weight, bias = (np.concatenate([self.arrays[f"{name}.{part}"] for name in names]) for part in PARTS)
        return activation, trunk, (np.ascontiguousarray(weight.T), bias)

    def _layer(self, name: str) -> Layer:
        return np.ascontiguousarray(self.arrays[f"{name}.weight"].T), self.arrays[f"{name}.bias"]

    @cached_property
    def _core(self) -> Arrays:
        return {name: self.arrays[f"{CORE}{name}"] for name in GATES}

    def remember(self, observation: NDArray[np.floating], before: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """What it remembers after ``observation`` [B, D], having remembered ``before`` [B, H], [B, H]."""
        memory = np.zeros((len(observation), self.units), np.float32) if before is None else before
        found: NDArray[np.float32] = gated(tanh(observation.astype(np.float32, copy=False)), memory, self._core)
        return found

    def q_values(
        self, observation: NDArray[np.floating], mask: NDArray[np.bool_], memory: NDArray[np.float32] | None = None
    ) -> NDArray[np.floating]:
        """Q of every action, [B, N], −∞ where illegal, from ``observation`` [B, D] and what it ``remember``ed after
        it, [B, H].
        """
        observation = observation.astype(np.float32, copy=False)
        q = self._outputs(observation, memory)
        if self.config["dueling"]:
            q = duelled(q, mask)
        if self.config["advice"]:
            start, stop = self.config["advice"]
            q = q + observation[:, start:stop]
        return np.where(mask, q, NEVER)

    def _outputs(self, observation: NDArray[np.float32], memory: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """What the head says, [B, N], and of a dueling one, last, the value."""
        hidden = observation if memory is None else np.concatenate([tanh(observation), memory], axis=1)
        activation, trunk, head = self._layers
        for weight, bias in trunk:
            hidden = activation(affine(hidden, weight, bias))
        return affine(hidden, *head)

    def best(self, observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.integer]:
        """The action of ``act`` [B], without any values: a run's value is the same for all of its actions.

        Not for a policy that remembers.
        """
        found = self._outputs(observation, None)
        if self.config["dueling"]:
            found = found[:, :-1]
        if self.config["advice"]:
            start, stop = self.config["advice"]
            found = found + observation[:, start:stop]
        return np.where(mask, found, NEVER).argmax(axis=1)

    def act(self, situation: Situation) -> Choice:
        """The legal action of the highest Q."""
        observation = situation.view.observation
        memory = self.remember(observation, situation.memory) if self.units else None
        q = self.q_values(observation, situation.view.mask, memory)
        return Choice(q.argmax(axis=1), q / SCALE, memory)
