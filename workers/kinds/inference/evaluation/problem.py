"""The evaluation's view of a workload of kind ``inference``: what its policies do, in terms of requests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation
from app.kinds.inference.heuristics import statics
from app.kinds.inference.model import ServiceModel
from workers.evaluation.levels import Level
from workers.evaluation.problem import Axis, HeatMapAxes, Tunable
from workers.kinds.simulated.problem import SimulatedProblem

BINS = 10
BUSIEST = 2.0  # the last edge of rates, in units of the domain model's highest
DESCRIPTIONS = {
    Level.TRAIN: "As L1, under seeds that no test uses.",
    Level.FIXED: "One episode, the same requests and the same service times for everybody and every time.",
    Level.SEEDS: "What a seed decides: the time of day, the requests, how long batches take, which of the models that "
    "samples can't tell apart holds.",
    Level.PARAMETERS: "The delays that users bear, their weights, prices and the spread of service times change too.",
    Level.COMPOSITION: "Requests and batches follow a domain model of logs that were held out.",
    Level.ENVIRONMENT: "Load × 1.5, burstier; servers slow down, are lost, and batches fail on top.",
}


class InferenceProblem(SimulatedProblem):
    """See ``Problem``."""

    @cached_property
    def heat_map_axes(self) -> HeatMapAxes:
        """See ``Problem``: the size of batches by what waits and what comes."""
        limit, rate = self.layout.spec.queue_limit * len(self.layout.users), self._busiest()
        waiting = np.unique(np.round(np.geomspace(1, limit, BINS + 1))) if limit > 1 else np.array([0.0, 1.0])
        rates = np.linspace(0, BUSIEST * rate, BINS + 1).round(3)
        axes = Axis("requests per second", tuple(rates.tolist())), Axis("requests that wait", tuple(waiting.tolist()))
        return HeatMapAxes(*axes, "requests that are started at once (0: a server waits)")

    def _busiest(self) -> float:
        return float(max(ServiceModel.from_bytes(self._workload.model).rate.sum(axis=0).max(), 1e-3))

    def drawn(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """See ``Problem``; nothing is drawn of decisions on how many servers are on."""
        state, chosen = situation.state, self.layout.dispatch_of(action)
        taken = np.minimum(self.layout.batches[chosen.batch], state.waiting[np.arange(len(action)), chosen.user])
        size = np.where(chosen.user >= 0, taken, 0).astype(np.float64)
        return state.rate.sum(axis=1), state.waiting.sum(axis=1), np.where(state.asked >= 0, size, np.nan)

    def tunables(self) -> tuple[Tunable, ...]:
        """See ``Problem``: of first come, first served on all servers, the variant and the size of batches."""
        _, variants, sizes = self.layout.shape
        return Tunable("variant", 0, variants - 1), Tunable("batch", 0, sizes - 1)

    def static(self, values: Mapping[str, int]) -> Policy:
        """See ``Problem``."""
        return [*statics(self.layout).values()][values["variant"] * self.layout.shape[2] + values["batch"]]

    def action_name(self, action: int) -> str:
        """See ``Problem``."""
        user, variant, batch = (int(part) for part in self.layout.dispatch_of(action))
        if user >= 0:
            return f"{self.layout.users[user]}: {self.layout.batches[batch]} on {self.layout.variants[variant]}"
        server, off = divmod(action - 1 - self.layout.dispatches, 2)
        return "wait" if action == 0 else f"{self.layout.servers[server]} {'off' if off else 'on'}"

    def description(self, level: Level) -> str:
        """See ``Problem``."""
        return DESCRIPTIONS[level]
