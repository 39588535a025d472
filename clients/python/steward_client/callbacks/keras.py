"""Keras 3, over any of its backends: each epoch, or each batch, is an iteration."""

from __future__ import annotations

from typing import Any, Literal

import keras

from .reporter import Reporter


class StewardCallback(keras.callbacks.Callback):  # type: ignore[misc] # Keras ships no types
    """``model.fit(…, callbacks=[StewardCallback()])``.

    Args:
        every: what an iteration is.
        reporter: where to; None: where the environment says.
        features: features of every iteration, by name.
    """

    def __init__(
        self, every: Literal["epoch", "batch"] = "epoch", reporter: Reporter | None = None, **features: float
    ) -> None:
        super().__init__()
        self._every, self._epoch = every, 0
        self.reporter = reporter or Reporter(features=features)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """An epoch begins."""
        self._epoch = epoch
        if self._every == "epoch":
            self.reporter.begin(self.params["epochs"] - epoch)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """An epoch has ended."""
        if self._every == "epoch":
            self.reporter.end(logs)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """A batch begins."""
        if self._every == "batch":
            steps = self.params["steps"]  # None: unknown before the first epoch's end
            self.reporter.begin((self.params["epochs"] - self._epoch) * steps - batch if steps else 0)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """A batch has ended."""
        if self._every == "batch":
            self.reporter.end(logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """The training has ended."""
        self.reporter.close()
