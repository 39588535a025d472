"""The planted worlds, each generated from a seed: laws, targets and what was sampled differ from seed to seed.

Figures are reported for the seeds of ``JUDGED``; whoever tunes takes others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.held_out.planted import Plan, planted
from benchmarks.held_out.world import Floats, Law, World

JUDGED = (0, 1)
STAGES, LONG, EXECUTIONS = 30, 200, 8
EXECUTORS: dict[str, Any] = {"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 8, "initial": 20}
SECONDS = {"name": "iteration_seconds", "unit": "s"}
Random = np.random.Generator


def _work(random: Random, stages: int = STAGES) -> tuple[Floats, Floats]:
    """Seconds of each stage that nothing shortens, and executor-seconds that are shared, [I] each."""
    length, parallel = 20 * np.exp(0.6 * random.standard_normal(stages)), random.uniform(0.6, 0.95)
    return length * (1 - parallel), length * parallel * 16


def _amdahl(serial: Floats, shared: Floats) -> Law:
    return lambda i, units, _: serial[i] + shared[i] / units


def _total(law: Law, units: float, stages: int = STAGES) -> float:
    return float(sum(law(i, np.array([[units]]), np.zeros((1, 0)))[0, 0] for i in range(stages)))


def _spec(target: float, scope: str = "run", **changed: Any) -> dict[str, Any]:
    metric = SECONDS | {"target": round(target, 1), "scope": scope}
    return {"resources": [EXECUTORS | changed], "metrics": [metric], "iterations": STAGES}


def _sampled(random: Random, count: int = EXECUTIONS) -> Floats:
    """Allocations that somebody might have tried: all between 8 and 30."""
    drawn: Floats = random.choice(np.arange(8, 31), count, replace=False)[:, None].astype(float)
    return drawn


def deadline(random: Random) -> Plan:
    """One resource; a median run meets the deadline at 12 to 18 executors, with a tenth to spare."""
    law = _amdahl(*_work(random))
    return Plan(_spec(1.1 * _total(law, int(random.integers(12, 19)))), law, _sampled(random))


def drift(random: Random) -> Plan:
    """Every run is half as slow again from its middle on, which no profile shows."""
    plan = deadline(random)
    return replace(plan, spec=_stretched(plan.spec, 1.25), drift=1.5)


def _stretched(spec: dict[str, Any], factor: float) -> dict[str, Any]:
    (metric,) = spec["metrics"]
    return spec | {"metrics": [metric | {"target": round(metric["target"] * factor, 1)}]}


def expensive_changes(random: Random) -> Plan:
    """A change stops the run for two average stages, and is worth ten times as much to be spared."""
    plan = deadline(random)
    (resource,) = plan.spec["resources"]
    spec = plan.spec | {"resources": [resource | {"change_seconds": 40.0}], "weights": {"change": 0.1}}
    return replace(plan, spec=_stretched(spec, 1.05))


def two_executions(random: Random) -> Plan:
    """The same, but that two executions are all there is."""
    return replace(deadline(random), sampled=_sampled(random, 2))


def one_allocation(random: Random) -> Plan:
    """Six executions at one allocation."""
    return replace(deadline(random), sampled=np.repeat(_sampled(random, 1), 6, axis=0))


def iteration_target(random: Random) -> Plan:
    """Each iteration has a target of its own, and all are alike but for the noise."""
    length, parallel = 20.0, random.uniform(0.6, 0.95)
    law = _amdahl(np.full(STAGES, length * (1 - parallel)), np.full(STAGES, length * parallel * 16))
    target = 1.1 * _total(law, int(random.integers(12, 19))) / STAGES
    return Plan(_spec(target, "iteration"), law, _sampled(random))


def throughput(random: Random) -> Plan:
    """Samples per second are to be at least so many, in every iteration."""
    plan = iteration_target(random)

    def law(i: int, units: Floats, features: Floats) -> Floats:
        seconds = plan.law(i, units, features)
        return np.hstack([1000 / seconds, seconds])

    target = round(1000 / plan.spec["metrics"][0]["target"], 2)
    metrics = [{"name": "throughput", "unit": "1/s", "target": target, "goal": "at_least"}, SECONDS]
    return replace(plan, spec=plan.spec | {"metrics": metrics}, law=law)


def two_resources(random: Random) -> Plan:
    """GPUs are dear and shorten most; cores are cheap and shorten some."""
    serial, shared = _work(random)
    split = random.uniform(0.5, 0.8)

    def law(i: int, units: Floats, features: Floats) -> Floats:  # noqa: ARG001 - it has none
        gpus, cores = units.T
        return (serial[i] + shared[i] / 16 * (split * 4 / gpus + (1 - split) * 16 / cores))[:, None]

    target = sum(law(i, np.array([[4.0, 16.0]]), np.zeros((1, 0)))[0, 0] for i in range(STAGES)) * 1.05
    gpus = {"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 2, "initial": 4, "price_per_hour": 2.0}
    cores = {"name": "cores", "minimum": 4, "maximum": 32, "step": 4, "max_steps": 2, "initial": 16}
    spec = _spec(target) | {"resources": [gpus, cores | {"price_per_hour": 0.1}]}
    sampled = np.stack([random.integers(2, 8, 10), 4 * random.integers(2, 8, 10)], axis=1).astype(float)
    return Plan(spec, law, sampled)


def varying_features(random: Random) -> Plan:
    """200 iterations whose batches grow and start over, a little different in every run."""
    serial, shared = (part.mean() / 10 for part in _work(random))
    base = 64 * 4 ** (np.arange(LONG) % 50 / 50)

    def course(count: int, random: Random) -> Floats:
        drawn: Floats = np.clip(base * np.exp(0.1 * random.standard_normal((count, LONG))), 32, 512)
        return drawn[:, :, None]

    def law(i: int, units: Floats, features: Floats) -> Floats:  # noqa: ARG001 - by its features alone
        return (serial + shared / units) * (0.3 + 0.7 * features / 128)

    usual, units = base[:, None, None], np.array([[float(random.integers(12, 19))]])
    target = 1.08 * sum(law(i, units, usual[i])[0, 0] for i in range(LONG))
    feature = {"name": "batch", "minimum": 32, "maximum": 512}
    spec = _spec(target) | {"features": [feature], "iterations": LONG}
    return Plan(spec, law, _sampled(random), course=course)


def announced_features(random: Random) -> Plan:
    """The same, but that each run begins somewhere else in that course, and its launcher knows what is to come."""
    plan = varying_features(random)

    def course(count: int, random: Random) -> Floats:
        usual = plan.course(count, random) if plan.course else np.zeros((count, LONG, 1))
        begins = random.integers(0, 25, count)
        return np.stack([np.roll(one, -begin, axis=0) for one, begin in zip(usual, begins, strict=True)])

    return replace(plan, course=course, announced=True)


def misspecified(random: Random) -> Plan:
    """Beyond a knee more executors cost time, whole machines of eight are faster, and the noise has heavy tails."""
    serial, shared = _work(random)
    knee, drag = random.integers(16, 24), random.uniform(0.01, 0.03)

    def law(i: int, units: Floats, features: Floats) -> Floats:  # noqa: ARG001 - it has none
        slower = 1 + drag * np.maximum(units - knee, 0) + 0.08 * (units % 8 != 0)
        seconds: Floats = (serial[i] + shared[i] / np.minimum(units, knee)) * slower
        return seconds

    return Plan(_spec(1.1 * _total(law, 14)), law, _sampled(random), noise_sd=0.15, tails=3.0)


def _waits(random: Random, stages: int = STAGES) -> tuple[Floats, Floats]:
    """As ``_work``, where most stages wait: a third of them scale, and of the work of all at most three tenths do."""
    length = 20 * np.exp(0.6 * random.standard_normal(stages))
    scales = random.permutation(stages) < stages // 3
    share = random.uniform(0.1, 0.3) * length.sum() / (length * scales).sum()
    shared = length * scales * min(share, 0.95)
    return length - shared, shared * 16


def _waiting(random: Random) -> tuple[Plan, Floats]:
    """Few stages scale, and half of them are noisy; beside it the share of each stage that scales, [I]."""
    serial, shared = _waits(random)
    law = _amdahl(serial, shared)
    noise = np.where(random.random(STAGES) < 0.5, 0.1, random.uniform(0.3, 0.6, STAGES))
    return Plan(_spec(1.1 * _total(law, 14)), law, _sampled(random), noise_sd=noise), shared / (16 * serial + shared)


def waiting(random: Random) -> Plan:
    """Few stages scale, and half of them are noisy."""
    return _waiting(random)[0]


def hardly_scaling(random: Random) -> Plan:
    """At most three tenths of any stage scale, and all stages are noisy."""
    length, share = 20 * np.exp(0.6 * random.standard_normal(STAGES)), random.uniform(0.0, 0.3)
    law = _amdahl(length * (1 - share), length * share * 16)
    noise = random.uniform(0.3, 0.6, STAGES)
    return Plan(_spec(1.1 * _total(law, 14)), law, _sampled(random), noise_sd=noise, tails=4.0)


def busy_neighbour(random: Random) -> Plan:
    """The same, but that what slows a run slows only what computes: stages that wait take as long as ever."""
    plan, share = _waiting(random)
    return replace(plan, effect_sd=0.4 * share)


def _sure(plan: Plan, probability: float = 0.95) -> Plan:
    """The same, but that its targets are to be met with a probability."""
    metrics = [m | {"probability": probability} if "target" in m else m for m in plan.spec["metrics"]]
    return replace(plan, spec=plan.spec | {"metrics": metrics})


def probability_deadline(random: Random) -> Plan:
    """A deadline that nineteen runs in twenty are to meet."""
    return _sure(deadline(random))


def probability_two_resources(random: Random) -> Plan:
    """A deadline on two resources that four runs in five are to meet."""
    return _sure(two_resources(random), 0.8)


def probability_misspecified(random: Random) -> Plan:
    """Nineteen in twenty, under noise with heavy tails and a law that no model knows."""
    return _sure(misspecified(random))


def probability_iteration_target(random: Random) -> Plan:
    """A target that nine iterations in ten are to meet."""
    return _sure(iteration_target(random), 0.9)


PLANTED: dict[str, Callable[[Random], Plan]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        deadline,
        two_resources,
        throughput,
        iteration_target,
        drift,
        expensive_changes,
        two_executions,
        one_allocation,
        varying_features,
        announced_features,
        misspecified,
        waiting,
        hardly_scaling,
        busy_neighbour,
        probability_deadline,
        probability_two_resources,
        probability_misspecified,
        probability_iteration_target,
    )
}


def plant(name: str, seed: int) -> World:
    """One of ``PLANTED``, as its seed has it."""
    return planted(f"{name}-{seed}", PLANTED[name](np.random.default_rng((seed, 0))), seed)
