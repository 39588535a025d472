"""A live run: report an iteration, get the next allocation."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

from .errors import StewardError, Unreachable
from .generated import AuthenticatedClient, Client
from .generated.models import Decision, RunRead, RunStarted
from .retry import Retry

TIMEOUT_SECONDS = 30.0
PARTING_SECONDS = 5.0


class Run:
    """A live run of a workload, as a context manager: it starts the run, and finishes it, or fails it on an exception.

    ::

        with Run("http://127.0.0.1:8080", "resnet18") as run:
            allocation = run.allocation
            for iteration in range(90):
                seconds = train_one_epoch(**allocation)
                allocation = run.report(iteration, allocation, {"iteration_seconds": seconds})

    Reports are idempotent, so every call is repeated until it is answered or the patience of ``retry`` ends: a service
    that restarts costs time, never a report.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        workload: name of a registered workload.
        targets: targets of this run alone, by metric; the workload's hold for the rest.
        features: features of the first iteration, where they are known.
        retry: how patiently calls are repeated.
    """

    def __init__(
        self,
        client: str | Client | AuthenticatedClient,
        workload: str,
        *,
        targets: Mapping[str, float] | None = None,
        features: Mapping[str, float] | None = None,
        retry: Retry | None = None,
    ) -> None:
        self.workload = workload
        self.id = ""
        self._decision: Decision | None = None
        self._ended = False
        self._http = _http(client)
        self._owned = isinstance(client, str)
        self._retry = retry or Retry()
        self._request = {"workload": workload, "targets": dict(targets or {})}
        if features is not None:
            self._request["features"] = dict(features)

    @classmethod
    def resume(cls, client: str | Client | AuthenticatedClient, run: str, *, retry: Retry | None = None) -> Self:
        """A run that was started before, by this launcher or by one that ended; ``iteration`` is the next to report."""
        resumed = cls(client, "", retry=retry)
        state = RunRead.from_dict(resumed._call("GET", f"/runs/{run}"))
        resumed.id, resumed.workload, resumed._decision = state.id, state.workload, state.decision
        return resumed

    def start(self) -> Self:
        """Start the run, once; ``with`` does it."""
        if self._decision is None:
            headers = {"Idempotency-Key": uuid4().hex}  # the same for every attempt: one run, whatever gets lost
            started = RunStarted.from_dict(self._call("POST", "/runs", self._request, headers))
            self.id, self._decision = started.id, started.decision
        return self

    @property
    def decision(self) -> Decision:
        """The last decision, with its reason and what is predicted."""
        if self._decision is None:
            raise RuntimeError("the run has not been started: use it in a with statement, or call start()")
        return self._decision

    @property
    def allocation(self) -> dict[str, float]:
        """What the next iteration is to use, by resource."""
        return dict(self.decision.allocation.additional_properties)

    @property
    def iteration(self) -> int:
        """The iteration that is to be reported next."""
        return self.decision.iteration

    def report(
        self,
        iteration: int,
        allocation: Mapping[str, float],
        metrics: Mapping[str, float],
        features: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """Report what an iteration used and measured; the allocation for the next one.

        Raises:
            StewardError: the service refused it: an unknown name, a value out of bounds, another report under that
                number, a number left out.
            Unreachable: the service did not answer until patience ended; the same report may be tried again.
        """
        report = {"allocation": dict(allocation), "metrics": dict(metrics), "features": dict(features or {})}
        self._decision = Decision.from_dict(self._call("PUT", f"/runs/{self.id}/iterations/{iteration}", report))
        return self.allocation

    def finish(self) -> None:
        """End the run; its iterations become samples of its workload."""
        self._end("finished")

    def fail(self) -> None:
        """End the run as failed."""
        self._end("failed")

    def close(self) -> None:
        """Close the connection, where this run opened it."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._ended:
                return
            if error is None:
                self.finish()
            else:
                self._give_up()
        finally:
            self.close()

    def _give_up(self) -> None:
        """Fail the run while another exception is on its way: that one matters, so this one is brief and silent."""
        self._retry = replace(self._retry, patience_seconds=min(PARTING_SECONDS, self._retry.patience_seconds))
        with suppress(StewardError, Unreachable):
            self.fail()

    def _end(self, state: str) -> None:
        self._call("PATCH", f"/runs/{self.id}", {"state": state})
        self._ended = True

    def _call(
        self, method: str, path: str, json: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self._retry.call(self._http, method, path, json, headers).json()
        return answer


def _http(client: str | Client | AuthenticatedClient) -> httpx.Client:
    if isinstance(client, str):
        return httpx.Client(base_url=client, timeout=TIMEOUT_SECONDS)
    return client.get_httpx_client()
