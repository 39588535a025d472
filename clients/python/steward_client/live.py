"""What live runs of all kinds have in common: they are started once, and ended, and every call is repeated."""

import os
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from .answers import Read, document
from .errors import StewardError, Unreachable
from .retry import Retry
from .trust import trusted

if TYPE_CHECKING:
    from .generated import AuthenticatedClient, Client

Service: TypeAlias = "str | Client | AuthenticatedClient | None"
"""A service's address, or a generated client; None: the address is in ``STEWARD_URL``, else it is ``URL``."""

URL = "http://127.0.0.1:8080"
TIMEOUT_SECONDS = 30.0
PARTING_SECONDS = 5.0
LONGEST_REASON = 500


class Numbered(Protocol):
    """A decision that says which report is next."""

    iteration: int


D = TypeVar("D", bound=Numbered)
T = TypeVar("T")


class Running(NamedTuple, Generic[D]):
    """A run as the service describes it."""

    id: str
    workload: str
    state: str
    decision: D


class Live(Generic[D]):
    """A live run, as a context manager: it starts the run, and finishes it.

    On an exception it fails the run, with the exception's type and text as the reason; on `KeyboardInterrupt`, or
    where a task of asyncio is cancelled, it cancels it.

    Attributes:
        client: as given.
        outcome: how the service judged the run (``met``, ``missed``, …), once it has ended; before that None.
        outcome_reason: why, in words.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        request: the body of ``POST /runs``.
        decode: reads a decision of the run's kind.
        retry: how patiently calls are repeated.
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
        self._key = uuid4().hex  # the same for every attempt: one run, whatever gets lost
        self.client, self._http = client, http_client(client)
        self._owned = client is None or isinstance(client, str)
        self._retry = retry or Retry()
        self._request, self._decode = request, decode

    def take_up(self, run: str) -> Self:
        """Go on with a run that was started before."""
        self._take_up(self._read_run(run))
        return self

    def _read_run(self, run: str) -> Running[D]:
        return self._call("GET", f"/runs/{run}", partial(self._running, run))

    def _take_up(self, found: Running[D]) -> None:
        self.id, self.workload, self._decision = found.id, found.workload, found.decision

    def _running(self, run: str, answer: httpx.Response) -> Running[D]:
        """A run as the service describes it; any, where none is named."""
        found = document(answer)
        told, workload = str(found["id"]), str(found["workload"])
        if not told or (run and (run != told or self.workload not in ("", workload))):
            raise ValueError(f"run {told!r} of {workload!r}, not {run!r} of {self.workload!r}")
        return Running(told, workload, found.get("state", "running"), self._decode(found["decision"]))

    def start(self) -> Self:
        """Start the run, once; ``with`` does it."""
        if self._decision is None:
            once = {"Idempotency-Key": self._key}
            self._take_up(self._call("POST", "/runs", partial(self._running, ""), self._request, once))
        return self

    @property
    def decision(self) -> D:
        """The last decision, with its reason."""
        if self._decision is None:
            raise RuntimeError("the run has not been started: use it in a with statement, or call start()")
        return self._decision

    @property
    def iteration(self) -> int:
        """The number of the next report."""
        return self.decision.iteration

    def _report(self, iteration: int, report: Mapping[str, Any], retry: Retry | None = None) -> D:
        path = f"/runs/{self.id}/iterations/{iteration}"
        read = partial(self._next, iteration)
        self._decision = (retry or self._retry).call(self._http, "PUT", path, read, report)
        return self._decision

    def _next(self, iteration: int, answer: httpx.Response) -> D:
        """The decision that answers a report of this run."""
        found = document(answer)
        decision = self._decode(found)
        if found.get("run", self.id) != self.id or decision.iteration != iteration + 1:
            raise ValueError(f"a decision of run {found.get('run')!r} for iteration {decision.iteration}")
        return decision

    @property
    def ended(self) -> bool:
        """Whether the service has heard of the run's end."""
        return self._ended

    @property
    def service(self) -> str:
        """The address of the service."""
        return str(self._http.base_url)

    def finish(self) -> None:
        """End the run; its iterations become samples of its workload."""
        self._end("finished")

    def fail(self, reason: str | None = None) -> None:
        """Send kept reports as far as possible, and end the run as failed.

        The reason is stored with the run's outcome, cut to ``LONGEST_REASON`` characters.
        """
        try:
            self.flush()
        finally:
            self._end("failed", reason)

    def cancel(self, reason: str | None = None) -> None:
        """Send kept reports as far as possible, and end the run as cancelled, with a reason as ``fail`` takes it."""
        try:
            self.flush()
        finally:
            self._end("cancelled", reason)

    def flush(self) -> None:
        """Send kept reports; a run that sends each at once has none."""

    def close(self) -> None:
        """Close the connection, where this run opened it."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None = None) -> None:
        """End the run, unless it has ended, and close the connection, as the end of ``with`` does."""
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
        """End the run while an exception is on its way: that one matters, so this one is brief and silent."""
        self._retry = replace(self._retry, patience_seconds=min(PARTING_SECONDS, self._retry.patience_seconds))
        with suppress(StewardError, Unreachable):
            if isinstance(error, (KeyboardInterrupt, CancelledError)):
                self.cancel(str(error) or f"interrupted ({type(error).__name__})")
            else:
                self.fail(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def _end(self, state: str, reason: str | None = None) -> None:
        body = {"state": state} if not reason else {"state": state, "reason": _storable(reason)}
        self.outcome, self.outcome_reason = self._call("PATCH", f"/runs/{self.id}", self._judged, body)
        self._ended = True

    def _judged(self, answer: httpx.Response) -> tuple[str | None, str | None]:
        found = document(answer)
        if found["id"] != self.id:
            raise ValueError(f"run {found['id']!r}, not {self.id!r}")
        return found.get("outcome"), found.get("outcome_reason")

    def _call(
        self,
        method: str,
        path: str,
        read: Read[T],
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        return self._retry.call(self._http, method, path, read, json, headers)


def _storable(reason: str) -> str:
    """A reason that the service takes: no longer than it may be, without characters that it refuses."""
    text = reason.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"


def http_client(client: Service) -> httpx.Client:
    """A client's own; for an address a new one, which is the caller's to close.

    The new one sends the key that the environment variable ``STEWARD_API_KEY`` holds, if it does: a key of the service,
    or the token of a single run; else that of ``STEWARD_TOKEN``, which a launcher sets for a process of its run.
    """
    if client is None or isinstance(client, str):
        key = (os.environ.get("STEWARD_API_KEY") or os.environ.get("STEWARD_TOKEN") or "").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = client or os.environ.get("STEWARD_URL", URL)
        return httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, headers=headers, verify=trusted())
    return client.get_httpx_client()


@contextmanager
def connected(client: Service) -> Iterator[httpx.Client]:
    """The same for a moment: what was opened for it is closed."""
    http = http_client(client)
    try:
        yield http
    finally:
        if client is None or isinstance(client, str):
            http.close()
