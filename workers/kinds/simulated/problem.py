"""The evaluation's view of a workload of a ``SimulatedEnvironment``. See ``Problem``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.outcome import Outcome
from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.arena import Bare, Player
from workers.evaluation.levels import TITLES, Level
from workers.evaluation.problem import Axis, Encoder, HeatMapAxes, LevelOptimum, Tunable
from workers.evaluation.wrappers.base import World
from workers.inputs import Conditions, Workload
from workers.kinds.simulated.environment import SimulatedEnvironment

NOTHING_HELD_OUT = "no executions were held out"
BINS = tuple(np.linspace(-2, 2, 11).round(3).tolist())


class SimulatedProblem:
    """See ``Problem``.

    Args:
        kind: of the workload.
        workload: with its domain model.
        held_out: domain models of held-out executions.
        without: why there are none.
    """

    def __init__(
        self,
        kind: SimulatedEnvironment,
        workload: Workload,
        held_out: Sequence[bytes] = (),
        without: str = NOTHING_HELD_OUT,
    ) -> None:
        self._kind, self._workload, self.held_out, self.without = kind, workload, held_out, without
        self.kind, self.name, self.layout = kind.name, workload.spec.name, kind.layout(workload.spec)
        self.terms: Sequence[str] = kind.terms(workload)
        self.weights: Sequence[float] = kind.weights(workload)
        self.outcomes: Sequence[Outcome] = kind.outcomes(workload)
        self.heuristics: Mapping[str, Policy] = kind.baselines(workload)
        self.entries = kind.entries(workload.spec)
        self._planned: LevelOptimum | None = None

    @property
    def heat_map_axes(self) -> HeatMapAxes:
        """See ``Problem``: actions by the first two entries of the observation."""
        x, y = self.entries[0], self.entries[min(1, len(self.entries) - 1)]
        return HeatMapAxes(Axis(x, BINS), Axis(y, BINS), "number of the action")

    def player(self, contender: bytes | Policy) -> Player:
        """See ``Problem``."""
        return Bare(self._policy(contender))

    def _policy(self, contender: bytes | Policy) -> Policy:
        if not isinstance(contender, bytes):
            return contender
        return self._kind.load(contender, self._workload.spec)

    def title(self, contender: bytes | Policy) -> str:
        """See ``Problem``."""
        return self._policy(contender).name

    def world(self, batch: int, seed: int) -> World:
        """See ``Problem``."""
        return self._kind.world(self._workload, Conditions(batch, seed, held_out=self.held_out))

    def unavailable(self, level: Level) -> str | None:
        """See ``Problem``."""
        return self.without if level is Level.COMPOSITION and not self.held_out else None

    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        """See ``Problem``: the kind's reference, which is exact where seeds alone differ."""
        del seed
        if self._planned is None:
            found = self._kind.reference(self._workload)
            policy = self._policy(found.artifact) if found.artifact else None
            self._planned = LevelOptimum(policy, found.exact, reason=found.why_not or None)
        alike = level in {Level.TRAIN, Level.SEEDS}
        return self._planned if alike else self._planned._replace(exact=False, reason=self._planned.reason or "planned")

    def tunables(self) -> Sequence[Tunable]:
        """See ``Problem``; none."""
        return ()

    def static(self, values: Mapping[str, int]) -> Policy:
        """See ``Problem``; there is nothing to set."""
        raise LookupError(f"nothing can be set: {dict(values)}")

    def drawn(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """See ``Problem``."""
        seen = situation.view.observation
        return seen[:, 0], seen[:, min(1, seen.shape[1] - 1)], action.astype(np.float64)

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """See ``Problem``: artifacts read the observation."""
        return Encoder("float32", lambda s: s.view.observation) if isinstance(contender, bytes) else None

    def labels(self) -> tuple[str, Policy] | None:
        """See ``Problem``; nobody does."""
        return None

    def named_observation(self, situation: Situation, row: int) -> Mapping[str, float]:
        """See ``Problem``."""
        values = situation.view.observation[row]
        return {name: round(float(value), 4) for name, value in zip(self.entries, values, strict=True)}

    def action_name(self, action: int) -> str:
        """See ``Problem``."""
        return str(action)

    def description(self, level: Level) -> str:
        """See ``Problem``."""
        return TITLES[level][1]

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any] | None:
        """See ``Problem``: the kind's."""
        return self._kind.pictures(self._workload, {name: self._policy(one) for name, one in shown.items()}, seed)
