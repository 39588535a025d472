"""Domain models of a cluster, on what was left out: throughput, what learning curves have left to gain, interference.

Throughput: the six applications of Pollux's measurements (``placements.csv``; a placement is GPUs on so many nodes). A
quarter of the placements is left out, or all but twelve of them; the others are learned from with all their batch
sizes. Error is of a step's seconds, the mean over measured steps that were left out; beside it those of Pollux's own
model and of Ernest, fitted to the same. Families and their weights were looked at on one split (seed 0) of bert and
yolov3; what is told is of seeds 1 to 3.

Learning curves: validation accuracy of 486 residual networks and 1,300 of MetaQNN's, as in ``cluster_convergence``;
learned from a quarter, told of the half that set nothing. The end is foretold from a fifth to four fifths of each
curve; beside it is that nothing more is gained.

Interference: a planted 3 × 3 matrix, recovered from 90 noisy steps (20 draws); and Lucid's measurements of two jobs on
one GPU: speeds relative to those alone, by model, batch and precision. A fifth of the pairs is left out; beside ours
the mean slow-down of the others, and none at all. All of it was read once, but curves twice (see there).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from app.kinds.cluster.jobs import Floats
from benchmarks import cluster_convergence
from benchmarks.problems import data
from workers.estimators.base import NORMAL_90, distinct
from workers.estimators.registry import FAMILIES
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.estimation import (
    INPUTS,
    SharedSteps,
    StepFit,
    StepMeasurements,
    fit_pairs,
    fit_steps,
    foretold,
    likeliest,
)

Row = dict[str, Any]
PARTS = ("throughput", "curves", "interference")
APPLICATIONS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
SEEDS = (1, 2, 3)
FEW = 12
MATRIX = np.array([[1.1, 1.5, 1.3], [1.05, 1.2, 1.9], [1.0, 1.4, 1.25]])
DRAWS, STEPS, NOISE = 20, 90, 0.1


def within(measured: StepMeasurements, fitted: StepFit) -> tuple[Floats, Floats]:
    """Predicted seconds, and whether what was measured is within the 90 % interval, [n] each; for what was held out."""
    logs = np.stack([np.log(member.median(measured.inputs)) for member in fitted.members])
    centre, apart = logs.mean(axis=0), NORMAL_90 * logs.std(axis=0)
    miss = np.log(measured.seconds) - centre
    low, high = fitted.bounds
    return np.exp(centre), (miss >= -np.hypot(low, apart)) & (miss <= np.hypot(high, apart))


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows for the common table."""
    result = {"throughput": _throughput, "curves": _curves, "interference": _interference}
    with threadpool_limits(1):
        return [row for part in parts for row in result[part]()]


def measured(application: str) -> StepMeasurements:
    """Steps of an application, as Pollux's authors measured them."""
    with (data() / f"pollux-osdi21/traces/{application}/placements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    gpus, nodes = [sum(map(int, row["placement"])) for row in rows], [len(row["placement"]) for row in rows]
    local, seconds = ([float(row[name]) for row in rows] for name in ("local_bsz", "step_time"))
    return StepMeasurements(*(np.array(column, np.float64) for column in (gpus, nodes, local, seconds)))


def _throughput() -> list[Row]:
    rows, ratios = list[Row](), list[float]()
    for application in APPLICATIONS:
        for few in (False, True):
            errors = np.array([_split(measured(application), few=few, seed=seed) for seed in SEEDS])
            ours, pollux, ernest, inside = errors.mean(axis=0)
            spread = "–".join(f"{error:.1f}" for error in (errors[:, 0].min(), errors[:, 0].max()))
            learned = f"{FEW} placements" if few else "three quarters of the placements"
            name = f"{application} from {learned} (Ernest {ernest:.1f}; seeds {spread}; 90 % hold {inside:.3f})"
            ratios.append(ours / pollux)
            rows.append(_row(name, ours, "% error", "Pollux's model", pollux, ""))
    whole = float(np.exp(np.log(ratios).mean()))
    return [*rows, _row("seconds of a step, geometric mean of the ratios", whole, "× Pollux's model", None, None, "")]


def _split(steps: StepMeasurements, *, few: bool, seed: int) -> tuple[float, float, float, float]:
    """Errors in % of ours, Pollux's model and Ernest, and the share within our intervals."""
    first, place = distinct(steps.gpus, steps.nodes)
    order = np.random.default_rng(seed).permutation(len(first))
    known = np.isin(place, order[:FEW] if few else order[len(order) // 4 :])
    learned, request = steps.take(np.flatnonzero(known)), steps.take(np.flatnonzero(~known))
    reported, inside = within(request, fit_steps(learned, seed))
    groups = distinct(learned.gpus, learned.nodes)[1]
    peers = [
        FAMILIES[name].make(INPUTS).fit(learned.inputs, learned.seconds, groups) for name in ("throughput", "ernest")
    ]
    errors = [_error(reported, request), *(_error(peer.median(request.inputs), request) for peer in peers)]
    return errors[0], errors[1], errors[2], float(inside.mean())


def _error(reported: Floats, measurements: StepMeasurements) -> float:
    return float(100 * np.abs(reported / measurements.seconds - 1).mean())


def _curves() -> list[Row]:
    rows = []
    for name in cluster_convergence.SETS:
        model, _, request = cluster_convergence.parts(cluster_convergence.curves(name))
        known, (count, epochs) = cluster_convergence.learned(model), request.shape
        for part in (0.2, 0.4, 0.6, 0.8):
            number = int(part * epochs)
            foretold = cluster_convergence.foretold(request, np.full(count, number), known)
            error = np.abs(foretold.level + foretold.gain - request[:, -1])
            interval, inside = mean_interval(error), (error <= foretold.half).mean()
            bounds = f"{interval['low']:.4f}–{interval['high']:.4f}; 90 % hold {inside:.3f}"
            text = f"{name}, after {number} of {epochs} epochs ({bounds})"
            naive = float(np.abs(request[:, number - 1] - request[:, -1]).mean())
            rows.append(_row(text, interval["mean"], "accuracy off", "nothing more is gained", naive, ""))
    return rows


def _interference() -> list[Row]:
    worst = [_planted(seed) for seed in range(DRAWS)]
    goal = f"within 10 %: {sum(error <= 0.1 for error in worst)} of {DRAWS} draws"
    planted = _row(
        "planted 3 × 3 matrix, worst entry, median of draws", 100 * float(np.median(worst)), "% off", None, None, goal
    )
    return [planted, _real()]


def _planted(seed: int) -> float:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 3, STEPS), rng.integers(0, 3, STEPS)
    log = np.log(MATRIX[one, other]) + rng.normal(0, NOISE, STEPS)
    result, _ = fit_pairs(SharedSteps(one, np.eye(3)[other], log), 3, seed)
    return float(np.abs(np.exp(result.log_slowdown) / MATRIX - 1).max())


def colocated() -> SharedSteps:
    """Lucid's pairs: each tells of both jobs how much slower they were."""
    with (data() / "helios-venus-lucid/colocate_info.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    sides = [
        [tuple(row[f"{part}{side}"] for part in ("model", "dataset", "batchsize", "amp")) for row in rows]
        for side in (1, 2)
    ]
    names = {name: place for place, name in enumerate(dict.fromkeys(sides[0] + sides[1]))}
    one, other = (np.array([names[name] for name in side]) for side in sides)
    speed = np.array([[float(row[f"speed{side}"]) for row in rows] for side in (1, 2)])
    application, beside = np.concatenate([one, other]), np.eye(len(names))[np.concatenate([other, one])]
    shared, log = SharedSteps(application, beside, np.zeros(2 * len(rows))), -np.log(np.maximum(speed.ravel(), 1e-3))
    return shared._replace(log=log)


def _real() -> Row:
    shared, errors = colocated(), []
    half = len(shared.log) // 2
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        test = np.tile(rng.random(half) < 0.2, 2)  # a pair's two sides together
        known, request = shared.take(np.flatnonzero(~test)), shared.take(np.flatnonzero(test))
        mean, sd = foretold(known, request, likeliest(known, rng))
        true, usual = np.exp(request.log), np.exp(known.log.mean())
        inside = (np.abs(request.log - mean) <= NORMAL_90 * sd).mean()
        errors.append([100 * np.abs(reported / true - 1).mean() for reported in (np.exp(mean), usual, 1.0)] + [inside])
    ours, usual_error, none, inside = np.array(errors).mean(axis=0)
    name = f"Lucid's pairs left out, slow-down (none at all {none:.1f}; 90 % hold {inside:.3f})"
    return _row(name, ours, "% error", "the mean of the others", usual_error, "")


def _row(name: str, value: float, unit: str, peer: str | None, peer_value: float | None, goal: str) -> Row:
    ratio = None if peer_value is None else float(value) / float(peer_value)
    values = {"value": float(value), "unit": unit, "peer": peer, "peer_value": peer_value and float(peer_value)}
    return {"name": name, **values, "ratio": ratio, "goal": goal or None}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_models", results())
