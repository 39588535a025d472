"""Policies of kind `cluster`: what they observe, and the strategies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.lookahead import rolled_out
from app.kinds.cluster.placement import Rule, Situation
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import (
    completing,
    equal_share,
    fifo,
    goodput,
    grid,
    in_levels,
    optimus,
    prioritised,
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

# What agents see of each job of a cluster beside the others: numbers of order 1; the same live and simulated.


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
    """Each job as agents see it, [J, F].

    Of a job: time that is left on an equal share, how much sooner it would end on what is best for it, its place among
    the others by that, GPUs, times, restarts, the most that it may have (less where it converges), its queue's weight
    over the mean. Of all: free GPUs, jobs, what is left of them, GPUs of those that end soon, and of those to come.

    Args:
        situation: with an outlook.
        weight: of each job's queue, [J].
        interval: seconds between decisions, to count times by.
        coming: GPUs that are expected to be asked for within an hour.
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
        np.log(jobs.asked) / 4,
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


# Policies of kind ``cluster``: of each job, how much more or less its completion time is worth.
#
# One network, or table, is asked for every job alike, whatever their number and order; GPUs then go where they shorten
# the completion times most that are worth most (``allocation.completion``). So no answer gives more than there is, and
# priorities hold. An agent that has learned nothing is the rule ``soonest``.


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
    """A network that weighs jobs, one by one."""


class Table(AllAtOnce, TablePolicy):
    """A table of values that weighs jobs, one by one."""


FAMILIES: Families = {"network": Network, "table": Table}


def factors(policy: Published, observation: Floats) -> Floats:
    """What a policy makes of J jobs that it sees as ``observation`` [J, F]: a factor of each one's weight, [J].

    It is the geometric mean of ``FACTORS`` by the policy's chances: the likeliest one would go to and fro from moment
    to moment, at a restart each.
    """
    view = View(observation.astype(np.float32), np.ones((len(observation), len(FACTORS)), np.bool_))
    choice = policy.act(PolicySituation(None, None, view))
    if choice.values is None:
        return np.asarray(FACTORS[choice.action], np.float64)
    preferred = choice.values.astype(np.float64) * (RETURN_SCALE / TEMPERATURE)
    chance = np.exp(preferred - preferred.max(axis=1, keepdims=True))
    return np.asarray(np.exp(chance @ np.log(FACTORS) / chance.sum(axis=1)), np.float64)


def load(data: bytes) -> Artifact:
    """An agent as it was published; raises IncompatibleArtifact."""
    return artifact.load(data, FAMILIES)


# The rules that answer without an agent, and that agents are held against: each under the priorities of the spec.


IN_ORDER = "priority"
"""It asks nothing of an outlook."""
WITH_MODEL = "soonest"
"""What answers where no agent does."""
AHEAD = "rollout"
"""What answers in its stead while nobody is expected to come: it looks until the end of those that are there."""
WEIGHED = "weighed"
"""What answers by an agent: ``WITH_MODEL``, with weights of jobs that the agent changes."""
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
    """The rules that share GPUs among jobs, by name."""
    ageing, patience = [queue.ageing_seconds or np.inf for queue in spec.queues], spec.patience_seconds
    weights = [queue.weight for queue in spec.queues]
    levelled = {name: in_levels(rule, ageing, patience) for name, rule in LEVELLED.items()}
    known = {IN_ORDER: prioritised(ageing, patience), WITH_MODEL: completing(weights, ageing, patience)}
    known[AHEAD] = rolled_out(weights, ageing, patience, spec.interval_seconds)
    return known | levelled
