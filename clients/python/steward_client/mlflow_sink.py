"""Decisions and outcomes in MLflow, as metrics and tags of the run that a training logs to. Needs the extra `mlflow`.

What is logged waits for a thread: an MLflow server that is slow or away delays no iteration, and fails none.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import Full, Queue
from typing import Any

from .iterative import Run

MOST_WAITING = 1_000
"""Most calls that wait for MLflow; later ones are left out."""
OPEN_SECONDS, CLOSE_SECONDS = 20.0, 10.0
"""Longest waits: for MLflow's run, and for the last calls."""
LONGEST = 5_000
"""Characters of a tag's value."""
STATUSES = {"finished": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
logger = logging.getLogger("steward_client")


class MlflowUnavailable(Exception):
    """Nothing can be logged to MLflow; the message says why."""


class MlflowSink:
    """Logs a run's decisions and outcome to one run of MLflow, at the step of their iteration.

    Metrics are ``steward/allocation/…``, ``steward/predicted/…`` and ``steward/chance/…`` (of the decision for an
    iteration), ``steward/measured/…`` (of its report), and at the end ``steward/cost`` and ``steward/saved/…``. Tags
    are ``steward.run``, ``.workload``, ``.decision.source``, ``.decision.policy``, ``.decision.reason``, ``.outcome``
    and ``.outcome_reason``.

    Attributes:
        run_id: id of MLflow's run.
        environment: variables by which ``mlflow.start_run()`` in another process continues that run.
        lost: number of calls that failed or were left out; the first failure is logged.

    Args:
        uri: MLflow's tracking URI; empty: that of ``MLFLOW_TRACKING_URI``.
        run_id: run to log to; None: that of ``MLFLOW_RUN_ID``, else a new one, in the experiment of
            ``MLFLOW_EXPERIMENT_NAME``, which is ended with the run.
        name: name of a new run.

    Raises:
        MlflowUnavailable: the extra isn't installed, no URI is given, or MLflow has no such run or doesn't respond
            within 20 s.
    """

    def __init__(self, uri: str = "", run_id: str | None = None, name: str | None = None) -> None:
        uri = uri or os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            raise MlflowUnavailable("no tracking URI is given, and MLFLOW_TRACKING_URI isn't set")
        wanted = run_id or os.environ.get("MLFLOW_RUN_ID") or None
        self._owned, self.lost = wanted is None, 0
        self._calls: Queue[Callable[[], object] | None] = Queue(MOST_WAITING)
        opened: Future[tuple[Any, str]] = Future()
        self._calls.put(lambda: _open(opened, uri, wanted, name))
        # A daemon: a server that hangs must not delay the end of the process
        self._thread = threading.Thread(target=self._work, name="steward-mlflow", daemon=True)
        self._thread.start()
        try:
            self._client, self.run_id = opened.result(OPEN_SECONDS)
        except TimeoutError as error:
            raise MlflowUnavailable(f"{uri} doesn't respond within {OPEN_SECONDS:g} s") from error
        except Exception as error:
            raise MlflowUnavailable(f"{uri}: {type(error).__name__}: {error}") from error
        self.environment = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_RUN_ID": self.run_id}

    def decided(self, run: Run) -> None:
        """Log the run's present decision; a failure is logged and counted in ``lost``."""
        decision = run.decision
        predicted = decision.predicted.additional_properties.items()
        chances = decision.chances.additional_properties if decision.chances else {}
        metrics = {f"allocation/{name}": value for name, value in run.allocation.items()}
        metrics |= {f"predicted/{name}": one.mean for name, one in predicted}
        metrics |= {f"chance/{name}": value for name, value in chances.items()}
        tags = {
            "run": run.id,
            "workload": run.workload,
            "decision.source": str(decision.source),
            "decision.policy": decision.policy,
            "decision.reason": decision.reason.text,
        }
        self._log(decision.iteration, metrics, tags)

    def reported(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Log the metrics, in their units, that were measured in an iteration; a failure is counted in ``lost``."""
        self._log(iteration, {f"measured/{name}": value for name, value in metrics.items()}, {})

    def ended(self, run: Run, state: str) -> None:
        """Log the run's outcome and savings; end MLflow's run if it is the sink's own and not ended by the training.

        ``state``: finished, failed or cancelled.
        """
        tags = {"outcome": run.outcome or "unknown", "outcome_reason": run.outcome_reason or ""}
        metrics, savings = dict[str, float](), run.savings or {}
        if savings:
            metrics["cost"] = savings["cost"]
            saved = {name: savings[name]["saved"] for name in ("largest", "best_fixed")}  # None: not measured
            metrics |= {f"saved/{name}": one["value"] for name, one in saved.items() if one is not None}
        self._log(run.iteration if run.id else 0, metrics, tags)
        if self._owned:
            self._add(lambda: _end(self._client, self.run_id, STATUSES[state]))

    def close(self) -> None:
        """Wait for pending calls to MLflow, for at most 10 s; later ones are lost, and their number is logged."""
        self._add(None)
        self._thread.join(CLOSE_SECONDS)
        left = self._calls.qsize() if self._thread.is_alive() else 0
        if self.lost + left:
            logger.warning("mlflow: %d calls were lost", self.lost + left)

    def _log(self, step: int, metrics: Mapping[str, float], tags: Mapping[str, str]) -> None:
        from mlflow.entities import Metric, RunTag

        now = int(time.time() * 1000)
        numbers = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        values = [Metric(f"steward/{name}", value, now, step) for name, value in numbers.items()]
        texts = [RunTag(f"steward.{name}", value[:LONGEST]) for name, value in tags.items()]
        self._add(lambda: self._client.log_batch(self.run_id, metrics=values, tags=texts))

    def _add(self, call: Callable[[], object] | None) -> None:
        try:
            self._calls.put_nowait(call)
        except Full:
            self.lost += 1

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception as error:  # noqa: BLE001 - whatever MLflow raises: the run goes on
                if not self.lost:
                    logger.warning("mlflow: %s: %s; the run goes on", type(error).__name__, error)
                self.lost += 1


def _open(opened: Future[tuple[Any, str]], uri: str, run_id: str | None, name: str | None) -> None:
    """Set the result ``opened`` to MLflow's client and the id of the run, which is made if ``run_id`` is None."""
    try:
        from mlflow import MlflowClient

        client = MlflowClient(uri)
        if run_id is None:
            experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME", "Default")
            known = client.get_experiment_by_name(experiment)
            where = client.create_experiment(experiment) if known is None else known.experiment_id
            run_id = client.create_run(where, run_name=name).info.run_id
        opened.set_result((client, client.get_run(run_id).info.run_id))
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        opened.set_exception(error)


def _end(client: Any, run_id: str, status: str) -> None:
    if client.get_run(run_id).info.status == "RUNNING":
        client.set_terminated(run_id, status)
