"""Jobs of the service (fits, trainings, evaluations): queue one, and wait for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Self
from uuid import uuid4

from typing_extensions import override

from .answers import document
from .display import Shown, Summary, address, choose_service
from .errors import StewardError
from .live import Service, open_http
from .progress import Progress
from .retry import Retry

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
WAITING = ("queued", "running")


class JobFailed(StewardError):
    """A job failed or was cancelled.

    Attributes:
        job: the job.
    """

    def __init__(self, job: Job) -> None:
        state, problem = job.last["state"], job.last.get("error") or {}
        super().__init__(int(problem.get("status", 0)), {"title": f"job {job.id} {state}", "detail": state, **problem})
        self.job = job


class Job(Shown):
    """A job of the service; ``wait()`` or ``await`` returns its result.

    ::

        job = steward.train("resnet18", seed=3)
        print(job, job.wait(progress=True))

    Args:
        job: the job's id.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        retry: how calls are repeated while the service is unreachable.

    Attributes:
        last: the last response on the job: ``type``, ``state``, ``progress`` (0 to 1), ``eta_seconds``, ``result``,
            ``error``.
    """

    def __init__(
        self,
        job: str,
        client: Service = None,
        *,
        retry: Retry | None = None,
    ) -> None:
        self.id, self._client, self._retry = job, client, retry or Retry()
        self.last: dict[str, Any] = {}

    @classmethod
    def submit(
        cls,
        path: str,
        request: dict[str, Any],
        client: Service,
        retry: Retry | None,
    ) -> Self:
        """Queue a job by a POST of ``request`` to ``path``; repetitions queue it once.

        Raises:
            StewardError: the service refused it.
            Unreachable: the service didn't respond in time.
        """
        job = cls("", client, retry=retry)
        job.last = job._call("POST", path, request, {"Idempotency-Key": uuid4().hex})
        job.id = job.last["id"]
        return job

    def read(self) -> dict[str, Any]:
        """Read the job from the service and return it: ``state``, ``progress`` (0 to 1), ``result``, ``error``, …

        Raises:
            StewardError: there is no such job.
            Unreachable: the service didn't respond in time.
        """
        self.last = self._call("GET", f"/jobs/{self.id}")
        return self.last

    def cancel(self) -> None:
        """Cancel the job: at once if it waits, at its next chunk if it runs.

        Raises:
            StewardError: it has ended, or there is no such job.
            Unreachable: the service didn't respond in time.
        """
        self.last = self._call("POST", f"/jobs/{self.id}/cancel")

    def wait(self, *, progress: bool = False, timeout_seconds: float | None = None) -> dict[str, Any]:
        """Wait for the job's end and return its result, such as ``{"agent": 3}``.

        Args:
            progress: show progress on standard error: a bar on a terminal if ``rich`` is installed, else lines.
            timeout_seconds: longest wait; None: no limit.

        Raises:
            JobFailed: the job failed or was cancelled.
            TimeoutError: it hasn't ended in time.
            StewardError, Unreachable: there is no such job, or the service didn't respond in time.
        """
        ends = None if timeout_seconds is None else self._retry.clock() + timeout_seconds
        pause = FIRST_PAUSE
        with Progress(f"job {self.id}", shown=progress) as shown:
            while self.read()["state"] in WAITING:
                shown.update(self.last["state"], float(self.last["progress"]), self.last.get("eta_seconds"))
                if ends is not None and self._retry.clock() + pause > ends:
                    raise TimeoutError(f"job {self.id} goes on after {timeout_seconds:g} s: {self.last['state']}")
                self._retry.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            shown.update(self.last["state"], float(self.last["progress"]), None)
        if self.last["state"] != "succeeded":
            raise JobFailed(self)
        return dict(self.last.get("result") or {})

    @override
    def _summary(self) -> Summary:
        members = {name: self.last.get(name) for name in ("type", "workload", "state", "progress")}
        return Summary(self.id, members, f"{address(self._client)}/ui/jobs/{self.id}")

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        return asyncio.to_thread(self.wait).__await__()

    def _call(
        self, method: str, path: str, json: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        with open_http(self._client) as http:
            return self._retry.call(http, method, path, document, json, headers)


def fit(
    workload: str,
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
    **options: Any,
) -> Job:
    """Queue a fit of the workload's domain model; ``options`` are members of the request, as in the API. ``url`` is
    the service's address, instead of ``client``.

    Raises:
        StewardError: the service refused it.
        Unreachable: the service didn't respond in time.
    """
    return Job.submit(f"/workloads/{workload}/models", options, choose_service(client, url), retry)


def train(
    workload: str,
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
    **options: Any,
) -> Job:
    """Queue a training of a workload's agent; ``options`` are members of the request: ``algorithm``, ``seed``, ….
    Raises StewardError if the service refused it, Unreachable if it didn't respond in time."""
    return Job.submit(f"/workloads/{workload}/agents", options, choose_service(client, url), retry)


def evaluate(
    workload: str,
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
    **options: Any,
) -> Job:
    """Queue an evaluation of a workload's agents; ``options`` are members of the request: ``agents``, ``level``, ….
    Raises StewardError if the service refused it, Unreachable if it didn't respond in time."""
    return Job.submit("/evaluations", {"workload": workload, **options}, choose_service(client, url), retry)
