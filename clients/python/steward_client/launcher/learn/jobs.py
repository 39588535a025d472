"""Fits and trainings of a workload by the service's workers, each followed to its end."""

from __future__ import annotations

from steward_client.launcher.iterations.mark import SECONDS
from steward_client.launcher.service import JobFailed, Json, Say, Service
from steward_client.launcher.wishes import duration_text, percent

BUDGET = 250_000
"""Environment steps of each seed's training, few enough to wait for."""
TENTHS = 10
GOING_ON = ("queued", "running")


class Jobs:
    """Jobs of one workload.

    Args:
        service: client of the service.
        path: API path of the workload.
        tell: called with messages on progress and results.
    """

    def __init__(self, service: Service, path: str, tell: Say) -> None:
        self._service, self._path, self._tell = service, path, tell

    def begin(self, what: str, body: Json) -> Json:
        """Queue a job (``what``: ``models`` or ``agents``) and return it; raises StewardError if the service refuses
        it, and Unreachable if it doesn't respond."""
        return self._service.call("POST", f"{self._path}/{what}", body)

    def unfinished_training(self) -> Json | None:
        """A queued or running training of the workload from an earlier launch; None if there is none."""
        workload = self._path.rpartition("/")[2]
        for state in GOING_ON:
            for job in self._service.call("GET", f"/jobs?workload={workload}&state={state}")["items"]:
                if job["type"] == "train" and job["not_before"] is None:
                    training: Json = job
                    return training
        return None

    def wait_for_fit(self, job: Json) -> int:
        """Wait for a fit and return the model's version. Raises JobFailed if the fit fails, is cancelled, or finds no
        worker; StewardError if the service refuses a call, Unreachable if it doesn't respond."""
        result = self._done("fit", job)
        report = self._service.call("GET", f"{self._path}/models/{result['model']}")["report"]
        seconds = report["metrics"][SECONDS]
        self._tell(
            f"model {result['model']}: {report['family']}, error {percent(seconds['mape'], 1)} "
            f"(baseline {percent(seconds['naive_mape'])}), from {report['executions']} samples"
        )
        return int(result["model"])

    def wait_for_training(self, job: Json) -> None:
        """Wait for a training's end. Raises JobFailed if the training fails, is cancelled, or finds no worker;
        StewardError if the service refuses a call, Unreachable if it doesn't respond."""
        result = self._done("train", job)
        report = self._service.call("GET", f"{self._path}/agents/{result['agent']}")["report"]
        whether = "promoted" if report["promoted"] else "not promoted"
        verdict = report["reason"].removeprefix(f"{whether}: ").partition(": ")[0]  # the figures stand on its page
        page = self._service.page(f"/ui{self._path}/agents/{result['agent']}")
        self._tell(f"agent {result['agent']} ({report['algorithm']}): {whether}: {verdict}; {page}")

    def _done(self, what: str, job: Json) -> Json:
        numbers = set[int]()

        def tell(entry: Json) -> None:
            tenth = int((entry.get("progress") or 0.0) * TENTHS)
            if tenth not in numbers and entry["state"] == "running":
                numbers.add(tenth)
                left = entry.get("eta_seconds")
                self._tell(
                    f"{what}: {tenth * 100 // TENTHS} %" + (f", about {duration_text(left)} left" if left else "")
                )

        try:
            return self._service.done(job, tell)
        except JobFailed as error:
            raise JobFailed(f"{what}: {error}") from error
