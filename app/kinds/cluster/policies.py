"""Policies of kind ``cluster``: of each job, how much more or less its completion time is worth.

One network, or table, is asked for every job alike, whatever their number and order; GPUs then go where they shorten
the completion times most that are worth most (``allocation.completion``). So no answer gives more than there is, and
priorities hold. An agent that has learned nothing is the rule ``soonest``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.contract.policy import Situation, View
from app.policies import artifact
from app.policies.artifact import Artifact, Families
from app.policies.base import RETURN_SCALE, Published
from app.policies.network import NetworkPolicy
from app.policies.table import TablePolicy

KIND = "cluster"
FACTORS = np.array([1.0, 0.5**0.5, 2.0**0.5, 0.5, 2.0])
"""Of a job's weight, by the number of the action; the first changes nothing, and so does their geometric mean."""
TEMPERATURE = 0.3
"""What learners take as the unit of their preferences (``temperature`` of ``ActorCritic``), in hundredths of return."""


class AllAtOnce:
    """Who answers in played clusters as the service does."""

    def watch(self, world: Any) -> None:
        """Answer in ``world`` for all jobs at once."""
        world.answer(self)


class Network(AllAtOnce, NetworkPolicy):
    """See the module."""


class Table(AllAtOnce, TablePolicy):
    """See the module."""


FAMILIES: Families = {"network": Network, "table": Table}


def factors(policy: Published, observation: Floats) -> Floats:
    """What a policy makes of J jobs that it sees as ``observation`` [J, F]: a factor of each one's weight, [J].

    It is the geometric mean of ``FACTORS`` by the policy's chances: the likeliest one would go to and fro from moment
    to moment, at a restart each.
    """
    view = View(observation.astype(np.float32), np.ones((len(observation), len(FACTORS)), np.bool_))
    choice = policy.act(Situation(None, None, view))
    if choice.values is None:
        return np.asarray(FACTORS[choice.action], np.float64)
    preferred = choice.values.astype(np.float64) * (RETURN_SCALE / TEMPERATURE)
    chance = np.exp(preferred - preferred.max(axis=1, keepdims=True))
    return np.asarray(np.exp(chance @ np.log(FACTORS) / chance.sum(axis=1)), np.float64)


def load(data: bytes) -> Artifact:
    """An agent as it was published; raises IncompatibleArtifact."""
    return artifact.load(data, FAMILIES)
