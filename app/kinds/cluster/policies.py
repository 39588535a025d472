"""Policies of kind `cluster`: their observations, their actions, and the heuristics by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.lookahead import rolled_out
from app.kinds.cluster.placement import Rule, Situation
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import (
    by_priority,
    completing,
    equal_share,
    fifo,
    goodput,
    grid,
    in_levels,
    optimus,
    slaq,
    srtf,
    tiresias,
    usual_seconds,
)
from app.kinds.contract.policy import Situation as PolicySituation
from app.kinds.contract.policy import View
from app.policies import artifact
from app.policies.artifact import Artifact, Families, TablePolicy
from app.policies.base import RETURN_SCALE, Published
from app.policies.network import NetworkPolicy

# Observations: features of order 1 for each job, the same live and simulated.


OF_JOB = (
    "left",
    "scaling",
    "place",
    "asked",
    "has",
    "waits",
    "age",
    "waited",
    "restarts",
    "restarting",
    "most",
    "weight",
)
OF_ALL = ("free", "jobs", "mean_left", "spread_left", "short", "going", "coming")
ENTRIES = (*OF_JOB, *OF_ALL)
LARGEST, SHORT = 8.0, float(np.log1p(10.0))


def observe(situation: Situation, weight: Floats, interval: float, coming: float) -> Floats:
    """Return the observation of each of J jobs for agents, [J, F]; its F features are named by ``ENTRIES``. Per job:
    time left on an equal share, gain of its best number of GPUs, rank, GPUs, times, restarts, maximum GPUs and queue
    weight. Shared: free GPUs, number of jobs, time left, GPUs of jobs that end soon, and GPUs of arrivals.

    Args:
        situation: jobs and nodes at the decision.
        weight: weight of each job's queue, [J].
        interval: seconds between decisions, the unit of times.
        coming: GPUs expected to be requested by new jobs within an hour.
    """
    jobs, total = situation.jobs, max(situation.gpus, 1)
    sizes = grid(situation)
    each = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    seconds, gpus = usual_seconds(situation, each), jobs.gpus
    left, place = np.minimum(np.log1p(seconds / interval), LARGEST), np.empty(len(gpus))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(gpus) + 1)
    best = np.where(np.isfinite(each.min(axis=1)), each.min(axis=1), seconds)
    age = situation.now - jobs.submitted
    own = (
        left / 4 - 1,
        np.log((seconds + 1.0) / (best + 1.0)) / 2,
        place / len(gpus) - 0.5,
        np.log(jobs.requested) / 4,
        np.log1p(gpus) / 4,
        gpus == 0,
        np.log1p(age / interval) / 4,
        np.log1p(np.maximum(age - jobs.running, 0.0) / interval) / 4,
        np.log1p(jobs.restarts) / 2,
        jobs.restarting > 0,
        np.log(np.clip(jobs.maximum, 1, total) / total) / 4,
        np.log(weight / weight.mean()),
    )
    every = (
        1.0 - gpus.sum() / total,
        np.log(len(gpus) / total) / 2,
        left.mean() / 4,
        left.std() / 2,
        (left < SHORT).mean(),
        gpus[left < np.log(2.0)].sum() / total,
        min(coming / total, LARGEST),
    )
    return np.stack([*own, *(np.full(len(gpus), value) for value in every)], axis=1)


# Policies of kind ``cluster``: a factor on the weight of each job's completion time.
#
# One network, or table, is applied to each job alike, whatever their number and order; ``allocation.completion`` then
# gives GPUs where they shorten weighted completion times most. So allocations always fit, and priorities hold. An
# untrained agent equals the rule ``soonest``.


FACTORS = np.array([1.0, 0.5**0.5, 2.0**0.5, 0.5, 2.0])
"""Factors on a job's weight by action; action 0 changes nothing, and their geometric mean is 1."""
TEMPERATURE = 0.3
"""Softmax temperature of action values, in hundredths of the return (``temperature`` of ``ActorCritic``)."""


class AllAtOnce:
    """Mixin for policies that decide for all jobs of a simulated cluster at once, as the service does."""

    def watch(self, world: Any) -> None:
        """Register this policy with the simulated cluster ``world``, so that it decides for all jobs at once."""
        world.answer(self)


class Network(AllAtOnce, NetworkPolicy):
    """Neural network that chooses the factor on each job's weight from its observation."""


class Table(AllAtOnce, TablePolicy):
    """Table of action values that chooses the factor on each job's weight from its observation."""


FAMILIES: Families = {"network": Network, "table": Table}


def factors(policy: Published, observation: Floats) -> Floats:
    """Return the factor on the weight of each of J jobs, [J], by ``policy`` from their ``observation`` [J, F]. It is
    the geometric mean of ``FACTORS`` under the softmax of the action values: the most likely action alone would
    alternate between decisions, with a restart each time. Without action values it is the chosen action's factor."""
    view = View(observation.astype(np.float32), np.ones((len(observation), len(FACTORS)), np.bool_))
    choice = policy.act(PolicySituation(None, None, view))
    if choice.values is None:
        return np.asarray(FACTORS[choice.action], np.float64)
    preferred = choice.values.astype(np.float64) * (RETURN_SCALE / TEMPERATURE)
    chance = np.exp(preferred - preferred.max(axis=1, keepdims=True))
    return np.asarray(np.exp(chance @ np.log(FACTORS) / chance.sum(axis=1)), np.float64)


def load(data: bytes) -> Artifact:
    """Load a published agent from its stored bytes; raise IncompatibleArtifact if ``data`` is not one of this kind."""
    return artifact.load(data, FAMILIES)


# Heuristics that decide without an agent, and that agents are evaluated against, under the priorities of the spec.


IN_ORDER = "priority"
"""Heuristic that needs no outlook."""
WITH_MODEL = "soonest"
"""Default heuristic when no agent is promoted."""
AHEAD = "rollout"
"""Heuristic used in its place while no arrivals are expected: it simulates until all present jobs end."""
WEIGHED = "weighed"
"""Rule of agents: ``WITH_MODEL`` with weights of jobs that the agent changes."""
LEVELLED: Mapping[str, Rule] = {
    "srtf": srtf,
    "fifo": fifo,
    "equal_share": equal_share,
    "tiresias": tiresias,
    "optimus": optimus,
    "goodput": goodput,
    "slaq": slaq,
}


def rules(spec: ClusterSpec) -> dict[str, Rule]:
    """Return the allocation rules by name, with the queues' weights, ageing and patience of ``spec``."""
    ageing, patience = [queue.ageing_seconds or np.inf for queue in spec.queues], spec.patience_seconds
    weights = [queue.weight for queue in spec.queues]
    levelled = {name: in_levels(rule, ageing, patience) for name, rule in LEVELLED.items()}
    known = {IN_ORDER: by_priority(ageing, patience), WITH_MODEL: completing(weights, ageing, patience)}
    known[AHEAD] = rolled_out(weights, ageing, patience, spec.interval_seconds)
    return known | levelled
