"""XGBoost: each boosting round is an iteration; its metrics are those of ``evals``, as ``train_logloss``."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback

from .reporter import Reporter


class StewardCallback(TrainingCallback):
    """XGBoost callback: ``xgboost.train(…, callbacks=[StewardCallback()])``.

    Args:
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        features: features of every iteration, by name.
    """

    def __init__(self, reporter: Reporter | None = None, **features: float) -> None:
        super().__init__()
        self.reporter = reporter or Reporter(features=features)

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Begin an iteration; return False, so that the training goes on; an error is logged, not raised."""
        self.reporter.begin()
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """End and report the iteration with its metrics; return False (go on); an error is logged, not raised."""
        self.reporter.end(
            {f"{data}_{metric}": _last(values) for data, of in evals_log.items() for metric, values in of.items()}
        )
        return False

    def after_training(self, model: Any) -> Any:
        """Send waiting reports (10 s at most; errors are logged), and return the model unchanged."""
        self.reporter.close()
        return model


def _last(values: Any) -> Any:
    """The last value of a metric; in cross validation, whose values are (mean, deviation), the mean."""
    last = values[-1]
    return last[0] if isinstance(last, tuple) else last
