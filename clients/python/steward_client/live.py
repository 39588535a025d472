"""Common part of live runs of all kinds: start, end, and repetition of calls."""

import os
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar
from uuid import uuid4

import httpx
from typing_extensions import override

from .answers import Read, document
from .display import URL, Service, Shown, Summary, address
from .errors import CapReached, StewardError, Unreachable
from .retry import Retry
from .trust import ssl_context

if TYPE_CHECKING:
    from .stored import Rows

__all__ = ["Live", "Running", "Service", "http_client", "open_http"]

TIMEOUT_SECONDS = 30.0
PARTING_SECONDS = 5.0
LONGEST_REASON, LONGEST_OUTPUT = 500, 16_384


class Numbered(Protocol):
    """A decision with the number of the next iteration."""

    iteration: int


D = TypeVar("D", bound=Numbered)
T = TypeVar("T")


class Running(NamedTuple, Generic[D]):
    """A run as described by the service: id, workload's name, state, and last decision."""

    id: str
    workload: str
    state: str
    decision: D


class Live(Shown, Generic[D]):
    """A live run as a context manager that starts and finishes it.

    An exception ends the run as failed, with the exception's type and text as the reason; `KeyboardInterrupt`, or the
    cancellation of an asyncio task, ends it as cancelled; `CapReached` as cancelled at a cap.

    Attributes:
        client: the argument ``client``.
        outcome: the service's judgement of the ended run (``met``, ``missed``, …); None before.
        outcome_reason: its reason, in words; None before.
        targets: targets of its own that the ended run had, by metric; None before.
        savings: what the finished run cost beside other allocations, as ``savings`` of the API's run; None before, and
            where the service can't tell.

    Args:
        client: the service's address, or a generated client (for example with a key).
        request: body of ``POST /runs``.
        decode: parses a decision of the run's kind; raises ValueError, KeyError or the like if it is none.
        retry: how calls are repeated; None: by the defaults of ``Retry``.
    """

    def __init__(
        self,
        client: Service,
        request: Mapping[str, Any],
        decode: Callable[[Mapping[str, Any]], D],
        retry: Retry | None,
    ) -> None:
        self.workload = str(request["workload"])
        self.id = ""
        self._decision: D | None = None
        self._ended = False
        self.outcome: str | None = None
        self.outcome_reason: str | None = None
        self.targets: dict[str, float] | None = None
        self.savings: dict[str, Any] | None = None
        self._key = uuid4().hex  # the same for every attempt: one run, whatever gets lost
        self.client, self._http = client, http_client(client)
        self._owned = client is None or isinstance(client, str)
        self._retry = retry or Retry()
        self._request, self._decode = request, decode

    def take_up(self, run: str) -> Self:
        """Continue a run started before; raises StewardError if there is none, Unreachable if nothing responds."""
        self._take_up(self._read_run(run))
        return self

    def _read_run(self, run: str) -> Running[D]:
        return self._call("GET", f"/runs/{run}", partial(self._running, run))

    def _take_up(self, result: Running[D]) -> None:
        self.id, self.workload, self._decision = result.id, result.workload, result.decision

    def _running(self, run: str, answer: httpx.Response) -> Running[D]:
        """Parse the service's description of ``run`` (empty: any); raises ValueError for another run or workload."""
        result = document(answer)
        text, workload = str(result["id"]), str(result["workload"])
        if not text or (run and (run != text or self.workload not in ("", workload))):
            raise ValueError(f"run {text!r} of {workload!r}, not {run!r} of {self.workload!r}")
        return Running(text, workload, result.get("state", "running"), self._decode(result["decision"]))

    def start(self) -> Self:
        """Start the run, once; ``with`` does so. Raises StewardError if it is refused, Unreachable if nothing
        responds."""
        if self._decision is None:
            once = {"Idempotency-Key": self._key}
            self._take_up(self._call("POST", "/runs", partial(self._running, ""), self._request, once))
        return self

    @property
    def decision(self) -> D:
        """The last decision, with its reason; raises RuntimeError before the start."""
        if self._decision is None:
            raise RuntimeError("the run has not been started: use it in a with statement, or call start()")
        return self._decision

    @property
    def iteration(self) -> int:
        """Number of the next report; raises RuntimeError before the start."""
        return self.decision.iteration

    def _report(self, iteration: int, report: Mapping[str, Any], retry: Retry | None = None) -> D:
        path = f"/runs/{self.id}/iterations/{iteration}"
        read = partial(self._next, iteration)
        self._decision = (retry or self._retry).call(self._http, "PUT", path, read, report)
        return self._decision

    def _next(self, iteration: int, answer: httpx.Response) -> D:
        """Parse the decision on the report of an iteration; raises ValueError if it belongs to another."""
        result = document(answer)
        decision = self._decode(result)
        if result.get("run", self.id) != self.id or decision.iteration != iteration + 1:
            raise ValueError(f"a decision of run {result.get('run')!r} for iteration {decision.iteration}")
        return decision

    def history(self) -> "Rows":
        """The reported iterations with their decisions, a row each, from the service; unsent reports are missing.

        ::

            run.history().to_pandas().plot(x="iteration", y="metric.iteration_seconds")

        Raises:
            RuntimeError: the run has not been started.
            StewardError, Unreachable: the service refused the call, or didn't respond in time.
        """
        from .stored import history

        if not self.id:
            raise RuntimeError("the run has not been started, so it has no history yet")
        return history(self.client, self.id, self._retry)

    @override
    def _summary(self) -> Summary:
        state = (self.outcome or "ended") if self._ended else "running" if self.id else "not started"
        members = {
            "workload": self.workload,
            "state": state,
            "iteration": None if self._decision is None else self.iteration,
        }
        url = address(self.client)
        return Summary(self.id, members, f"{url}/ui/runs/{self.id}" if self.id else url)

    @property
    def ended(self) -> bool:
        """Whether the service has confirmed the run's end."""
        return self._ended

    @property
    def service(self) -> str:
        """The address of the service."""
        return str(self._http.base_url)

    def finish(self) -> None:
        """End the run, whose iterations become samples of its workload. Raises StewardError if the service refuses (as
        if the run is gone), and Unreachable if it doesn't respond in time."""
        self._end("finished")

    def fail(self, reason: str | None = None, output: str | None = None) -> None:
        """Send stored reports and end the run as failed. Raises StewardError if the service refuses a report or the
        end, and Unreachable if it doesn't respond in time.

        The reason is stored with the run's outcome, truncated to 500 characters; ``output``, the last lines of the
        process's output, with the run, cut to its last 16,384 characters."""
        try:
            self.flush()
        finally:
            self._end("failed", reason, output)

    def cancel(self, reason: str | None = None, *, capped: bool = False) -> None:
        """Send stored reports and end the run as cancelled, with a reason. Raises StewardError if the service refuses a
        report or the end, and Unreachable if it doesn't respond in time.

        ``capped``: it was stopped at a cap, which becomes its outcome; decisions that say ``stop`` imply it."""
        try:
            self.flush()
        finally:
            self._end("cancelled", reason, capped=capped)

    def flush(self) -> None:
        """Send stored reports; by default there are none, as each is sent at once."""

    def close(self) -> None:
        """Close the connection, if this run opened it."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None = None) -> None:
        """End the run unless it has ended, as failed or cancelled with an ``error``, and close the connection.

        Raises:
            StewardError, Unreachable: without ``error``, the run can't be ended.
        """
        try:
            if self._ended:
                return
            if error is None or (isinstance(error, SystemExit) and not error.code):
                self.finish()
            else:
                self._give_up(error)
        finally:
            self.close()

    def _give_up(self, error: BaseException) -> None:
        """End the run because of an error, within about 5 s, and without raising StewardError or Unreachable."""
        self._retry = replace(self._retry, patience_seconds=min(PARTING_SECONDS, self._retry.patience_seconds))
        with suppress(StewardError, Unreachable):
            if isinstance(error, (KeyboardInterrupt, CancelledError)):
                reason = str(error) or f"interrupted ({type(error).__name__})"
                self.cancel(reason, capped=isinstance(error, CapReached))
            else:
                self.fail(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def _end(self, state: str, reason: str | None = None, output: str | None = None, *, capped: bool = False) -> None:
        body = {"state": state}
        if reason:
            text = _storable(reason)
            body["reason"] = text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"
        if output:
            body["output"] = _storable(output)[-LONGEST_OUTPUT:]
        if capped:
            body["outcome"] = "cap_reached"
        result = self._call("PATCH", f"/runs/{self.id}", self._judged, body)
        self.outcome, self.outcome_reason = result.get("outcome"), result.get("outcome_reason")
        self.savings, self.targets = result.get("savings"), (result.get("start") or {}).get("targets") or {}
        self._ended = True

    def _judged(self, answer: httpx.Response) -> dict[str, Any]:
        result = document(answer)
        if result["id"] != self.id:
            raise ValueError(f"run {result['id']!r}, not {self.id!r}")
        return result

    def _call(
        self,
        method: str,
        path: str,
        read: Read[T],
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        return self._retry.call(self._http, method, path, read, json, headers)


def _storable(text: str) -> str:
    """A text that the service accepts: without NUL and lone surrogates."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def http_client(client: Service) -> httpx.Client:
    """HTTP client of a generated client, or a new one for an address, which the caller closes.

    A new one sends the key in the environment variable ``STEWARD_API_KEY`` (a key of the service or a run's token),
    else that in ``STEWARD_TOKEN``, which a launcher sets for a process of its run.
    """
    if client is None or isinstance(client, str):
        key = (os.environ.get("STEWARD_API_KEY") or os.environ.get("STEWARD_TOKEN") or "").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = client or os.environ.get("STEWARD_URL") or URL
        return httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, headers=headers, verify=ssl_context())
    return client.get_httpx_client()


@contextmanager
def open_http(client: Service) -> Iterator[httpx.Client]:
    """Context manager: the HTTP client of ``http_client``; closed at the end if it is a new one."""
    http = http_client(client)
    try:
        yield http
    finally:
        if client is None or isinstance(client, str):
            http.close()
