"""How well service times are predicted where nothing was measured: batch sizes, server classes and cores left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.estimators.base import LEVEL, Floats, Prediction
from workers.kinds.inference.estimation.measurements import Rows, cells
from workers.kinds.inference.estimation.service import ServiceTime

MOST_FOLDS = 8
WIDEST = 3.0
KINDS = ("batch", "server", "cores")


class HeldOut(NamedTuple):
    """Errors on rows that were held out.

    Attributes:
        factor: what half an interval must be multiplied by to hold 90 % of them; 1 where it does, or nothing could be
            held out.
        report: plain values.
    """

    factor: float
    report: dict[str, Any]


class _Fold(NamedTuple):
    """Rows that were held out together: relative error of each, that of a naive mean, distance in half intervals."""

    kind: str
    error: Floats
    naive: Floats
    distance: Floats


def held_out(rows: Rows, variants: int, servers: int, seed: int) -> HeldOut:
    """Leave out one batch size, server class or number of cores after the other, of each at most ``MOST_FOLDS``."""
    tests: dict[bytes, tuple[str, NDArray[np.bool_]]] = {}  # classes that differ in cores are held out once
    for kind in KINDS:
        for test in _tests(getattr(rows, kind), np.random.default_rng([seed, KINDS.index(kind)])):
            if set(rows.variant[test]) <= set(rows.variant[~test]):
                tests.setdefault(test.tobytes(), (kind, test))
    folds = [_judged(kind, rows, test, variants, servers, seed) for kind, test in tests.values()]
    if not folds:
        return HeldOut(1.0, {"mape": None, "naive_mape": None, "coverage": None, "held_out": 0, "left_out": {}})
    distances = [fold.distance for fold in folds]
    # each fold is judged with the factor that the others ask for
    within = [
        distance <= _factor(distances[:i] + distances[i + 1 :] or distances) for i, distance in enumerate(distances)
    ]
    told = {kind: _told([fold for fold in folds if fold.kind == kind]) for kind in KINDS}
    report = {
        **_told(folds),
        "coverage": float(np.concatenate(within).mean()),
        "held_out": sum(map(len, distances)),
        "left_out": {kind: values for kind, values in told.items() if values["mape"] is not None},
    }
    return HeldOut(_factor(distances), report)


def _factor(distances: list[Floats]) -> float:
    return float(np.clip(np.quantile(np.concatenate(distances), LEVEL), 1.0, WIDEST))


def _tests(values: NDArray[Any], rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Which rows each fold holds out."""
    each = np.unique(values)
    if len(each) < 2:
        return []
    chosen = each if len(each) <= MOST_FOLDS else np.sort(rng.choice(each, MOST_FOLDS, replace=False))
    return [values == value for value in chosen]


def _judged(kind: str, rows: Rows, test: NDArray[np.bool_], variants: int, servers: int, seed: int) -> _Fold:
    known, asked = rows.take(np.flatnonzero(~test)), rows.take(np.flatnonzero(test))
    alike = cells(asked)
    there = ServiceTime(variants, servers, seed).fit(known).predict(alike.points)
    told = Prediction(*(part[alike.of_row] for part in there))
    level = np.bincount(known.variant, np.log(known.seconds), variants) / np.maximum(
        np.bincount(known.variant, minlength=variants), 1
    )
    distance = np.abs(np.log(asked.seconds / told.mean)) / np.log(told.high / told.mean)
    naive = np.exp(level[asked.variant])
    return _Fold(kind, np.abs(told.mean / asked.seconds - 1), np.abs(naive / asked.seconds - 1), distance)


def _told(folds: list[_Fold]) -> dict[str, float | None]:
    if not folds:
        return {"mape": None, "naive_mape": None}
    return {
        "mape": float(np.concatenate([fold.error for fold in folds]).mean()),
        "naive_mape": float(np.concatenate([fold.naive for fold in folds]).mean()),
    }
