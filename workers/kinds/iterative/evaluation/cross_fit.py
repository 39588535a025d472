"""The verdict on models that were fitted without the executions on which it is judged.

The executions are dealt into two halves, and each has a belief fitted to it alone. Policies believe in the one half's
models while runs follow the other's members, and the other way round: so nothing that a projection, a plan or the guard
rests on has seen what it is judged on. What a network learned of all executions stays in its weights.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.iterative.heuristics import HEURISTICS, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.artifact import check, load
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from workers.estimators.base import EstimationError
from workers.evaluation.arena import play
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.judge import Judgement
from workers.evaluation.levels import Level
from workers.evaluation.wrappers.held_out import HeldOut
from workers.inputs import Samples
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import FEWEST_TO_JUDGE, check_judge, fit_domain_model
from workers.kinds.iterative.evaluation.problem import IterativeProblem
from workers.kinds.iterative.evaluation.world import IterativeWorld

EPISODES = 1024  # with each half's truth
MEMBERS = 4  # of each belief


class Half(NamedTuple):
    """What policies believe, and what runs follow, neither of which has seen the other's executions."""

    believed: ModelTable
    followed: ModelTable


class TooFewHalves(ValueError):
    """The executions can't be dealt into halves that carry a model each; the message says why."""


def halves(spec: Spec, samples: Samples, seed: int) -> tuple[Half, Half]:
    """Both ways round.

    Raises:
        TooFewHalves: a half can't carry a domain model.
    """
    if len(samples) < 2 * FEWEST_TO_JUDGE:
        raise TooFewHalves(f"needs {2 * FEWEST_TO_JUDGE} executions, has {len(samples)}")
    order = np.random.default_rng(seed).permutation(len(samples))
    parts = [Executions(tuple(samples[i] for i in sorted(part))) for part in (order[::2], order[1::2])]
    try:
        for part in parts:
            check_judge(Layout(spec), part.flat(Layout(spec)))
        one, other = (fit_domain_model(spec, part, seed).table.thinned(MEMBERS) for part in parts)
    except EstimationError as error:
        raise TooFewHalves(f"half of the {len(samples)} executions can't carry a model: {error}") from error
    return Half(one, other), Half(other, one)


def cross_fitted(
    spec: Spec,
    samples: Samples,
    artifact: bytes,
    *,
    seed: int,
    champion: bytes | None = None,
    episodes: int = EPISODES,
    margin: float = MARGIN,
) -> dict[str, Any]:
    """The judge's report on both halves' episodes together, and ``executions``; raises TooFewHalves."""
    arenas = [_Arena(spec, half, seed + i, episodes) for i, half in enumerate(halves(spec, samples, seed))]

    def earned(contender: bytes | Policy) -> NDArray[np.float64]:
        return np.concatenate([arena.returns(contender) for arena in arenas])

    rules = {name: earned(rule) for name, rule in HEURISTICS.items()}
    if champion is not None:
        check(load(champion), Layout(spec))
    answering = default_heuristic(arenas[0].believed).name
    present = None if champion is None else earned(champion)
    verdict = Judgement(earned(artifact), rules, answering, present, margin)
    return verdict.report() | {"executions": len(samples)}


class _Arena:
    """Episodes that believe in one half and follow the other, the same ones for everybody."""

    def __init__(self, spec: Spec, half: Half, seed: int, episodes: int) -> None:
        self.layout, self.seed, self.episodes = Layout(spec), seed, episodes
        self.problem = IterativeProblem(spec, half.believed)
        self.believed = Projector(self.layout, half.believed, np.float32)
        self.followed: Sequence[Projector] = [
            Projector(self.layout, half.followed.member(k), np.float32)
            for k in range(1 if half.followed.members is None else len(half.followed.members))
        ]

    def returns(self, contender: bytes | Policy) -> NDArray[np.float64]:
        """What a policy, or an artifact behind the guard, earns in each episode."""
        world = IterativeWorld(self.believed, self.followed, self.episodes, self.seed)
        HeldOut(world, self.seed)
        return play(world, Level.SEEDS, self.seed, self.problem.player(contender)).returns.astype(np.float64)
