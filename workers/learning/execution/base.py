"""Interface of executors, progress of a training, and checkpoints."""

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
    """Raised if the executor cannot run a training; the message gives the reason."""


@dataclass(frozen=True)
class Plan:
    """Length of a training, and its chunks.

    Args:
        steps: environment steps of the whole training.
        chunk_steps: environment steps between checkpoints.
        keep_memory: whether checkpoints include the replay memory; a training resumed by `serial` is bit-equal to an
            uninterrupted one. Without it checkpoints are small, and the next chunk first refills the memory with
            transitions of the present policy, which count neither as steps nor as updates.
        pauses: shares of the training (0 to 1), ascending, at which a chunk ends early for the caller to inspect.
    """

    steps: int
    chunk_steps: int = 1 << 18
    keep_memory: bool = True
    pauses: tuple[float, ...] = ()


@dataclass(frozen=True)
class Live:
    """Statistics of the last chunk.

    Attributes:
        steps: environment steps of the whole training so far.
        episode_return: mean undiscounted return of the episodes that ended in the chunk, exploration included; None if
            none ended.
        loss: mean loss of the chunk's updates; None without updates.
        updates: parameter updates of the whole training so far.
        steps_per_second: environment steps per wall-clock second.
        exploration: mean ε, temperature or policy entropy (nats); None without updates.
    """

    steps: int = 0
    episode_return: float | None = None
    loss: float | None = None
    updates: int = 0
    steps_per_second: float = 0.0
    exploration: float | None = None


class Executor(Protocol):
    """Interface of executors, which run one agent's training in chunks.

    Attributes:
        agent: an `Agent`, or `IndependentAgents`, with the present parameters.
        plan: length of the training and its chunks.
        steps: environment steps so far.
        elapsed: wall-clock seconds spent in `advance`.
    """

    agent: Any
    plan: Plan
    steps: int
    elapsed: float

    @property
    def updates(self) -> int:
        """Number of parameter updates so far."""
        ...

    @property
    def live(self) -> Live:
        """Statistics of the last chunk."""
        ...

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        ...

    @property
    def done(self) -> bool:
        """Whether the training has ended."""
        ...

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None before the first chunk."""
        ...

    def advance(self) -> Live:
        """Run one chunk of the training; return its statistics. Raises ExecutionError if actors end repeatedly."""
        ...

    def checkpoint(self) -> bytes:
        """Serialise the training to bytes that `restore` reads."""
        ...

    def restore(self, data: bytes) -> None:
        """Resume from a checkpoint of the same config, simulator and plan; raises CheckpointError if it is none."""
        ...

    def close(self) -> None:
        """End processes and release memory; can be called twice. The executor is unusable afterwards."""
        ...


class PacedTraining:
    """Progress of a training along its plan; `steps` are environment steps, `elapsed` wall-clock seconds."""

    plan: Plan
    steps: int
    elapsed: float

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        return min(1.0, self.steps / self.plan.steps)

    @property
    def done(self) -> bool:
        """Whether the training has ended."""
        return self.progress >= 1.0

    @property
    def pause(self) -> float:
        """Share of the training (0 to 1) at which the present chunk ends at the latest."""
        return next((share for share in self.plan.pauses if share > self.progress), 1.0)

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None before the first chunk."""
        return self.elapsed * (1.0 - self.progress) / self.progress if self.progress > 0 else None


@dataclass
class ChunkTotals:
    """Totals of a chunk: updates' statistics, number `episodes` of ended episodes, and sum `paid` of their returns."""

    learned: list[LearnStats] = field(default_factory=list)
    paid: float = 0.0
    episodes: int = 0

    def learn(self, stats: LearnStats | None) -> None:
        """Add the statistics of the updates after one step; None is ignored."""
        if stats is not None:
            self.learned.append(stats)

    def end(self, paid: float, episodes: int) -> None:
        """Count ``episodes`` ended episodes, whose returns sum up to ``paid``."""
        self.paid += paid
        self.episodes += episodes

    @property
    def updates(self) -> int:
        """Number of updates in the chunk."""
        return sum(stats.updates for stats in self.learned)

    def live(self, steps: int, updates: int, steps_per_second: float) -> Live:
        """Return the chunk's statistics; ``steps`` and ``updates`` are the whole training's so far."""
        return Live(
            steps,
            self.paid / self.episodes if self.episodes else None,
            float(np.mean([stats.loss for stats in self.learned])) if self.learned else None,
            updates,
            steps_per_second,
            float(np.mean([stats.exploration or 0.0 for stats in self.learned])) if self.learned else None,
        )


# Checkpoints: named arrays and plain values as one safetensors blob without executable code.


FORMAT = 1


class CheckpointError(Exception):
    """Raised if bytes are no checkpoint of this format."""


def pack(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> bytes:
    """Serialise arrays and plain values by name to safetensors bytes; TypeError for values that JSON cannot hold."""
    metadata = {"format": str(FORMAT), "values": json.dumps(values)}
    return bytes(save({name: np.ascontiguousarray(value) for name, value in arrays.items()}, metadata))


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read the arrays and values from bytes made by `pack`.

    Raises:
        CheckpointError: the bytes are no checkpoint, or of another format version.
    """
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
    """Separate a nested mapping into arrays, named by prefix and path ("prefix" + "a/b"), and nested plain values."""
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
    """Return the nested mapping that `split` separated, from arrays by path (without prefix) and plain values."""
    state = {name: join({}, value) if isinstance(value, Mapping) else value for name, value in plain.items()}
    for path, value in arrays.items():
        *folders, name = path.split("/")
        place = state
        for folder in folders:
            place = place[folder]
        place[name] = value
    return state


__all__ = ["FORMAT", "CheckpointError", "join", "pack", "part", "split", "unpack"]
