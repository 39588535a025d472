"""The exact plan as a policy: a table of what each allocation is worth, by iteration, time left and run effect."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.observation import Options, reachable
from app.kinds.iterative.preferences import reference_cost
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State
from app.policies.base import Arrays, IncompatibleArtifact

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PlannerPolicy:
    """Greedy in the post-decision values of a dynamic programme.

    ``arrays``: ``worth`` [P, K, A, X, E], the expected return of running iteration k at an allocation and deciding
    optimally afterwards, for P lengths of a pause, X values of the time left and E of the log run effect; ``pauses``
    [P]; ``left_low``, ``left_high`` [K], the range of the time left over the run effect (cut into equal ratios);
    ``effect_half`` [K], half the range of the effect. ``config``: ``algorithm``, ``slope`` (return per second of
    lateness).
    """

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """What reports call it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check that the table is there, and build.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        missing = {"worth", "pauses", "left_low", "left_high", "effect_half"} - arrays.keys()
        if missing:
            raise IncompatibleArtifact(f"the plan lacks {', '.join(sorted(missing))}")
        return cls(config, arrays)

    def act(self, situation: Situation) -> Choice:
        """The legal action after which most is to be expected."""
        values = self.values(situation.projector, situation.state, situation.view.mask)
        return Choice(values.argmax(axis=1), values)

    def values(self, projector: Projector, state: State, mask: NDArray[np.bool_]) -> Array:
        """Expected return-to-go of every action, [B, N]; −∞ where ``mask`` forbids."""
        options = reachable(projector, state, mask)
        worth = self._look_up(projector, state, options) - self._moving(projector, state, options)
        worth[~mask.T] = -np.inf
        return worth.T

    def _moving(self, projector: Projector, state: State, options: Options) -> Array:
        """What the change itself costs: the pause's money, and the change term."""
        weights = state.weights
        paid = options.pause * options.rate / reference_cost(projector, state)
        cost: Array = weights[:, 1] * paid + weights[:, 2] * options.change
        return cost

    def _look_up(self, projector: Projector, state: State, options: Options) -> Array:
        seconds, arrays = projector.layout.seconds, self.arrays
        k = np.minimum(state.iteration, arrays["worth"].shape[1] - 1)
        variant = np.abs(np.asarray(arrays["pauses"], np.float64)[:, None, None] - options.pause).argmin(axis=0)
        left = state.targets[:, seconds] - state.elapsed[:, seconds]
        if len(arrays["pauses"]) == 1:
            left = left - options.pause
        left = np.broadcast_to(left, options.allocation.shape)
        low, high = arrays["left_low"][k], arrays["left_high"][k]
        pace = np.exp(state.effect[:, seconds])
        inside = np.clip(left / pace, low, high)
        x, x_weights = stencil(np.log(inside / low), np.log(high / low), arrays["worth"].shape[3])
        half = arrays["effect_half"][k]
        effect = np.clip(state.effect[:, seconds], -half, half)
        e, e_weights = stencil(effect + half, 2 * half, arrays["worth"].shape[4])
        v = np.broadcast_to(variant, left.shape)
        near = arrays["worth"][v, k, options.allocation, x[:, None], e[None, :, None]]  # [4, 4, N, B]
        value: Array = (near * x_weights[:, None] * e_weights[None, :, None]).sum(axis=(0, 1))
        return value + np.minimum(left - low * pace, 0) * self.config["slope"]


def stencil(distance: Array, span: Array | float, count: int) -> tuple[NDArray[np.intp], Array]:
    """Four-point Lagrange interpolation at ``distance`` among ``count`` nodes equally spaced over ``span``.

    Returns:
        The nodes [4, ...] and their weights [4, ...]; a single node is everywhere.
    """
    if count < 4:
        return np.zeros((1, *np.shape(distance)), np.intp), np.ones((1, *np.shape(distance)))
    exact = distance / np.maximum(span, 1e-12) * (count - 1)
    first = np.clip(exact.astype(np.intp) - 1, 0, count - 4)
    p = exact - first
    p0, p1, p2, p3 = p, p - 1, p - 2, p - 3
    weights = np.stack([-p1 * p2 * p3 / 6, p0 * p2 * p3 / 2, -p0 * p1 * p3 / 2, p0 * p1 * p2 / 6])
    return first + np.arange(4).reshape(4, *[1] * np.ndim(first)), weights
