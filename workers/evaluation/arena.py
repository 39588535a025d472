"""Episodes of one problem at one level under one seed, the same for every policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import World, wrapped


class Move(NamedTuple):
    """A player's actions in B episodes.

    Attributes:
        action: [B].
        guarded: where a heuristic answers in the policy's place, [B]; None where nothing guards.
        memory: what the policy remembers of each episode from now on, [B, H]; None where it remembers nothing.
    """

    action: NDArray[np.integer]
    guarded: NDArray[np.bool_] | None = None
    memory: NDArray[np.float32] | None = None


class Player(Protocol):
    """Decides episodes: a policy alone, or an artifact behind the guard of the service."""

    def begin(self, world: World, seed: int) -> None:
        """Called before the first step in ``world``; ``seed`` is of everything that the player draws."""
        ...

    def move(self, situation: Situation) -> Move:
        """One action per episode."""
        ...


@dataclass(frozen=True)
class Bare(Player):
    """A policy without a guard; its ``watch(world)`` and ``begin(seed)`` are called first, where it has them."""

    policy: Policy

    @override
    def begin(self, world: World, seed: int) -> None:
        for wish, given in (("watch", world), ("begin", seed)):
            method = getattr(self.policy, wish, None)
            if method is not None:
                method(given)

    @override
    def move(self, situation: Situation) -> Move:
        choice = self.policy.act(situation)
        return Move(choice.action, memory=choice.memory)


class Scores(NamedTuple):
    """What a player earned in E episodes, paired by position with any other's in the same arena.

    Attributes:
        returns: [E].
        terms: mean over the episodes of each term's sum, [T].
        outcomes: what users count, [E, O].
        guarded: share of the decisions that the guard gave to a heuristic; None where nothing guards.
        clusters: which episodes vary together, [E]; None: each varies by itself.
    """

    returns: NDArray[np.float32]
    terms: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    guarded: float | None
    clusters: NDArray[np.intp] | None = None


Watcher = Callable[[Situation, NDArray[np.integer], NDArray[np.bool_]], None]


def play(world: World, level: Level, seed: int, player: Player, watch: Watcher | None = None) -> Scores:
    """Let ``player`` decide every episode of a fresh ``world`` at ``level`` to its end.

    Args:
        world: not disturbed yet.
        level: what is random.
        seed: of all that is; the same seed gives everybody the same episodes.
        player: who decides.
        watch: called before every step with the situation, the actions, and which episodes are still going, [B].
    """
    simulator = wrapped(world, level, seed)
    player.begin(world, seed)
    simulator.reset()
    clusters = world.clusters
    returns, terms, counted = (part.astype(np.float64) for part in (world.paid, world.terms, world.counted))
    going = np.full(world.batch, world.steps > 0)
    guarded: list[float] = []
    memory: NDArray[np.float32] | None = None
    for _ in range(world.steps):
        situation = world.situation._replace(memory=memory)
        move = player.move(situation)
        memory = move.memory
        if watch is not None:
            watch(situation, move.action, going)
        if move.guarded is not None:
            guarded.append(float(move.guarded[going].mean()))
        done = simulator.step(move.action).done
        returns += world.paid * going
        terms += world.terms * going[:, None]
        counted += world.counted * going[:, None]
        going &= ~done
        if not going.any():
            break
    share = float(np.mean(guarded)) if guarded else None
    return Scores(returns.astype(np.float32), terms.mean(axis=0), counted, share, clusters)
