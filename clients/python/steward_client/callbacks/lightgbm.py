"""LightGBM: each boosting round is an iteration; its metrics are those of ``valid_sets``, as ``valid_0_l2``."""

from __future__ import annotations

from typing import Any

from lightgbm.callback import CallbackEnv

from .reporter import Reporter


class Before:
    """LightGBM callback before each boosting round; begins an iteration."""

    before_iteration, order = True, 25

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def __call__(self, env: CallbackEnv) -> None:
        """Begin an iteration; ``env`` has the number of remaining rounds, including this one; errors are logged."""
        self._reporter.begin(env.end_iteration - env.iteration)


class After:
    """LightGBM callback after each boosting round, before early stopping; ends and reports the iteration."""

    before_iteration, order = False, 25

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def __call__(self, env: CallbackEnv) -> None:
        """End and report the iteration with the round's metrics (in cross validation, means); errors are logged."""
        figures: dict[str, Any] = {f"{one[0]}_{one[1]}": one[2] for one in env.evaluation_result_list or []}
        self._reporter.end(figures)
        if env.iteration + 1 == env.end_iteration:
            self._reporter.close()


def steward_callbacks(reporter: Reporter | None = None, **features: float) -> tuple[Before, After]:
    """Callbacks for both ends of a round: ``lightgbm.train(…, callbacks=[*steward_callbacks()])``.

    Args:
        reporter: reports the iterations; None: to the launcher or run named in the environment, if any.
        features: features of every iteration, by name.
    """
    reporter = reporter or Reporter(features=features)
    return Before(reporter), After(reporter)
