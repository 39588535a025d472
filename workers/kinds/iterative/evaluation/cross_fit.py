"""Contenders under models that were fitted without the executions on which they are judged.

The executions are dealt into two halves, and each has a belief fitted to it alone. Policies believe in the one half's
models while runs follow the other's members, and the other way round: so nothing that a projection, a plan or the guard
rests on has seen what it is judged on. What a network learned of all executions stays in its weights.

Everybody decides as the service would let it: artifacts and heuristics behind the guard. What varies is which
executions runs follow, and thousands of episodes repeat that: so a verdict deals several times, and its intervals are
over the halves, not over episodes. Deals share executions, so that intervals are somewhat too narrow; how often they
hold is measured in ``benchmarks.planted_judgings``.

A half's models know half of what answers. So they need not find all of a gain that is worth a change, which is asked of
the whole model: here an agent must be better than what answers at all, and as good as the heuristics within the margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import confidence, fixed
from app.kinds.contract.policy import Policy
from app.kinds.iterative.heuristics import HEURISTICS, MODEL_PREDICTIVE, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.artifact import terms
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from workers.estimators.base import EstimationError
from workers.evaluation.arena import play
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.judge import Judgement
from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper
from workers.inputs import Samples
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import FEWEST_TO_JUDGE, check_judge, fit_domain_model
from workers.kinds.iterative.evaluation.problem import IterativeProblem
from workers.kinds.iterative.evaluation.world import IterativeWorld

MEMBERS, DEALS = 4, 3  # of each half's belief, and of the executions for a verdict
ATTEMPTS = 4  # at each deal, of which few executions allow only some
EPISODES, FEWEST_EPISODES, STEPS = 128, 16, 4_096  # of each model that is followed, and their iterations together
FEWEST_TO_CHOOSE, TRIED_EPISODES = 12, 32  # executions, and episodes of each model, by which a heuristic is chosen
UNCHOSEN = "static_best"  # what ``hold`` comes to in the end, at the cost of a plan at each report


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
    parts = [Executions(tuple(samples[i] for i in part)) for part in _deal(len(samples), seed)]
    try:
        for part in parts:
            check_judge(Layout(spec), part.flat(Layout(spec)))
        one, other = (fit_domain_model(spec, part, seed, reported=False).table.thinned(MEMBERS) for part in parts)
    except EstimationError as error:
        raise TooFewHalves(f"half of the {len(samples)} executions can't carry a model: {error}") from error
    return Half(one, other), Half(other, one)


def _deal(count: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Indices of either half."""
    order = np.random.default_rng(seed).permutation(count).tolist()
    return tuple(sorted(order[::2])), tuple(sorted(order[1::2]))


def _dealt(spec: Spec, samples: Samples, seed: int, deals: int) -> list[Half]:
    """Both ways round of up to so many deals, no two alike; fewer where few executions can't be dealt otherwise.

    Raises:
        TooFewHalves: of none can the halves carry a domain model.
    """
    found, tried, problem = list[Half](), set[frozenset[tuple[int, ...]]](), TooFewHalves("no deal was asked for")
    for attempt in range(ATTEMPTS * deals):
        parts = frozenset(_deal(len(samples), seed + attempt))
        if parts in tried or len(found) == 2 * deals:
            continue
        tried.add(parts)
        try:
            found += halves(spec, samples, seed + attempt)
        except TooFewHalves as error:
            problem = error
    if not found:
        raise problem
    return found


class CrossFit:
    """Returns of contenders in episodes that follow models of other executions than the believed one's.

    Args:
        spec: the workload's.
        samples: its executions.
        seed: of the halves and of the episodes.
        rule: the heuristic that answers without an agent; None: the default one.
        episodes: of each model that is followed; None: fewer where they are longer.
        deals: how often the executions are dealt into halves, at most.

    Attributes:
        executions: number of samples.
        models: the model that each episode follows, [E].
        halves: the half that it is fitted to, [E].

    Raises:
        TooFewHalves: a half can't carry a domain model.
    """

    def __init__(
        self,
        spec: Spec,
        samples: Samples,
        seed: int,
        rule: str | None = None,
        episodes: int | None = None,
        deals: int = DEALS,
    ) -> None:
        episodes = episodes or int(np.clip(STEPS // spec.iterations, FEWEST_EPISODES, EPISODES))
        self.executions = len(samples)
        dealt = _dealt(spec, samples, seed, deals)
        self._arenas = [
            _Arena(spec, half._replace(believed=replace(half.believed, rule=rule)), seed + i, episodes)
            for i, half in enumerate(dealt)
        ]
        self.answering = default_heuristic(self._arenas[0].believed).name
        follows = [arena.follows for arena in self._arenas]
        self.halves = np.repeat(np.arange(len(dealt)), [len(each) for each in follows])
        before = np.cumsum([0] + [len(arena.followed) for arena in self._arenas])
        self.models = np.concatenate(follows) + before[self.halves]

    @cached_property
    def rules(self) -> Mapping[str, NDArray[np.float64]]:
        """Returns of every heuristic, [E]."""
        return {name: self.returns(rule) for name, rule in HEURISTICS.items()}

    def returns(self, contender: bytes | Policy) -> NDArray[np.float64]:
        """What a policy, or an artifact behind the guard, earns in each episode, [E]."""
        return np.concatenate([arena.returns(contender) for arena in self._arenas])

    def judged(self, artifact: bytes, champion: bytes | None = None, margin: float = MARGIN) -> dict[str, Any]:
        """The judge's report on an artifact, and ``executions``.

        Args:
            artifact: what would be published.
            champion: what answers now; it must be beaten to be replaced.
            margin: of practical equivalence, as a share of the best heuristic's return.
        """
        present = None if champion is None else self.returns(champion)
        verdict = Judgement(
            self.returns(artifact), self.rules, self.answering, present, margin, gain_margin=0.0, clusters=self.halves
        )
        return verdict.report() | {"executions": self.executions}


def chosen_rule(spec: Spec, samples: Samples, table: ModelTable, *, seed: int) -> tuple[ModelTable, dict[str, Any]]:
    """A domain model with the heuristic that is to answer without an agent, and why that one.

    The best heuristic under cross-fit answers in place of model-predictive control if it is better by more than the
    margin of practical equivalence, with 95 % confidence for all that might have been the best (Bonferroni). The
    executions are dealt once, since every fit of a domain model pays for it; intervals are over the models of halves.

    Returns:
        The table, and ``rule``, ``reason``, and by heuristic the intervals of their ``returns``.
    """
    default = default_heuristic(Projector(Layout(spec), table)).name
    if default != MODEL_PREDICTIVE or any(metric.probability is not None for metric in spec.metrics):
        return table, {"rule": default, "reason": "no other heuristic knows of probabilities", "returns": {}}
    if len(samples) < FEWEST_TO_CHOOSE:
        few = f"not compared with other heuristics: needs {FEWEST_TO_CHOOSE} executions, has {len(samples)}"
        return table, {"rule": default, "reason": few, "returns": {}}
    try:
        arena = CrossFit(spec, samples, seed, episodes=TRIED_EPISODES, deals=1)
    except TooFewHalves as error:
        return table, {"rule": default, "reason": f"not compared with other heuristics: {error}", "returns": {}}
    played = {name: arena.returns(rule) for name, rule in HEURISTICS.items() if name != UNCHOSEN}
    usual = played[MODEL_PREDICTIVE]
    best = max(played, key=lambda name: float(played[name].mean()))
    sure = 1 - 0.05 / (len(played) - 1)
    verdict = Judgement(played[best], {MODEL_PREDICTIVE: usual}, clusters=arena.models, confidence=sure)
    returns = Judgement(usual, played, clusters=arena.models).report()["heuristics"]
    mean, low, high = (fixed(verdict.gain[part], 5, signed=True) for part in ("mean", "low", "high"))
    ours, theirs = fixed(played[best].mean(), 5), fixed(usual.mean(), 5)
    evidence = (
        f"on executions that its models had not seen it returns {ours} against {theirs} of {MODEL_PREDICTIVE} "
        f"(difference {mean}, {confidence(sure)} interval {low} to {high})"
    )
    if best == MODEL_PREDICTIVE:
        reason = "on executions that its models had not seen no other heuristic returns more"
        return table, {"rule": default, "reason": reason, "returns": returns}
    if not verdict.better:
        reason = f"{best} is not better beyond the margin: {evidence}"
        return table, {"rule": default, "reason": reason, "returns": returns}
    under = {name: list(term[:3]) for name, term in terms(spec).items()}
    table = replace(table, rule=best, evidence=evidence, terms=under)
    return table, {"rule": best, "reason": evidence, "returns": returns}


class _EachInTurn(Wrapper):
    """Episode e follows the held-out model e modulo their number: the same number of episodes for each."""

    level: ClassVar[Level] = Level.COMPOSITION
    name: ClassVar[str] = "each_in_turn"

    def begin(self, world: World) -> None:
        world.compose(np.arange(world.batch) % world.held_out)


class _Arena:
    """Episodes that believe in one half and follow the other, the same ones for everybody.

    Attributes:
        follows: the model that each episode follows, [E].
    """

    def __init__(self, spec: Spec, half: Half, seed: int, episodes: int) -> None:
        layout, self.seed = Layout(spec), seed
        self.problem = IterativeProblem(spec, half.believed)
        self.believed = Projector(layout, half.believed, np.float32)
        self.followed: Sequence[Projector] = [
            Projector(layout, half.followed.member(k), np.float32)
            for k in range(1 if half.followed.members is None else len(half.followed.members))
        ]
        self.follows = np.arange(episodes * len(self.followed)) % len(self.followed)

    def returns(self, contender: bytes | Policy) -> NDArray[np.float64]:
        """What a policy, or an artifact behind the guard, earns in each episode, [E]."""
        world = IterativeWorld(self.believed, self.followed, len(self.follows), self.seed)
        _EachInTurn(world, self.seed)
        return play(world, Level.SEEDS, self.seed, self.problem.player(contender)).returns.astype(np.float64)
