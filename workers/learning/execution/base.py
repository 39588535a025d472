"""The contract of execution, and its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from workers.learning.algorithms.base import LearnStats
from workers.learning.algorithms.buffers import part


class ExecutionError(Exception):
    """A training can't be run in this way; the message says why."""


@dataclass(frozen=True)
class Plan:
    """How long, and in which pieces.

    Args:
        steps: environment steps of the whole training.
        chunk_steps: environment steps between checkpoints.
        keep_memory: put the replay memory into checkpoints; a training that `serial` resumes is then bit-equal to one
            that was not interrupted. Without it checkpoints are small, and the next chunk begins by filling the memory
            to where it was with transitions of the present policy, which count neither as steps nor as updates.
        pauses: shares of the training at which a chunk ends early, ascending: whoever runs it looks in there.
    """

    steps: int
    chunk_steps: int = 1 << 18
    keep_memory: bool = True
    pauses: tuple[float, ...] = ()


@dataclass(frozen=True)
class Live:
    """Figures of the last chunk.

    `episode_return`: mean of the episodes that ended in it, exploration included. `exploration`: see `LearnStats`.
    """

    steps: int = 0
    episode_return: float | None = None
    loss: float | None = None
    updates: int = 0
    steps_per_second: float = 0.0
    exploration: float | None = None


class Executor(Protocol):
    """What runs one agent's training, chunk by chunk.

    Attributes:
        agent: an `Agent`, or `IndependentAgents` that learn together: what has been learned so far.
        plan: length and pieces.
        steps: environment steps learned from.
        elapsed: seconds of work.
    """

    agent: Any
    plan: Plan
    steps: int
    elapsed: float

    @property
    def updates(self) -> int:
        """Number of updates of the parameters so far."""
        ...

    @property
    def live(self) -> Live:
        """Figures of the last chunk."""
        ...

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        ...

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to work at the pace so far; None before the first chunk."""
        ...

    def advance(self) -> Live:
        """Do one chunk; return its figures."""
        ...

    def checkpoint(self) -> bytes:
        """Return everything from which `restore` goes on."""
        ...

    def restore(self, data: bytes) -> None:
        """Go on from a checkpoint of the same config, simulator and plan; raises CheckpointError."""
        ...

    def close(self) -> None:
        """Let go of processes and memory; may be called twice. Nothing is done after it."""
        ...


class Paced:
    """How far along a plan a training is."""

    plan: Plan
    steps: int
    elapsed: float

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        return min(1.0, self.steps / self.plan.steps)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.progress >= 1.0

    @property
    def pause(self) -> float:
        """The share of the training at which the present chunk ends at the latest."""
        return next((share for share in self.plan.pauses if share > self.progress), 1.0)

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to work at the pace so far; None before the first chunk."""
        return self.elapsed * (1.0 - self.progress) / self.progress if self.progress > 0 else None


@dataclass
class ChunkTotals:
    """Updates, episodes and returns of a chunk."""

    learned: list[LearnStats] = field(default_factory=list)
    paid: float = 0.0
    episodes: int = 0

    def learn(self, stats: LearnStats | None) -> None:
        """Count the updates of one slab, if there were any."""
        if stats is not None:
            self.learned.append(stats)

    def end(self, paid: float, episodes: int) -> None:
        """Count episodes, and the sum of their returns."""
        self.paid += paid
        self.episodes += episodes

    @property
    def updates(self) -> int:
        """How many there were."""
        return sum(stats.updates for stats in self.learned)

    def live(self, steps: int, updates: int, steps_per_second: float) -> Live:
        """Sum up; steps and updates are those of the whole training."""
        return Live(
            steps,
            self.paid / self.episodes if self.episodes else None,
            float(np.mean([stats.loss for stats in self.learned])) if self.learned else None,
            updates,
            steps_per_second,
            float(np.mean([stats.exploration or 0.0 for stats in self.learned])) if self.learned else None,
        )


# Checkpoints: named arrays and plain values in one safetensors blob; nothing in it can run code.


FORMAT = 1


class CheckpointError(Exception):
    """The bytes are no checkpoint of this format."""


def pack(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> bytes:
    """Join arrays and JSON values to bytes."""
    metadata = {"format": str(FORMAT), "values": json.dumps(values)}
    return bytes(save({name: np.ascontiguousarray(value) for name, value in arrays.items()}, metadata))


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Split bytes that `pack` made; raises CheckpointError."""
    try:
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        arrays = load(data)
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"not a checkpoint: {error}") from error
    if metadata.get("format") != str(FORMAT):
        raise CheckpointError(f"checkpoint format {metadata.get('format')!r}, this reads {FORMAT}")
    return arrays, json.loads(metadata["values"])


def split(state: Mapping[str, Any], prefix: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Separate the arrays of a nested mapping (named by prefix and path, parted by /) from its plain values."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}{name}"] = value
        elif isinstance(value, Mapping):
            inner, plain[name] = split(value, f"{prefix}{name}/")
            arrays.update(inner)
        else:
            plain[name] = value
    return arrays, plain


def join(arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Restore the nested state that `split` took apart, from arrays by path, without the prefix, and plain values."""
    state = {name: join({}, value) if isinstance(value, Mapping) else value for name, value in plain.items()}
    for path, value in arrays.items():
        *folders, name = path.split("/")
        place = state
        for folder in folders:
            place = place[folder]
        place[name] = value
    return state


__all__ = ["FORMAT", "CheckpointError", "join", "pack", "part", "split", "unpack"]
