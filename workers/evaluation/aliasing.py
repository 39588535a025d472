"""Whether a policy can see what it has to know: situations that look the same to it and want different actions.

From demonstrations: a teacher who says what each action is worth labels the situations that good and bad policies get
into. Where several of them are one observation to the policy, it can only give one answer to all; what the best such
answer loses against the teacher is the price of state aliasing (Whitehead and Ballard 1991).
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.arena import play
from workers.evaluation.levels import Level
from workers.evaluation.problem import Encoder, Problem

Floats = NDArray[np.floating]
RESOLUTION = 0.05  # observations are of order 1: nearer than this they are taken for one
ALIASED = 0.01  # share of the return that an encoder may lose
TIE = 1e-3  # share of the return below which two actions of one decision are equally good
LARGEST = 20_000_000  # values that are kept
EXAMPLES = 5
WHOLE = "the policy reads the whole state, or remembers what it saw before"


@dataclass
class Demonstrations:
    """Labelled situations, gathered by watching.

    Attributes:
        encoder: how the policy in question sees them.
        teacher: its ``Choice.values`` say what every action is worth, in return.
    """

    problem: Problem
    encoder: Encoder
    teacher: Policy
    most: int
    rows: list[NDArray[np.generic]] = field(default_factory=list)
    losses: list[Floats] = field(default_factory=list)
    masks: list[NDArray[np.bool_]] = field(default_factory=list)
    situations: list[tuple[Situation, int]] = field(default_factory=list)
    count: int = 0

    def watch(self, situation: Situation, _action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Label the going episodes of a situation, up to ``most`` rows in all; see ``Watcher``."""
        which = np.flatnonzero(going)[: max(self.most - self.count, 0)]
        values = self.teacher.act(situation).values
        if values is None:
            raise ValueError(f"{self.teacher.name} does not say what its actions are worth")
        mask = np.asarray(situation.view.mask, np.bool_)[which]
        returns = np.where(mask, values[which], -np.inf)
        self.rows.append(np.asarray(self.encoder.encode(situation))[which])
        self.losses.append((returns.max(axis=1, keepdims=True) - returns).astype(np.float32))
        self.masks.append(mask)
        self.situations.extend((situation, int(row)) for row in which)
        self.count += len(which)


def check(
    problem: Problem,
    encoder: Encoder | None,
    *,
    seed: int,
    episodes: int = 32,
    resolution: float = RESOLUTION,
) -> dict[str, Any]:
    """Count conflicting labels for one observation, and say what they cost; see the module.

    Args:
        problem: where situations come from.
        encoder: how the policy sees; None: there is nothing to check.
        seed: of the episodes.
        episodes: that the teacher and each heuristic demonstrate.
        resolution: entries of floating-point observations are rounded to multiples of it; 0: only equal ones are one.

    Returns:
        See ``protocol.Evaluation``, candidates' ``aliasing``.
    """
    labels = problem.labels()
    if labels is None:
        return {"checked": False, "reason": "nobody knows the best actions", "labels": None, "encoder": None}
    name, teacher = labels
    if encoder is None:
        return {"checked": False, "reason": WHOLE, "labels": name, "encoder": None}
    seen = Demonstrations(problem, encoder, teacher, LARGEST)
    best, steps = -math.inf, 1
    for policy in (teacher, *problem.heuristics.values()):
        world = problem.world(episodes, seed)
        seen.most = LARGEST // max(int(world.action_space.n), 100)
        returns = play(world, Level.TRAIN, seed, problem.player(policy), seen.watch).returns
        best, steps = max(best, float(returns.mean())), max(world.steps, 1)
    if not seen.count:
        return {"checked": False, "reason": "nothing is ever decided", "labels": name, "encoder": encoder.name}
    return {"checked": True, "reason": None, "labels": name, "encoder": encoder.name} | _counted(
        problem, seen, resolution, abs(best), steps
    )


def _counted(problem: Problem, seen: Demonstrations, resolution: float, scale: float, steps: int) -> dict[str, Any]:
    """Group equal observations, and look for groups that no single action suits."""
    losses = np.concatenate(seen.losses)
    group, count = _groups(np.concatenate(seen.rows), np.concatenate(seen.masks), resolution)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    sizes = np.diff(np.append(starts, len(order)))
    lost = np.add.reduceat(losses[order], starts, axis=0).min(axis=1)  # [G] the best single answer's
    worst = np.maximum.reduceat(losses[order], starts, axis=0).min(axis=1)
    conflicting = worst > TIE * scale / steps
    value_lost = float(lost.sum()) / seen.count * steps
    share = value_lost / max(scale, 1e-12)
    dearest = [g for g in np.argsort(-lost)[:EXAMPLES] if conflicting[g]]
    return {
        "states": seen.count,
        "observations": int(count),
        "conflicting_observations": int(conflicting.sum()),
        "conflicting_states": int(sizes[conflicting].sum()),
        "value_lost": value_lost,
        "share_lost": share,
        "aliased": share > ALIASED,
        "examples": [
            _example(problem, seen, losses, order[starts[g] : starts[g] + sizes[g]], float(lost[g])) for g in dearest
        ],
    }


def _groups(rows: NDArray[np.generic], masks: NDArray[np.bool_], resolution: float) -> tuple[NDArray[np.intp], int]:
    """Which observation each row is, legal actions being seen too, [S], and how many there are."""
    if resolution and rows.dtype.kind == "f":
        rows = np.rint(rows.astype(np.float64) / resolution).astype(np.int64)
    parts = (np.ascontiguousarray(part) for part in (rows, np.packbits(masks, axis=1)))
    keys = np.concatenate([part.view(np.uint8).reshape(len(part), -1) for part in parts], axis=1)
    whole = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1]))).reshape(-1)
    unique, group = np.unique(whole, return_inverse=True)
    return group.reshape(-1), len(unique)


def _example(
    problem: Problem, seen: Demonstrations, losses: Floats, members: NDArray[np.intp], lost: float
) -> dict[str, Any]:
    best = Counter(problem.action_name(int(losses[member].argmin())) for member in members)
    situation, row = seen.situations[members[0]]
    return {
        "observation": dict(problem.named_observation(situation, row)),
        "states": len(members),
        "actions": dict(best.most_common()),
        "value_lost": lost / len(members),
    }
