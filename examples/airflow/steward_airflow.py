"""An operator of Airflow whose task is an iterative job under Steward's decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator
from steward_client import Run

Iterate = Callable[[Mapping[str, float], int], Mapping[str, float]]


class StewardOperator(BaseOperator):
    """Runs a workload: each iteration with what was decided for it, until the run is complete.

    The run ends as the task does: only of one that is finished iterations become samples. A service
    that is away holds the task up for seconds at most: it goes on with the last decision.

    Args:
        workload: of Steward; templated.
        iterate: called with the allocation and the iteration's number; does the work, gives what was measured:
            ``{"iteration_seconds": 31.5}``.
        iterations: how many.
        url: of the service; templated.
        targets: other than the workload's, for this run.
        features: of all iterations.

    Returns:
        The run's id, for tasks that come after.
    """

    template_fields: Sequence[str] = ("workload", "url")

    def __init__(
        self,
        *,
        workload: str,
        iterate: Iterate,
        iterations: int,
        url: str = "http://127.0.0.1:8080",
        targets: Mapping[str, float] | None = None,
        features: Mapping[str, float] | None = None,
        **operator: Any,
    ) -> None:
        super().__init__(**operator)
        self.workload, self.url, self.iterate, self.iterations = workload, url, iterate, iterations
        self.targets, self.features = dict(targets or {}), dict(features or {})
        self._run: Run | None = None

    def execute(self, context: Any) -> str:  # noqa: ARG002
        """Start a run, iterate at each decision's allocation, report each iteration; return the run's id."""
        with Run(self.url, self.workload, targets=self.targets) as run:
            self._run = run
            for iteration in range(self.iterations):
                allocation = dict(run.allocation)
                metrics = self.iterate(allocation, iteration)
                run.report(iteration, allocation, metrics, self.features)
                self.log.info("iteration %d with %s: %s", iteration, allocation, run.decision.reason.text)
            return run.id

    def on_kill(self) -> None:
        """The task is ended from outside: so is its run."""
        if self._run is not None:
            self._run.fail()
