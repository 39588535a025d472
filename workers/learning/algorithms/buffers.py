"""Buffers of transitions (replay memory, rollout, latest slab), and parts shared by network learners.

Shapes: B environments, T steps of a rollout, n transitions, P parameters; … stands for an array's own shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.base import Batch, Experience, Host, LearnStats
from workers.learning.algorithms.config import DQN, Network, Scorer
from workers.learning.backends import Array, Backend, Layout
from workers.learning.components import network as components
from workers.learning.components.base import empty
from workers.learning.components.replay import Replay, Rollout
from workers.learning.components.value import NStep

Arrays = dict[str, NDArray[Any]]


def part(arrays: Host, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start with the prefix, under their names without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def add_prefix(arrays: Host, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays under their names with the prefix before; the inverse of `part`."""
    return {f"{prefix}{name}": value for name, value in arrays.items()}


class ReplayBuffer:
    """Buffer of an off-policy learner: n-step transitions in a replay memory, from which batches are drawn.

    Args:
        config: update frequency, batch size and warm-up.
        window: turns slabs (one transition from each environment) into n-step transitions.
        memory: replay memory of the agent's transitions.
        demonstrations: memory of an expert's transitions, a share of every batch; None: no demonstrations.
    """

    slabs = 1

    def __init__(self, config: DQN, window: NStep, memory: Replay, demonstrations: Replay | None) -> None:
        self.config, self.window, self.memory, self.demonstrations = config, window, memory, demonstrations
        self.updates, self.inserted = config.updates_per_slab, 0

    @property
    def size(self) -> int:
        """Number of transitions in the replay memory."""
        return self.memory.size

    def collect(self, experience: Experience, carry: NDArray[np.float32] | None = None) -> Host | None:
        """Add a step of B environments; return the B n-step transitions that it completes, or None."""
        del carry
        outputs = self.window.run(None, {}, experience._asdict())
        return outputs if len(outputs["reward"]) else None

    def insert(self, entry: Host) -> None:
        """Store n transitions [n, …] in the replay memory, overwriting the oldest."""
        self.memory.insert(entry)
        self.inserted += 1

    def batches(self, progress: float) -> Iterator[Batch]:
        """Yield `updates_per_slab` batches after every `slabs_per_update` steps, once the warm-up is over.

        ``progress`` (0 to 1) sets the importance weights' exponent.
        """
        warm_up = min(self.config.memory.warm_up, self.config.memory.capacity)
        if self.memory.size < warm_up or self.inserted % self.config.slabs_per_update:
            return
        share = 0.0 if self.config.imitation is None else self.config.imitation.share
        for _ in range(self.updates):
            yield self.draw(round(self.config.batch * share), progress)

    def draw(self, shown: int, progress: float) -> Batch:
        """Draw a batch of the config's size: the agent's transitions first, then ``shown`` demonstrations."""
        own = self.config.batch - min(shown, self.config.batch)
        batch, places = self.memory.sample(own, progress) if own else ({}, np.zeros(0, np.int64))
        if self.demonstrations is None:
            return Batch(add_prefix(batch, "memory."), progress, places)
        extra, _ = self.demonstrations.sample(self.config.batch - own)
        joined = {port: np.concatenate([batch[port], extra[port]]) for port in batch} if own else extra
        expert = (np.arange(self.config.batch) >= own).astype(np.float32)
        return Batch({**add_prefix(joined, "memory."), "expert": expert}, progress, places)

    def correct(self, batch: Batch, stats: LearnStats) -> None:
        """Set the priorities of the agent's transitions in a batch by their absolute errors, if both exist."""
        if batch.places is not None and stats.errors is not None:
            self.memory.reprioritise(batch.places, stats.errors[: len(batch.places)])

    def show(self, slabs: Iterable[Experience], rng: np.random.Generator) -> None:
        """Store an expert's n-step transitions, up to the capacity, from ``slabs``, B transitions each.

        Raises:
            ValueError: the config has no imitation, or there are fewer than n steps.
        """
        memory = self.demonstrations
        if memory is None:
            raise ValueError("the config has no imitation: demonstrations have no place in this agent")
        window = NStep(self.config.n_step, self.config.gamma)
        window.allocate(self.window.spaces, rng)
        for slab in slabs:
            shown = window.run(None, {}, slab._asdict())
            memory.insert({port: value[: memory.capacity - memory.size] for port, value in shown.items()})
        if not memory.size:
            raise ValueError(f"nothing was shown: {self.config.n_step} slabs make the first transitions")

    def entry(self, batch: int) -> Host:
        """Return zero-filled arrays [batch, …] by name, for ``batch`` transitions."""
        return {port: np.zeros((batch, *ring.shape[1:]), ring.dtype) for port, ring in self.memory.rings.items()}

    def state(self, *, memory: bool) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays of demonstrations and, with ``memory``, of replay memory and window; and the count of steps."""
        arrays: Arrays = {}
        if memory:
            arrays |= add_prefix(self.memory.state(), "memory.") | add_prefix(self.window.state(), "n_step.")
        if self.demonstrations is not None:
            arrays |= add_prefix(self.demonstrations.state(), "demonstrations.")
        return arrays, {"slabs": self.inserted}

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Restore what `state` returned; memory and window stay unchanged if it was called without ``memory``."""
        self.inserted = values["slabs"]
        if "memory.position" in arrays:
            self.memory.restore(part(arrays, "memory."))
            self.window.restore(part(arrays, "n_step."))
        if self.demonstrations is not None:
            self.demonstrations.restore(part(arrays, "demonstrations."))


class RolloutBuffer:
    """Buffer of an on-policy learner: T steps of B environments form a rollout [B, T, …], which is used once."""

    updates, size = 1, 0

    def __init__(self, rollout: Rollout) -> None:
        self.rollout, self.slabs = rollout, rollout.steps
        self.whole: Host | None = None

    def collect(self, experience: Experience, carry: NDArray[np.float32] | None = None) -> Host | None:
        """Append a step, with the recurrent memory ``carry`` [B, H] before it; return the full rollout, or None.

        Raises ValueError if the number B of environments changes within a rollout.
        """
        self.rollout.push({**experience._asdict(), "memory": carry})
        return self.rollout.slabs if self.rollout.full else None

    def insert(self, entry: Host) -> None:
        """Store a full rollout [B, T, …] for ``batches``."""
        self.whole = entry

    def batches(self, progress: float) -> Iterator[Batch]:
        """Yield the stored rollout once as a batch at ``progress`` (0 to 1), and delete it."""
        whole, self.whole = self.whole, None
        if whole is not None:
            self.rollout.clear()
            yield Batch(whole, progress)

    def correct(self, batch: Batch, stats: LearnStats) -> None:
        """Do nothing: rollouts have no priorities."""

    def entry(self, batch: int) -> Host:
        """Return a zero-filled rollout, arrays [batch, T, …] by name."""
        return {port: empty(space, batch) for port, space in self.rollout.output_spaces(self.rollout.spaces).items()}

    def clear(self) -> None:
        """Delete the stored rollout, and the steps of the incomplete one."""
        self.whole = None
        self.rollout.clear()

    def state(self, *, memory: bool) -> tuple[Arrays, dict[str, Any]]:
        """Return the incomplete rollout's arrays by name (none without ``memory``), and no plain values."""
        return (add_prefix(self.rollout.state(), "rollout.") if memory else {}), {}

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Restore the incomplete rollout's arrays, if `state` saved them; ``values`` is ignored."""
        del values
        if "rollout.filled" in arrays:
            self.rollout.restore(part(arrays, "rollout."))


class SlabBuffer:
    """Buffer of the latest slab only, one transition from each of B environments, which is used once."""

    slabs, updates, size = 1, 1, 0

    def __init__(self) -> None:
        self.latest: Host | None = None

    def collect(self, experience: Experience, carry: NDArray[np.float32] | None = None) -> Host | None:
        """Return the arrays [B, …], by field, of B environments' transitions, for `insert`; ``carry`` is unused."""
        del carry
        return experience._asdict()

    def insert(self, entry: Host) -> None:
        """Store B environments' transitions, arrays [B, …], for ``batches``, in place of the previous ones."""
        self.latest = entry

    def batches(self, progress: float) -> Iterator[Batch]:
        """Yield the latest B transitions once as a batch at ``progress`` (0 to 1)."""
        latest, self.latest = self.latest, None
        if latest is not None:
            yield Batch(latest, progress)

    def correct(self, batch: Batch, stats: LearnStats) -> None:
        """Do nothing: these transitions have no priorities."""

    def entry(self, batch: int) -> Host:
        """Refuse to make an entry: its shapes depend on the environment, so no other process can send one.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"a slab of {batch} environments is learned from where it was made")

    def state(self, *, memory: bool) -> tuple[Arrays, dict[str, Any]]:
        """Return no arrays and no values: the latest transitions are used at once, and not saved."""
        del memory
        return {}, {}

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Do nothing: `state` saves nothing."""


# First layers of networks in coordinates in which every observation entry has mean 0 and deviation 1.
#
# Entries of small deviation or large mean make the loss steep along some directions of a first layer and flat along
# others, which Adam cannot correct, as it scales each parameter alone (LeCun et al., Efficient BackProp, 1998, section
# 4.3). Stored parameters are always the published ones; only initialisation and optimiser steps use those of a network
# that reads (observation − centre) / scale, so that no other code has to know.


FIRST = "trunk.0.weight"


class Coordinates:
    """Conversion of flat vectors [P] of a network's P parameters between published coordinates, whose network reads raw
    observations, and standardised ones, in which it learns: it reads (observation − centre) / scale.

    Args:
        network: config with `centre` and `scale` of the observations; without them the conversion is the identity.
        layout: slice and shape of each variable in the vector; a layer's bias follows its weight.
        backend: the numeric library of the vectors.
    """

    def __init__(self, network: Network, layout: Layout, backend: Backend) -> None:
        self._xp: Any = backend.xp
        self._centre, self._scale = (
            backend.asarray(np.array(part, np.float32)) for part in (network.centre, network.scale)
        )
        firsts = [place for name, place in layout.items() if name.endswith(FIRST)] if network.centre else []
        self._layers = [(place.start, *shape) for place, shape in firsts]

    def published(self, flat: Array) -> Array:
        """Convert parameters ``flat`` [P] for standardised observations to those for raw ones, as published, [P]."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: (weight / scale, bias - weight @ (centre / scale)))

    def learned(self, flat: Array) -> Array:
        """Convert parameters ``flat`` [P] for raw observations, as published, to those for standardised ones, [P]."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: (weight * scale, bias + weight @ centre))

    def gradient(self, flat: Array) -> Array:
        """Convert the gradient ``flat`` [P] with respect to the parameters for raw observations (as published) to the
        one with respect to those for standardised observations, [P]."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: ((weight - bias[:, None] * centre) / scale, bias))

    def _changed(self, flat: Array, change: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
        if not self._layers:
            return flat
        parts, at = [], 0
        for start, out, wide in self._layers:
            middle, end = start + out * wide, start + out * (wide + 1)
            weight, bias = change(flat[start:middle].reshape(out, wide), flat[middle:end])
            parts += [flat[at:start], weight.reshape(-1), bias]
            at = end
        return self._xp.concat([*parts, flat[at:]])


# Networks over candidate sets, from configs of either family.


def encoder(wanted: Scorer, network: Network) -> components.SetEncoder:
    """Return a new set encoder with the scorer's layers and context and the network's activation."""
    return components.SetEncoder(wanted.layers, wanted.context, wanted.joint, network.activation)


def scorer(
    wanted: Scorer, network: Network, advice: slice | None, temperature: float = 1.0, output: str = "values"
) -> components.Scorer:
    """Return a new network that scores the candidates of a set: advice / ``temperature`` + head(encoder).

    Raises:
        ValueError: ``advice`` (slice of the feature with the environment's scores; None: none) is not one feature.
    """
    if advice is not None and advice.stop - advice.start != 1:
        raise ValueError(f"advice on candidates is one of their features, not [{advice.start}, {advice.stop})")
    return components.Scorer(encoder(wanted, network), advice.start if advice else None, temperature, output)


def critic(wanted: Scorer, network: Network) -> components.SetCritic:
    """Return a new network that estimates one value for a whole set of candidates.

    Its encoder has the layers and context of ``wanted``, and the activation of ``network``.
    """
    return components.SetCritic(encoder(wanted, network))


def scorer_config(wanted: Scorer, network: Network, advice: slice | None) -> dict[str, object]:
    """Return the exported scorer's config for `functions.scores`; `advice` is [start, stop] of its feature, or None."""
    return {**encoder(wanted, network).config, "advice": None if advice is None else [advice.start, advice.stop]}
