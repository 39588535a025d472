"""Wrapper of an iterable for hand-written training loops, in PyTorch or any other library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from .reporter import Reporter

T = TypeVar("T")


class Reported(Generic[T]):
    """Iterable that reports each step of a loop, such as an epoch or a batch, as an iteration.

    ::

        for epoch in (steps := Reported(range(90), batch=128)):
            loss = train(model, loader)
            steps.log(loss=loss)

    A step left by ``break`` or an exception is not reported. Errors of the reporting are logged, not raised.

    Args:
        steps: the iterable that is wrapped.
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
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
        """Add metrics of this step: numbers, or tensors with one element; others are left out."""
        self.reporter.log(figures)
