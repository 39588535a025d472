"""LightGBM: each boosting round is an iteration; its metrics are those of ``valid_sets``, as ``valid_0_l2``."""

from __future__ import annotations

from typing import Any

from lightgbm.callback import CallbackEnv

from .reporter import Reporter


class Before:
    """Begins an iteration before each round."""

    before_iteration, order = True, 25

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def __call__(self, env: CallbackEnv) -> None:
        """Begin an iteration; the rounds that are left are those of ``env``, this one included."""
        self._reporter.begin(env.end_iteration - env.iteration)


class After:
    """Ends it after each round: after the callbacks that print and record, before the one that stops early."""

    before_iteration, order = False, 25

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def __call__(self, env: CallbackEnv) -> None:
        """A round has ended; of cross validation the figures are means."""
        figures: dict[str, Any] = {f"{one[0]}_{one[1]}": one[2] for one in env.evaluation_result_list or []}
        self._reporter.end(figures)
        if env.iteration + 1 == env.end_iteration:
            self._reporter.close()


def steward_callbacks(reporter: Reporter | None = None, **features: float) -> tuple[Before, After]:
    """``lightgbm.train(…, callbacks=[*steward_callbacks()])``: LightGBM has one for each end of a round.

    Args:
        reporter: where to; None: where the environment says.
        features: features of every iteration, by name.
    """
    reporter = reporter or Reporter(features=features)
    return Before(reporter), After(reporter)
