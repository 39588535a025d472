"""The shared problems: real measurements as workloads, with a domain model fitted to them by the service's own code."""

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.fit import fit_domain_model
from workers.kinds.iterative.grid import Executions

ELLIS = {"kmeans": 840.0, "logisticregression": 300.0}  # run targets of the peers, seconds
POLLUX = {"bert": 12, "cifar10": 513, "ncf": 2051, "yolov3": 8}  # samples per GPU and step


@dataclass(frozen=True, eq=False)
class Problem:
    """A workload under its domain model."""

    name: str
    spec: Spec
    table: ModelTable


def data() -> Path:
    """The folder of public data sets.

    Raises:
        SystemExit: STEWARD_DATA does not name it.
    """
    folder = Path(os.environ.get("STEWARD_DATA", ""))
    if not os.environ.get("STEWARD_DATA") or not folder.is_dir():
        raise SystemExit("STEWARD_DATA does not name the folder with the public data sets")
    return folder


def ellis(app: str) -> Problem:
    """A Spark job on 4 to 36 executors that may be rescaled between its stages; model of its first ten runs."""
    runs: dict[str, list[tuple[float, float, float]]] = {}
    with (data() / "enel-ellis" / f"ellis-{app}.csv").open() as file:
        for row in list(csv.reader(file, delimiter="|"))[1:]:
            runs.setdefault(row[4], []).append((float(row[5]), float(row[9]), float(row[8]) / 1000))
    first = [(run, np.array(runs[run])) for run in list(runs)[:10]]
    spec = _spec(
        f"ellis-{app}",
        [{"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 4}],
        max(len(rows) for _, rows in first),
        ELLIS[app],
    )
    return Problem(spec.name, spec, fit_domain_model(spec, Executions(tuple(first)), seed=1).table)


def pollux(app: str) -> Problem:
    """A training of 40 equal slices on 1 to 16 GPUs, the batch on each fixed; the deadline is that of 6 GPUs.

    A run is a placement. Its iterations are the measurements at the three batches nearest to the chosen one, scaled to
    it by what that batch takes over all placements.
    """
    rows = list(_pollux_rows(app))
    near = sorted({local for _, _, local, _ in rows}, key=lambda local: abs(local - POLLUX[app]))[:3]
    steps = {b: np.median([seconds for _, _, local, seconds in rows if local == b]) for b in near}
    runs: dict[str, list[tuple[float, ...]]] = {}
    for placement, gpus, local, seconds in rows:
        if local in near:
            run = runs.setdefault(placement, [])
            run.append((0, gpus, 400 / gpus * seconds * steps[near[0]] / steps[local]))
    resources = [{"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 2, "change_seconds": 1.0}]
    return _with_deadline(f"pollux-{app}", resources, runs, lambda allocation: abs(allocation[:, 0] - 6).argmin())


def pollux_two(app: str) -> Problem:
    """The same with two resources: GPUs, and the batch on each, doubled from 32 to 512."""
    runs: dict[str, list[tuple[float, ...]]] = {}
    for placement, gpus, local, seconds in _pollux_rows(app):
        doublings = np.log2(local / 32)
        if abs(doublings - round(doublings)) < 0.02 and doublings < 4.1:
            run = runs.setdefault(placement, [])
            run.append((0, gpus, round(doublings) + 1, 2e5 / (gpus * local) * seconds))
    resources = [
        {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 2, "change_seconds": 1.0},
        {"name": "batch", "minimum": 1, "maximum": 5, "max_steps": 1, "price_per_hour": 0.5},
    ]
    return _with_deadline(
        f"pollux-{app}-2", resources, runs, lambda allocation: abs(allocation - np.array([6, 3])).sum(axis=1).argmin()
    )


def planted_three() -> Problem:
    """Three resources with diminishing returns; planted, not measured."""
    names = (("gpus", 2.0, 1.0), ("cpus", 0.3, 0.5), ("memory", 0.1, 0.2))
    resources = [
        {"name": n, "minimum": 1, "maximum": 8, "max_steps": 1, "price_per_hour": p, "change_seconds": 1.0}
        for n, p, _ in names
    ]
    spec = _spec("planted-3", resources, 40, 400.0)
    layout = Layout(spec)
    seconds = 1 + sum(w * 40 / layout.allocations[:, i] for i, (_, _, w) in enumerate(names)) / 1.7
    return Problem(spec.name, spec, _planted(layout, np.log(seconds)))


def planted_one() -> Problem:
    """One resource in 33 steps, with a run effect to be read and noise to be read through; planted."""
    resources = [{"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 4, "change_seconds": 2.0}]
    spec = _spec("planted-1", resources, 30, 330.0)
    executors = Layout(spec).allocations[:, 0]
    return Problem(spec.name, spec, _planted(Layout(spec), np.log(2 + 60 / executors + 0.1 * executors)))


def planted_two() -> Problem:
    """Two resources with diminishing returns; planted, not measured."""
    resources: list[dict[str, Any]] = [
        {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 2, "price_per_hour": 2.0, "change_seconds": 2.0},
        {"name": "cpus", "minimum": 1, "maximum": 16, "max_steps": 2, "price_per_hour": 0.2},
    ]
    spec = _spec("planted-2", resources, 40, 400.0)
    layout = Layout(spec)
    gpus, cpus = layout.allocations.T
    return Problem(spec.name, spec, _planted(layout, np.log(1 + 40 / gpus + 12 / cpus)))


def varying_features() -> Problem:
    """One resource; how long an iteration takes, and how it scales, depends on what the run works on."""
    resource = {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 2, "change_seconds": 2.0}
    spec = _spec("features", [resource], 30, 400.0, features=[{"name": "size", "minimum": 1, "maximum": 4}])
    layout = Layout(spec)
    nodes = np.linspace(1, 4, 7)
    gpus = layout.allocations[:, 0]
    log_seconds = np.log(2 + 12 * nodes**1.3 / gpus[:, None] + 0.15 * gpus[:, None] / nodes)
    table = _planted(layout, log_seconds[:, 0])
    low, high = np.array([1.0]), np.array([4.0])
    logs = log_seconds[None, :, :, None].astype(np.float32)
    return Problem(
        spec.name, spec, replace(table, log_mean=logs, feature_nodes=(nodes,), feature_low=low, feature_high=high)
    )


def two_metrics() -> Problem:
    """A deadline, and a latency that must be met at every iteration, which pull towards different allocations."""
    resources: list[dict[str, Any]] = [
        {"name": "gpus", "minimum": 1, "maximum": 12, "max_steps": 2, "price_per_hour": 2.0, "change_seconds": 2.0},
        {"name": "replicas", "minimum": 1, "maximum": 6, "max_steps": 1, "price_per_hour": 0.5, "change_seconds": 1.0},
    ]
    latency = {"name": "latency", "unit": "s", "target": 0.5, "goal": "at_most", "scope": "iteration"}
    spec = _spec("two-metrics", resources, 30, 330.0, metrics=[latency])
    layout = Layout(spec)
    gpus, replicas = layout.allocations.T
    seconds, late = 2 + 50 / gpus + 0.4 * replicas, 0.1 + 1.1 / replicas + 0.01 * gpus
    planted = _planted(layout, np.log(seconds))
    order = [np.log(seconds) if name == "iteration_seconds" else np.log(late) for name in layout.metrics]
    return Problem(spec.name, spec, replace(planted, log_mean=np.stack(order)[:, :, None, None].astype(np.float32)))


def regimes() -> Problem:
    """Runs of four kinds that scale unlike each other; which one a run is of shows only while it runs."""
    resources = [{"name": "executors", "minimum": 2, "maximum": 32, "max_steps": 4, "change_seconds": 3.0}]
    spec = _spec("regimes", resources, 40, 520.0)
    layout = Layout(spec)
    executors = layout.allocations[:, 0]
    laws = [1 + 100 / executors, 6 + 45 / executors, 10 + 0.15 * executors + 10 / executors, 2 + 60 / executors**0.7]
    logs = np.log(laws)
    table = _planted(layout, logs.mean(axis=0))
    offsets = (logs - logs.mean(axis=0))[:, None, :, None, None].astype(np.float32)
    return Problem(spec.name, spec, replace(table, members=offsets))


def drifting() -> Problem:
    """Two resources, and a run's pace that wanders far: what was measured some iterations ago says little."""
    problem = planted_two()
    table = replace(problem.table, drift_sd=0.12 * np.ones(1), noise_sd=0.25 * np.ones(1))
    spec = problem.spec.model_copy(update={"name": "drift-2"})
    return Problem(spec.name, spec, table)


def lost_capacity() -> Problem:
    """Two resources, of which more than half of the runs lose a large part at some time."""
    return _disturbed("lost-capacity", planted_two(), {"lost_capacity": {"probability": 0.6, "left": (0.2, 0.7)}})


def pace_shifts() -> Problem:
    """One resource; half of the runs become slower at some time, and stay so."""
    return _disturbed("pace-shifts", planted_one(), {"pace_shift": {"probability": 0.5, "factor": (1.2, 2.0)}})


def stages() -> Problem:
    """Features vary within runs of four kinds: a run shows its kind in its first iterations, and again in its last.

    In between all kinds are alike, and by then it should have been made ready for how it ends.
    """
    problem = varying_features()
    begin, end = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.5, 4.0, 1.0, 3.5])
    place = np.arange(30)
    courses = np.where(place < 3, begin[:, None], np.where(place < 20, 2.0, end[:, None]))[:, :, None]
    fields = problem.spec.model_dump() | {"name": "stages"}
    fields["metrics"][0]["target"] = 280.0
    return Problem("stages", Spec.model_validate(fields), replace(problem.table, courses=courses.astype(np.float32)))


def kinds() -> Problem:
    """Runs of four kinds end in one long iteration, whose size nobody sees before it is over.

    A run shows its kind in its first three iterations, by a feature that changes nothing else, and never again.
    """
    resource = {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 2, "change_seconds": 2.0}
    features = [{"name": "size", "minimum": 1, "maximum": 8}, {"name": "kind", "minimum": 0, "maximum": 3}]
    spec = _spec("kinds", [resource], 24, 350.0, features=features)
    gpus, sizes = Layout(spec).allocations[:, 0, None], np.linspace(1, 8, 15)
    seconds = 2 + 12 * sizes**1.3 / gpus + 0.15 * gpus  # [A, sizes]
    logs = np.log(np.stack([seconds, 6 * seconds], axis=2))[None, :, :, None].repeat(2, axis=3)
    place, kind = np.arange(24), np.arange(4.0)[:, None]
    size = np.where(place < 23, 1.5, np.array([1.0, 8.0, 1.0, 8.0])[:, None])
    table = replace(
        _planted(Layout(spec), logs[0, :, 0, 0, 0]),
        log_mean=logs.reshape(1, len(gpus), -1, 2).astype(np.float32),
        iteration_bin=(place == 23).astype(np.int32),
        feature_nodes=(sizes, np.array([0.0, 3.0])),
        feature_low=np.array([1.0, 0.0]),
        feature_high=np.array([8.0, 3.0]),
        courses=np.stack([size, np.where(place < 3, kind, 1.5)], axis=2).astype(np.float32),
    )
    return Problem(spec.name, spec, table)


def _disturbed(name: str, problem: Problem, disturbances: dict[str, Any]) -> Problem:
    fields = problem.spec.model_dump() | {"name": name, "disturbances": disturbances}
    return Problem(name, Spec.model_validate(fields), problem.table)


def alone(name: str) -> Problem:
    """One of ``PROBLEMS`` under one model, the middle of its belief: what the exact optimum can be had of."""
    result = problem(name)
    return replace(result, table=replace(result.table, members=None))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"ellis-{app}": lambda app=app: ellis(app) for app in ELLIS},  # type: ignore[misc]
    **{f"pollux-{app}": lambda app=app: pollux(app) for app in POLLUX},  # type: ignore[misc]
    "pollux-cifar10-2": lambda: pollux_two("cifar10"),
    "planted-1": planted_one,
    "planted-2": planted_two,
    "planted-3": planted_three,
    "features": varying_features,
    "two-metrics": two_metrics,
    "regimes": regimes,
    "drift-2": drifting,
    "lost-capacity": lost_capacity,
    "pace-shifts": pace_shifts,
    "stages": stages,
    "kinds": kinds,
}
EXACT = (*(f"ellis-{app}" for app in ELLIS), *(f"pollux-{app}" for app in POLLUX), "planted-1")
"""Those of which, under one model, the exact optimum can be had."""
WITHOUT_TABLE = (
    *("pollux-cifar10-2", "planted-2", "planted-3", "features", "two-metrics", "regimes", "drift-2"),
    *("lost-capacity", "pace-shifts", "stages", "kinds"),
)
"""Those of which it can't."""


@cache
def problem(name: str) -> Problem:
    """One of ``PROBLEMS``, fitted once."""
    return PROBLEMS[name]()


def _pollux_rows(app: str) -> Iterator[tuple[str, int, int, float]]:
    """(placement, GPUs, batch on each, seconds per step) of every measured placement of at most 16 GPUs."""
    folder = data() / "pollux-osdi21" / "traces" / app
    for row in csv.DictReader((folder / "placements.csv").open()):
        yield row["placement"], sum(map(int, row["placement"])), int(row["local_bsz"]), float(row["step_time"])
    for row in csv.DictReader((folder / "scalability.csv").open()):
        if int(row["num_replicas"]) <= 16:
            placement = f"{row['num_nodes']} nodes, {row['num_replicas']} GPUs"
            yield placement, int(row["num_replicas"]), int(row["local_bsz"]), float(row["step_time"])


def _with_deadline(
    name: str, resources: list[dict[str, Any]], runs: Mapping[str, list[Any]], pick: Callable[[Any], Any]
) -> Problem:
    """Fit, then ask for a deadline that the picked allocation meets with a margin of 5 %."""
    arrays = tuple((run, np.array(rows, float)) for run, rows in runs.items())
    draft = _spec(name, resources, 40, 1.0)
    table = fit_domain_model(draft, Executions(arrays), seed=1).table
    seconds = np.exp(table.log_mean[0, pick(Layout(draft).allocations), 0, 0])
    return Problem(name, _spec(name, resources, 40, round(float(seconds * 40 * 1.05), 1)), table)


def _spec(
    name: str,
    resources: list[dict[str, Any]],
    iterations: int,
    target: float,
    *,
    metrics: Sequence[dict[str, Any]] = (),
    features: Sequence[dict[str, Any]] = (),
) -> Spec:
    metric = {"name": "iteration_seconds", "unit": "s", "target": target, "scope": "run"}
    values = {"name": name, "resources": resources, "metrics": [metric, *metrics], "iterations": iterations}
    return Spec.model_validate({**values, "features": list(features)})


def _planted(layout: Layout, log_seconds: np.ndarray[Any, Any]) -> ModelTable:
    table = initial_table(layout)
    every = np.ones(len(layout.metrics))
    return replace(
        table,
        log_mean=log_seconds[None, :, None, None].astype(np.float32),
        effect_sd=0.2 * every,
        noise_sd=0.15 * every,
        drift_sd=0.02 * every,
        informed=True,
    )
