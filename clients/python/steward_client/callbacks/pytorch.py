"""A loop of one's own, in PyTorch or anything else: wrap what it goes through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from .reporter import Reporter

T = TypeVar("T")


class Reported(Generic[T]):
    """Whatever a loop goes through, epochs or batches, each step of which is an iteration.

    ::

        for epoch in (steps := Reported(range(90), batch=128)):
            loss = train(model, loader)
            steps.log(loss=loss)

    Args:
        steps: what to go through.
        reporter: where to; None: where the environment says.
        features: features of every iteration, by name.
    """

    def __init__(self, steps: Iterable[T], reporter: Reporter | None = None, **features: float) -> None:
        self._steps = steps
        self.reporter = reporter or Reporter(features=features)

    def __iter__(self) -> Iterator[T]:
        with self.reporter as reporter:
            for step in self._steps:
                reporter.begin(self._steps)
                yield step
                reporter.end()

    def log(self, **figures: Any) -> None:
        """Metrics of this step: numbers, or tensors of one number."""
        self.reporter.log(figures)
