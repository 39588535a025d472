"""scikit-learn: estimators that learn batch by batch (``partial_fit``); each batch is an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from .reporter import Reporter


class Incremental(Protocol):
    """An estimator with ``partial_fit``."""

    def partial_fit(self, X: Any, y: Any = None, **options: Any) -> Any:  # noqa: N803 - as scikit-learn calls it
        """Learn from one more batch: X [rows, columns], and y [rows] or None."""


E = TypeVar("E", bound=Incremental)


def partial_fit(
    estimator: E,
    batches: Iterable[tuple[Any, Any]],
    *,
    score: Callable[[E], Mapping[str, Any]] | None = None,
    reporter: Reporter | None = None,
    **options: Any,
) -> E:
    """Fit an estimator to all batches and return it; each batch is an iteration with its size as the feature ``batch``.

    Example: ``partial_fit(SGDClassifier(), batches, classes=[0, 1], score=lambda it: {"accuracy": it.score(X, y)})``.
    Errors of the estimator are passed on, errors of reporting are logged.

    Args:
        estimator: an estimator with ``partial_fit``; changed in place.
        batches: pairs of X, an array [rows, columns], and y, [rows] or None.
        score: returns metrics by name after each batch; None: none.
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        options: keyword arguments of every call of ``partial_fit``, such as ``classes``.
    """
    with reporter or Reporter() as report:
        for X, y in batches:  # noqa: N806 - as scikit-learn calls it
            report.begin(batches)
            report.describe({"batch": len(X)})
            estimator.partial_fit(X, y, **options)
            report.end(None if score is None or report.epoch is None else score(estimator))
    return estimator
