"""Lightning: each epoch, or each step, is an iteration; its metrics are what the module logs."""

from __future__ import annotations

from typing import Any, Literal

from lightning.pytorch import Callback, LightningModule, Trainer

from .reporter import Reporter


class StewardCallback(Callback):
    """Lightning callback: ``Trainer(callbacks=[StewardCallback()])``; only the process of rank 0 reports.

    Args:
        every: what counts as an iteration.
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        features: features of every iteration, by name.
    """

    def __init__(
        self, every: Literal["epoch", "step"] = "epoch", reporter: Reporter | None = None, **features: float
    ) -> None:
        self._every = every
        self.reporter = reporter or Reporter(features=features)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin an iteration, if each epoch is one; an error is logged, not raised."""
        self._begin("epoch", trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End and report the iteration, if each epoch is one; an error is logged, not raised."""
        self._end("epoch", trainer)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Begin an iteration, if each step is one; an error is logged, not raised."""
        self._begin("step", trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End and report the iteration, if each step is one; an error is logged, not raised."""
        self._end("step", trainer)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Send waiting reports at the training's end (10 s at most); an error is logged, not raised."""
        self.reporter.close()

    def _begin(self, what: str, trainer: Trainer) -> None:
        if what == self._every and trainer.is_global_zero:
            self.reporter.begin(self._remaining(trainer))

    def _remaining(self, trainer: Trainer) -> int:
        if self._every == "step":
            return trainer.max_steps - trainer.global_step
        return (trainer.max_epochs or 0) - trainer.current_epoch

    def _end(self, what: str, trainer: Trainer) -> None:
        if what == self._every and trainer.is_global_zero:
            self.reporter.end(trainer.callback_metrics)
