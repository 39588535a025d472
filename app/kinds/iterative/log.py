"""A logged run: what was allocated and measured, whoever decided it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout


class Log(NamedTuple):
    """One run of T iterations. R resources, M metrics, F features.

    Attributes:
        levels: allocation of each iteration, in steps, [T, R].
        metrics: as measured, [T, M].
        features: [T, F].
        targets: the run's own, [M]; not a number where a metric has none.
        chances: the probability with which each iteration's allocation was chosen, [T]; None where it is not known.
    """

    levels: NDArray[np.int16]
    metrics: NDArray[np.float64]
    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    chances: NDArray[np.float64] | None = None


def from_reports(layout: Layout, reports: Sequence[dict[str, Any]], targets: dict[str, float]) -> Log:
    """The log of a run's reports, in order; `targets` are the run's own, the layout's hold for the rest.

    Raises:
        InvalidInput: a report doesn't fit the layout.
    """
    encoded = [layout.encode_report(r["allocation"], r["metrics"], r["features"]) for r in reports]
    levels, metrics, features = zip(*encoded, strict=True)
    own = [targets.get(name, default) for name, default in zip(layout.metrics, layout.targets, strict=True)]
    return Log(
        np.array(levels, np.int16),
        np.array(metrics, np.float64),
        np.array(features, np.float64).reshape(len(reports), len(layout.features)),
        np.array(own, np.float64),
    )
