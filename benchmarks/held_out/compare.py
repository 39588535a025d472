"""Everyone on the same episodes of a world."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.held_out.play import Learner, Played, play
from benchmarks.held_out.rules import plain_rule, statics
from benchmarks.held_out.table import Line, table
from benchmarks.held_out.world import World

EPISODES, SEED = 200, 0
MARGIN = 1.0  # standard deviations


def compare(world: World, learners: Sequence[Learner], episodes: int = EPISODES, seed: int = SEED) -> list[Line]:
    """A line for each learner, for the rule without a margin, the rule, and the best sampled static in hindsight."""

    def one(learner: Learner) -> Played:
        return play(world, learner, episodes, seed)

    judged = [one(learner) for learner in (*learners, plain_rule(0.0))]
    return table(judged, world.profile, one(plain_rule(MARGIN)), [one(s) for s in statics(world.profile)])
