"""Episodes of one problem at one evaluation level under one seed, identical for every policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import World, wrap_world


class Move(NamedTuple):
    """A player's actions in B episodes.

    Attributes:
        action: index of the action, [B].
        guarded: True where the guard replaced the policy's action by a heuristic's, [B]; None without a guard.
        memory: the policy's recurrent state for the next step, [B, H]; None for a policy without memory.
    """

    action: NDArray[np.integer]
    guarded: NDArray[np.bool_] | None = None
    memory: NDArray[np.float32] | None = None


class Player(Protocol):
    """Player that chooses the actions: a policy alone, or one with a guard that may take a heuristic's instead."""

    def begin(self, world: World, seed: int) -> None:
        """Prepare for episodes of ``world``, before the first step; ``seed`` seeds all random numbers of the player."""
        ...

    def move(self, situation: Situation) -> Move:
        """Choose one action for each of the situation's B episodes."""
        ...


@dataclass(frozen=True)
class Bare(Player):
    """A policy whose actions are never replaced; ``begin`` calls its ``watch(world)`` and ``begin(seed)``, if any."""

    policy: Policy

    @override
    def begin(self, world: World, seed: int) -> None:
        for wish, argument in (("watch", world), ("begin", seed)):
            method = getattr(self.policy, wish, None)
            if method is not None:
                method(argument)

    @override
    def move(self, situation: Situation) -> Move:
        choice = self.policy.act(situation)
        return Move(choice.action, memory=choice.memory)


class Scores(NamedTuple):
    """Results of a player in E episodes, paired by position with those of any other player under the same seed.

    Attributes:
        returns: undiscounted returns in the reward's unit, [E].
        terms: sum of each of T reward terms over an episode, mean over the episodes, [T].
        outcomes: O outcomes in users' units, [E, O].
        guarded: share (0 to 1) of the decisions that the guard gave to a heuristic; None without a guard.
        clusters: index of each episode's group of dependent episodes, [E]; None: all are independent.
    """

    returns: NDArray[np.float32]
    terms: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    guarded: float | None
    clusters: NDArray[np.intp] | None = None


Watcher = Callable[[Situation, NDArray[np.integer], NDArray[np.bool_]], None]


def play(world: World, level: Level, seed: int, player: Player, watch: Watcher | None = None) -> Scores:
    """Play every episode of a fresh ``world`` at ``level`` to its end with ``player``; return the results.

    Args:
        world: a world that no wrapper disturbs yet.
        level: level whose sources of randomness are on.
        seed: seed of all random numbers; equal seeds give equal episodes to every player.
        player: chooses the actions.
        watch: function of situation, actions [B], and which of B episodes have not ended [B], before every step.
    """
    simulator = wrap_world(world, level, seed)
    player.begin(world, seed)
    simulator.reset()
    clusters = world.clusters
    returns, terms, counted = (part.astype(np.float64) for part in (world.paid, world.terms, world.outcome_increments))
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
        counted += world.outcome_increments * going[:, None]
        going &= ~done
        if not going.any():
            break
    share = float(np.mean(guarded)) if guarded else None
    return Scores(returns.astype(np.float32), terms.mean(axis=0), counted, share, clusters)
