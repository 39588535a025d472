"""What is true of simulated runs, and no policy may know."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout

Array = NDArray[Any]
Indices = NDArray[np.integer]


class Truth(NamedTuple):
    """Of B runs.

    Attributes:
        effect: the log run effect of each metric, [B, M].
        member: of the belief, which the run follows, [B].
        course: of the features, as in ``Courses``, [B].
        lost: the iteration from which capacity is short, [B].
        left: the share of each resource's range above its minimum that can then be had, [B].
        shifted: the iteration from which the pace is another, [B].
        shift: log of the factor by which it is, [B].
    """

    effect: Array
    member: Array
    course: Array
    lost: Array
    left: Array
    shifted: Array
    shift: Array

    def at(self, iteration: Indices) -> "Truth":
        """With the effect as ``iteration`` [B] begins: where the pace shifts there, it has shifted."""
        now = (iteration == self.shifted) * self.shift
        return self._replace(effect=self.effect + now[:, None].astype(self.effect.dtype))

    def within(self, layout: Layout, levels: Indices, iteration: Indices) -> NDArray[np.int16]:
        """What can be had of ``levels`` [B, R] in ``iteration`` [B]."""
        share = np.where(iteration >= self.lost, self.left, 1.0)
        most = np.floor(layout.tops * share[:, None] + 1e-9)
        return np.minimum(levels, most).astype(np.int16)


def undisturbed(layout: Layout, effect: Array, member: NDArray[np.intp], course: NDArray[np.intp]) -> Truth:
    """Runs of which nothing is lost, and whose pace stays."""
    never, ones = np.full(len(effect), layout.iterations), np.ones(len(effect), np.float32)
    return Truth(effect, member, course, never, ones, never, ones * 0)


def disturbed(layout: Layout, truth: Truth, begun: Indices, random: np.random.Generator) -> Truth:
    """With the disturbances of the spec drawn for runs that begin at iteration ``begun`` [B].

    The effect of a run that begins in its middle is what it is after a shift that came before.
    """
    wanted, count = layout.spec.disturbances, len(begun)
    if wanted.lost_capacity is not None:
        lost = random.integers(1, layout.iterations + 1, count)
        happens = random.random(count) < wanted.lost_capacity.probability
        left = random.uniform(*wanted.lost_capacity.left, count).astype(np.float32)
        truth = truth._replace(lost=np.where(happens, lost, layout.iterations), left=left)
    if wanted.pace_shift is not None:
        shifted = random.integers(1, layout.iterations + 1, count)
        happens = (random.random(count) < wanted.pace_shift.probability) & (shifted > begun)
        low, high = map(math.log, wanted.pace_shift.factor)
        shift = random.uniform(low, high, count).astype(np.float32)
        truth = truth._replace(shifted=np.where(happens, shifted, layout.iterations), shift=shift)
    return truth
