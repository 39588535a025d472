"""Hugging Face ``Trainer``: each epoch, or each step, is an iteration; its metrics are those that the trainer logs.

The trainer logs and evaluates after the end of a step or epoch, so an iteration lasts until the next one begins.
"""

from __future__ import annotations

from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from .reporter import Reporter


class StewardCallback(TrainerCallback):
    """Hugging Face callback: ``Trainer(callbacks=[StewardCallback()])``; only the process of rank 0 reports.

    Args:
        every: what counts as an iteration.
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        features: features of every iteration, by name.
    """

    def __init__(
        self, every: Literal["epoch", "step"] = "epoch", reporter: Reporter | None = None, **features: float
    ) -> None:
        self._every, self._over = every, False
        self.reporter = reporter or Reporter(features=features)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """End an earlier training's reporting, without its unfinished iteration; an error is logged, not raised."""
        self._over = False
        self.reporter.close()

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin an iteration, if each epoch is one; an error is logged, not raised."""
        self._begin("epoch", state)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Mark the iteration as finished, if each epoch is one; it is reported when the next one begins."""
        self._end("epoch", state)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin an iteration, if each step is one; an error is logged, not raised."""
        self._begin("step", state)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark the iteration as finished, if each step is one; it is reported when the next one begins."""
        self._end("step", state)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Add the trainer's logged numbers to the iteration in progress; others are left out."""
        self.reporter.log(kwargs.get("logs") or {})

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Report the last iteration, and send waiting reports (10 s at most); an error is logged, not raised."""
        self._report()
        self.reporter.close()

    def _begin(self, what: str, state: TrainerState) -> None:
        if what == self._every and state.is_world_process_zero:
            self._report()
            self.reporter.begin(self._remaining(state))

    def _remaining(self, state: TrainerState) -> int:
        if self._every == "step":
            return state.max_steps - state.global_step
        if state.num_train_epochs > state.max_steps:  # of a stream, which tells no length
            return 0
        return state.num_train_epochs - int(state.epoch or 0)

    def _end(self, what: str, state: TrainerState) -> None:
        if what == self._every and state.is_world_process_zero:
            self._over = True

    def _report(self) -> None:
        if self._over:
            self.reporter.end()
            self._over = False
