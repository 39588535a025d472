"""What a domain model expects of one iteration, for the kinds whose runs have such."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.database.tables import Workload
from app.domain_models.schemas import Interval, Prediction
from app.errors import FieldError, Invalid
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec


class Question(NamedTuple):
    """What a prediction is asked for."""

    allocation: dict[str, float]
    features: dict[str, float]
    iteration: int


def _of_iteration(workload: Workload, version: int, stored: bytes, question: Question) -> Prediction:
    layout = Layout(Spec.model_validate(workload.spec))
    _check_iteration(question.iteration, layout)
    levels, _, features = layout.encode_report(
        question.allocation, dict.fromkeys(layout.metrics, 1.0), question.features
    )
    table = ModelTable.from_bytes(stored)
    at = np.array(levels, np.int32)
    return Prediction(
        workload=workload.name,
        model=version,
        allocation=layout.allocation_dict(at),
        iteration=question.iteration,
        features=question.features,
        predicted=_predicted(table, layout, at, np.array(features), question.iteration),
        seen=_seen(table, layout, at, np.array(features)),
    )


def _check_iteration(iteration: int, layout: Layout) -> None:
    if not 0 <= iteration < layout.iterations:
        message = f"must be between 0 and {layout.iterations - 1}"
        raise Invalid(
            f"iteration {message}, not {iteration}", errors=[FieldError("/query/iteration", message, iteration)]
        )


def _predicted(
    table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64], iteration: int
) -> dict[str, Interval]:
    """Log-normal mean at a typical run effect, and the conformal interval of a new run, by metric."""
    cell = int(table.cell(features[None])[0])
    centre = table.log_mean[:, int(layout.index(levels)), cell, int(table.iteration_bin[iteration])].astype(float)
    mean = np.exp(centre + table.noise_sd**2 / 2)
    low, high = np.exp(centre + table.marginal_low), np.exp(centre + table.marginal_high)
    return {
        metric: Interval(mean=float(mean[i]), low=float(low[i]), high=float(high[i]), level=table.level)
        for i, metric in enumerate(layout.metrics)
    }


def _seen(table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64]) -> bool:
    allocation = layout.allocations[int(layout.index(levels))]
    within = (table.seen_low <= allocation) & (allocation <= table.seen_high)
    usual = (table.feature_low <= features) & (features <= table.feature_high)
    return bool(table.informed and within.all() and usual.all())


PREDICTIONS: dict[str, Callable[[Workload, int, bytes, Question], Prediction]] = {"iterative": _of_iteration}


def predicted(workload: Workload, version: int, stored: bytes, question: Question) -> Prediction:
    """What a version of a workload's model, as it is stored, answers.

    Raises:
        InvalidInput: unknown or missing names, values out of bounds or off the grid.
        Invalid: an iteration beyond the workload's, or a kind whose runs have none.
    """
    if workload.kind not in PREDICTIONS:
        message = f"workloads of kind {workload.kind} have no iterations to predict; what tasks take shows in decisions"
        raise Invalid(message, errors=[FieldError("/path/workload", message, workload.name)])
    return PREDICTIONS[workload.kind](workload, version, stored, question)
