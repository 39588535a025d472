"""What jobs that converge give back, what that costs of their final metric, and whether intervals of gains hold.

Learning curves of really trained models: residual networks on CIFAR-10, 50 epochs with a drop of the learning rate at
30, and MetaQNN's networks on SVHN, 20 epochs (``accelerating-nas``); five models of Pollux's artifact, by batch size;
and models trained here on scikit-learn's data with hyper-parameters that are drawn: perceptrons on digits (validation
accuracy, and log loss), boosted trees on diabetes (root mean square error), logistic regressions on breast cancer (log
loss). Values that fall are taken negative.

Each curve is played forward as a job on eight GPUs that has the time of its epochs and no more: on half the GPUs an
epoch takes twice as long, and what it has not trained by its end is lost. After each epoch the job shows its metric,
and ``app.kinds.cluster.lookahead`` says how many GPUs it keeps, from eight down to one. A job's metric is
its best so far, as of a checkpoint that is kept. Other jobs of the set have ended before, from nine of them on they say
how far gains may be off; with fewer no job is limited. Intervals are said to hold 90 % of the ends.

The tolerance was chosen on half the curves of the first two sets, which ``--development`` tells of; the spread of jobs
alone on these and on digits and diabetes, since what held for the first two didn't for digits (54 to 68 % of the ends).
What is told of the other halves, of Pollux's models and of breast cancer had no part in either.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.lengths import (
    AGES,
    POINTS,
    CurvePoints,
    LearningCurves,
    RemainingGain,
    ahead,
    parametric,
    thinned_indices,
)
from app.kinds.cluster.lookahead import Progress, Tolerance, none, update_convergence
from benchmarks.problems import data
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.fit import Curve, classes, fit_class

Row = dict[str, Any]
SETS = ("deep_resnets_cifar10", "metaqnn_svhn")
POLLUX = ("cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
GPUS, FLOOR = 8, 1
LOST, HELD = 0.01, (0.87, 0.98)
ENDED = (9, 20)
SEED = 0
MADE, EPOCHS = 60, 25
WINDOW = Tolerance(window_seconds=1.0)
"""An epoch on all GPUs takes a second, and so does a window."""


class Played(NamedTuple):
    """Of n jobs, [n] each: parts of node-hours freed, of the best metric lost, how often restored."""

    freed: Floats
    lost: Floats
    turns: Integers


def results() -> list[Row]:
    """Rows for the common table."""
    with threadpool_limits(1):
        return [row for name, ended, request in _held_out() for row in _rows(name, ended, request)]


def curves(name: str) -> Floats:
    """Validation accuracy by epoch of the networks of a set that have all epochs, [n, E]."""
    with gzip.open(data() / f"accelerating-nas/{name}.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    epochs = [column for column in rows[0] if column.startswith("acc_")]
    table = np.array([[float(row[column] or "nan") for column in epochs] for row in rows])
    return table[np.isfinite(table).all(axis=1)]


def parts(table: Floats) -> tuple[Floats, Floats, Floats]:
    """A quarter to learn curves from, a quarter to set constants on, and half to tell of."""
    order = np.random.default_rng(SEED).permutation(len(table))
    quarter = len(table) // 4
    return table[order[:quarter]], table[order[quarter : 2 * quarter]], table[order[2 * quarter :]]


def _held_out() -> Iterator[tuple[str, Floats, Floats]]:
    """Name, curves of jobs that ended, and of those that are played, of each set."""
    for name in SETS:
        ended, _, request = parts(curves(name))
        yield name, ended, request
    for name in POLLUX:
        table = pollux(name)
        yield f"pollux {name}", table[:0], table
    accuracy, loss = digits()
    result = {"digits, accuracy": accuracy, "digits, log loss": loss, "diabetes": diabetes(), "breast cancer": cancer()}
    for name, table in result.items():
        yield name, table[: len(table) // 3], table[len(table) // 3 :]


def pollux(name: str) -> Floats:
    """Validation metric by epoch of a model for each batch size, rising, [n, E]."""
    tables = []
    for path in sorted((data() / f"pollux-osdi21/traces/{name}").glob("validation-*.csv")):
        with path.open(newline="") as file:
            tables.append([float(row["metric"]) for row in csv.DictReader(file)])
    table = np.array(tables)
    return table if np.median(table[:, -1]) > np.median(table[:, 0]) else -table


def digits() -> tuple[Floats, Floats]:
    """Accuracy and negative log loss of perceptrons on digits that were held out, [60, 25] each."""
    x, y = load_digits(return_X_y=True)
    rng, reported = np.random.default_rng(1), np.zeros((2, MADE, EPOCHS))
    for job in range(MADE):
        order = rng.permutation(len(y))
        known, request = order[:600], order[600:1200]
        net = MLPClassifier(
            (int(2 ** rng.uniform(3, 6)),),
            solver=str(rng.choice(["adam", "sgd"])),
            learning_rate_init=float(10 ** rng.uniform(-3.3, -1.5)),
            batch_size=int(2 ** rng.integers(5, 8)),
            random_state=job,
        )
        for epoch in range(EPOCHS):
            net.partial_fit(x[known] / 16, y[known], classes=np.arange(10))
            chances = net.predict_proba(x[request] / 16)
            reported[0, job, epoch] = (chances.argmax(axis=1) == y[request]).mean()
            reported[1, job, epoch] = -log_loss(y[request], chances, labels=np.arange(10))
    return reported[0], reported[1]


def diabetes() -> Floats:
    """Negative root mean square error of boosted trees by tree, on patients who were held out, [60, 25]."""
    x, y = load_diabetes(return_X_y=True)
    rng, losses = np.random.default_rng(2), np.zeros((MADE, EPOCHS))
    for job in range(MADE):
        order = rng.permutation(len(y))
        known, request = order[:220], order[220:]
        trees = GradientBoostingRegressor(
            n_estimators=EPOCHS,
            learning_rate=float(10 ** rng.uniform(-1.5, -0.5)),
            max_depth=int(rng.integers(1, 5)),
            subsample=float(rng.uniform(0.4, 1)),
            random_state=job,
        ).fit(x[known], y[known])
        losses[job] = [-np.sqrt(np.mean((each - y[request]) ** 2)) for each in trees.staged_predict(x[request])]
    return losses


def cancer() -> Floats:
    """Negative log loss of logistic regressions by stochastic gradient descent, held out, [60, 25]."""
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    rng, losses = np.random.default_rng(3), np.zeros((MADE, EPOCHS))
    for job in range(MADE):
        order = rng.permutation(len(y))
        known, request = order[:280], order[280:]
        rate, penalty = float(10 ** rng.uniform(-4.5, -2)), float(10 ** rng.uniform(-5, -1))
        model = SGDClassifier("log_loss", alpha=penalty, learning_rate="constant", eta0=rate, random_state=job)
        for epoch in range(EPOCHS):
            model.partial_fit(x[known], y[known], classes=[0, 1])
            losses[job, epoch] = -log_loss(y[request], model.predict_proba(x[request]), labels=[0, 1])
    return losses


def learned(table: Floats) -> LearningCurves:
    """How curves of the set go."""
    epochs = np.arange(1, table.shape[1] + 1.0)
    return classes([0], [True], [fit_class([Curve(epochs, one) for one in table], SEED)])


def foretold(table: Floats, reported: Integers, known: LearningCurves | None) -> RemainingGain:
    """What is left of curves [n, E] of which ``reported`` epochs [n] are over; by each alone where nothing is known."""
    count, epochs = table.shape
    curve_points = CurvePoints(*np.full((2, count, POINTS), np.nan))
    for job, number in enumerate(reported.tolist()):
        own = thinned_indices(number)
        curve_points.iteration[job, : len(own)], curve_points.value[job, : len(own)] = own + 1.0, table[job, own]
    until = np.full(count, float(epochs))
    return (
        parametric(curve_points, until)
        if known is None
        else ahead(known, np.zeros(count, np.int64), curve_points, until)
    )


def predict_held_out(table: Floats, known: LearningCurves | None) -> Floats:
    """Share of the ends of curves [n, E] within their intervals, from each of ``AGES`` on that says anything, [A]."""
    count, epochs = table.shape
    matches = []
    for age in AGES[1:]:
        left = foretold(table, np.full(count, max(1, int(age * epochs + 1e-9))), known)
        finite = np.isfinite(left.half)
        if finite.any():
            matches.append(float((np.abs(left.level + left.gain - table[:, -1]) <= left.half)[finite].mean()))
    return np.array(matches)


def played(table: Floats, known: LearningCurves, tolerance: Tolerance) -> Played:
    """All curves [n, E] as jobs, of which ``known`` says how such curves go."""
    count, epochs = table.shape
    gpus, done, used = np.full(count, GPUS), np.zeros(count), np.zeros(count)
    state, turns, floor = none(count), np.zeros(count, np.int64), np.full(count, FLOOR)
    for now in range(epochs):
        done += gpus / GPUS
        used += gpus
        left, before = foretold(table, np.floor(done + 1e-9).astype(np.int64), known), state
        state = update_convergence(state, Progress(*left, gpus, floor), now + 1.0, tolerance)
        turns += (before.restored != state.restored).astype(np.int64)
        gpus = np.minimum(state.ceiling, GPUS)
    reached = np.maximum(np.floor(done + 1e-9).astype(np.int64), 1)
    best = np.maximum.accumulate(table, axis=1)
    lost = (best[:, -1] - best[np.arange(count), reached - 1]) / np.abs(best[:, -1])
    return Played(1 - used / (GPUS * epochs), lost, turns)


def _rows(name: str, ended: Floats, request: Floats) -> Iterator[Row]:
    yield _held(f"{name}, no job has ended", predict_held_out(request, None), len(request))
    for count in sorted({*(one for one in ENDED if one <= len(ended)), len(ended)} - {0}):
        known = learned(ended[:count])
        how = f"{name}, {count} have ended"
        yield _held(how, predict_held_out(request, known), len(request))
        yield from _played(how, played(request, known, WINDOW))


def _held(how: str, share: Floats, count: int) -> Row:
    mean, (least, most) = float(share.mean()), HELD
    text = f"{how}: ends within the 90 % intervals ({count} jobs; {share.min():.2f}–{share.max():.2f} by age)"
    return _row(text, mean, "of all", f"{least} to {most}: {'met' if least <= mean <= most else 'missed'}")


def _played(how: str, result: Played) -> Iterator[Row]:
    freed, lost = mean_interval(result.freed), mean_interval(result.lost)
    yield _row(f"{how}: node-hours freed ({freed['low']:.3f}–{freed['high']:.3f})", freed["mean"], "of all", None)
    goal = f"<= {LOST}: {'met' if lost['mean'] <= LOST else 'missed'}; at most {int(result.turns.max())} turns a job"
    bounds = f"{lost['low']:.4f}–{lost['high']:.4f}; {(result.lost > LOST).mean():.1%} lose more than 1 %"
    yield _row(f"{how}: metric lost ({bounds})", lost["mean"], "of the final", goal)


def _row(name: str, value: float, unit: str, goal: str | None) -> Row:
    return {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "goal": goal}


def _development() -> None:
    for name in SETS:
        model, constants, _ = parts(curves(name))
        sys.stdout.write(f"{name} alone: held by age {predict_held_out(constants, None).round(2)}\n")
        for count in (*ENDED, len(model)):
            known = learned(model[:count])
            sys.stdout.write(f"{name} {count} ended: held by age {predict_held_out(constants, known).round(2)}\n")
            for gain, doubt in ((0.01, 0.5), (0.01, 1.0), (0.015, 0.5), (0.015, 1.0)):
                result = played(constants, known, Tolerance(gain, doubt, 1.0))
                text = f"freed {result.freed.mean():.3f} lost {result.lost.mean():.4f}"
                sys.stdout.write(f"{name} {count} ended, gain {gain} doubt {doubt}: {text}\n")


if __name__ == "__main__":
    from benchmarks.__main__ import show

    if "--development" in sys.argv:
        _development()
    else:
        show("cluster_convergence", results())
