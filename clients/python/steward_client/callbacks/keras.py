"""Keras 3, over any of its backends: each epoch, or each batch, is an iteration."""

from __future__ import annotations

import math
from typing import Any, Literal

import keras

from .reporter import Reporter


class StewardCallback(keras.callbacks.Callback):  # type: ignore[misc] # Keras ships no types
    """Keras callback: ``model.fit(…, callbacks=[StewardCallback()])``.

    Args:
        every: what counts as an iteration.
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        features: features of every iteration, by name.
    """

    def __init__(
        self, every: Literal["epoch", "batch"] = "epoch", reporter: Reporter | None = None, **features: float
    ) -> None:
        super().__init__()
        self._every, self._epoch = every, 0
        self.reporter = reporter or Reporter(features=features)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """End the reporting of an earlier training, which may have failed; an error is logged, not raised."""
        self.reporter.close()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begin an iteration, if each epoch is one; an error is logged, not raised."""
        self._epoch = epoch
        if self._every == "epoch":
            self.reporter.begin(self._remaining(1))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """End and report the iteration, if each epoch is one; an error is logged, not raised."""
        if self._every == "epoch":
            self.reporter.end(logs)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Begin an iteration, if each batch is one; an error is logged, not raised."""
        if self._every == "batch":
            self.reporter.begin(self._remaining(self._batches()))

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """End and report the iteration, if each batch is one; an error is logged, not raised."""
        if self._every == "batch":
            self.reporter.end(logs)

    def _remaining(self, each: int) -> int:
        return max((self.params or {}).get("epochs", 0) - self._epoch, 0) * each

    def _batches(self) -> int:
        """Number of batch callbacks per epoch; 0 if unknown before its end."""
        steps = (self.params or {}).get("steps") or 0
        return math.ceil(steps / (getattr(self.model, "steps_per_execution", 1) or 1))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Send waiting reports at the training's end (10 s at most); an error is logged, not raised."""
        self.reporter.close()
