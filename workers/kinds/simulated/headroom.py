"""The headroom of a simulated kind's workload, from plays of the kind's default rule with other parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.evaluation.headroom import MOST, Headroom, Search, cross_entropy, knowable_returns
from workers.evaluation.statistics import MARGIN

Floats = NDArray[np.float64]
FEWEST_EPISODES, MOST_EPISODES = 4, 16  # of each rule of a generation
VALIDATED, JUDGED = 1, 3  # times as many for the comparisons of generations, and for the headroom
GENERATIONS, POPULATION, FIRST = 4, 8, 2  # of a training


class Rivals(Protocol):
    """Plays of a kind's default rule (D numeric parameters) to measure headroom: how much larger returns could be.

    Attributes:
        served: name of the heuristic that decides without an agent.
        spread: standard deviation of the search's first generation of points, [D]; the point 0 is the rule as served.
        knows: text that names the knowledge of ``play_knowing``, as an object of "knowing".
        why: reason why there is no bound in hindsight; empty if ``bounds`` returns one.
        share: decisions that one rule plays in one generation of the search, as a share (0…1) of a training's budget.
    """

    served: str
    spread: Sequence[float]
    knows: str
    why: str
    share: float

    def named(self, point: Floats) -> Mapping[str, float]:
        """Return the rule's D parameters by name, at a ``point`` [D] of the search (0: as served)."""
        ...

    def play(self, points: Floats, seed: int, episodes: int, *, quick: bool = False) -> Floats:
        """Play the rule at R ``points`` [R, D] on the same E episodes; return its returns, [R, E].

        ``quick``: whether a faster rule that decides nearly alike may play in its place, if there is one.
        """
        ...

    def play_knowing(self, point: Floats, seed: int, episodes: int) -> Floats:
        """Play the rule at a ``point`` [D] with the knowledge ``knows``; return its returns in E episodes, [E]."""
        ...

    def bounds(self, seed: int, episodes: int) -> Floats | None:
        """Return an upper bound of any policy's return in each of E episodes, those of ``play`` with this ``seed``,
        [E]; None: no bound is cheap to compute."""
        ...


def measure(
    rivals: Rivals,
    seed: int,
    episodes: int,
    margin: float = MARGIN,
    generations: int | None = None,
    population: int = POPULATION,
    judged: int | None = None,
) -> tuple[Headroom, dict[str, Any]]:
    """Tune the rule; then compare it, on other episodes than the search's, as served, tuned, and tuned with knowledge.

    Args:
        rivals: the plays of one workload.
        seed: seed of all random numbers.
        episodes: episodes of each rule of a generation.
        margin: margin of practical equivalence, as a share of the tuned rule's return.
        generations: most generations of the search; None: as many as a training plays.
        population: rules of each generation.
        judged: episodes of the comparison; None: three times ``episodes``.

    Returns:
        The headroom; and JSON values: ``report`` (also the tuned numbers by name), ``seed`` of the compared episodes,
        and lists of returns in them: ``tuned``, ``knowable`` (tuned, with knowledge).
    """
    drawn, last, own, *each = np.random.SeedSequence([seed, 6]).generate_state(3 + MOST).tolist()
    neutral, judged = np.zeros(len(rivals.spread)), judged or JUDGED * episodes

    def mean_returns(points: Floats, generation: int) -> Floats:
        return rivals.play(points, each[generation], episodes, quick=True).mean(axis=1)

    def validated(point: Floats) -> float:
        return float(rivals.play(point[None], last, VALIDATED * episodes).mean())

    affordable = GENERATIONS if generations is None else min(generations, MOST)
    spread = np.array(rivals.spread)
    search = Search(neutral, neutral, spread, mean_returns, validated, affordable, population, FIRST)
    result = cross_entropy(search, np.random.default_rng(drawn))
    served, tuned = rivals.play(np.stack([neutral, result.point]), own, judged)
    known = rivals.play_knowing(result.point, own, judged)
    bounds = rivals.bounds(own, judged)
    room = Headroom.of(
        rivals.served,
        served,
        tuned,
        known,
        margin=margin,
        beyond=None if bounds is None else bounds - tuned,
        why=rivals.why,
        knows=rivals.knows,
        published=False,
    )
    numbers = dict(rivals.named(result.point))
    how = {"numbers": numbers, "generations": result.generations, "converged": result.converged}
    returns = {"tuned": tuned.tolist(), "knowable": knowable_returns(known, tuned).tolist()}
    return room, {"report": how | room.report(), "seed": own, **returns}
