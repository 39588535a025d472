"""The spec of a workload that is registered for a command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from steward_client.launcher.actuators.contract import amount
from steward_client.launcher.iterations.mark import SECONDS
from steward_client.launcher.service import Json
from steward_client.launcher.wishes import Misuse, Resource, Wishes

PRICES = {"cpu": 0.01, "memory": 0.125 / 1024, "gpus": 30.0}
"""Price per unit and hour, in the price of a core-hour: of a percent of a core, a MiB, a GPU, roughly as in clouds."""
WEIGHTS = {"sla": 20.0, "cost": 0.1, "change": 0.002}
"""Weights with which meeting the deadline comes first, and saving cost second."""
LONGEST_MOVE, LONGEST_MOVE_OF_SEVERAL = 4, 2
LEVELS = 8


def resources(wishes: Wishes) -> tuple[Resource, ...]:
    """The resources named in the options; else this machine's CPU in eight steps."""
    if wishes.resources:
        return wishes.resources
    most = 100.0 * len(os.sched_getaffinity(0))
    return (Resource("cpu", most / LEVELS, most, most / LEVELS, "%"),)


def specification(wishes: Wishes, iterations: int, change_seconds: Mapping[str, float]) -> Json:
    """Body of ``POST /workloads`` for a command with this number of iterations; ``change_seconds`` that the actuator
    needs for a change, by resource."""
    chosen = resources(wishes)
    seconds: Json = {"name": SECONDS, "unit": "s", "goal": "at_most", "scope": "run"}
    if wishes.deadline is not None:
        seconds["target"] = wishes.deadline
    others = [{"name": name, "target": value, "goal": "at_most"} for name, value in wishes.targets if name != SECONDS]
    return {
        "name": wishes.workload,
        "kind": "iterative",
        "resources": [_resource(one, len(chosen), change_seconds.get(one.name, 0.0)) for one in chosen],
        "metrics": [seconds, *others],
        "iterations": iterations,
        "weights": WEIGHTS,
    }


def without_target(wishes: Wishes, metrics: Sequence[Json]) -> dict[str, float]:
    """Requested targets of metrics that have no target yet, by metric."""
    wished = dict(wishes.targets) | ({} if wishes.deadline is None else {SECONDS: wishes.deadline})
    plain = {metric["name"] for metric in metrics if metric.get("target") is None}
    return {name: value for name, value in wished.items() if name in plain}


def _resource(resource: Resource, of: int, change_seconds: float) -> Json:
    longest = LONGEST_MOVE if of == 1 else LONGEST_MOVE_OF_SEVERAL
    return {
        "name": resource.name,
        "unit": resource.unit,
        "minimum": resource.minimum,
        "maximum": resource.maximum,
        "step": resource.step,
        "max_steps": max(1, min(longest, len(resource.levels) - 1)),
        "initial": resource.maximum,
        "price_per_hour": PRICES.get(resource.name, 1.0),
        "change_seconds": change_seconds,
    }


def check_same(wishes: Wishes, spec: Json) -> None:
    """Check that a registered workload agrees with the options.

    Raises:
        Misuse: it has other resources, or another number of iterations.
    """
    there = [Resource.of_spec(one) for one in spec["resources"]]
    remedy = "leave it out" if wishes.registered else "leave it out, or give another --name"
    for requested in wishes.resources:
        if requested not in there:
            has = ", ".join(_text(one) for one in there)
            raise Misuse(
                f"--resource {_text(requested)}: workload {spec['name']!r} is registered with {has}; " + remedy
            )
    if wishes.iterations is not None and wishes.iterations != spec["iterations"]:
        raise Misuse(
            f"--iterations {wishes.iterations}: workload {spec['name']!r} is registered with {spec['iterations']}; "
            + remedy
        )


def _text(one: Resource) -> str:
    return f"{one.name}={amount(one.minimum)}..{amount(one.maximum)}/{amount(one.step)}{one.unit}"
