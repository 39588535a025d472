"""What live runs of all kinds have in common: they are started once, and ended, and every call is repeated."""

import os
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from .errors import StewardError, Unreachable
from .retry import Retry

if TYPE_CHECKING:
    from .generated import AuthenticatedClient, Client

Service: TypeAlias = "str | Client | AuthenticatedClient | None"
"""A service's address, or a generated client; None: the address is in ``STEWARD_URL``, else it is ``URL``."""

URL = "http://127.0.0.1:8080"
TIMEOUT_SECONDS = 30.0
PARTING_SECONDS = 5.0
CLIENT_ERROR = 400
LONGEST_REASON = 500


class Numbered(Protocol):
    """A decision that says which report is next."""

    iteration: int


D = TypeVar("D", bound=Numbered)


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
        state = self._call("GET", f"/runs/{run}")
        self.id, self.workload, self._decision = state["id"], state["workload"], self._decode(state["decision"])
        return self

    def start(self) -> Self:
        """Start the run, once; ``with`` does it."""
        if self._decision is None:
            started = self._call("POST", "/runs", self._request, {"Idempotency-Key": self._key})
            self.id, self._decision = started["id"], self._decode(started["decision"])
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
        try:
            self._decision = self._decode((retry or self._retry).call(self._http, "PUT", path, report).json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unreachable(f"PUT {path}: the answer is no decision: {error!r}") from error
        except StewardError as error:
            if error.status < CLIENT_ERROR:  # a redirection: a proxy's, for the service has none
                raise Unreachable(f"PUT {path}: {error}") from error
            raise
        return self._decision

    @property
    def ended(self) -> bool:
        """Whether the service has heard of the run's end."""
        return self._ended

    @property
    def service(self) -> str:
        """The service's address."""
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
        ended = self._call("PATCH", f"/runs/{self.id}", body)
        self.outcome, self.outcome_reason = ended.get("outcome"), ended.get("outcome_reason")
        self._ended = True

    def _call(
        self, method: str, path: str, json: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self._retry.call(self._http, method, path, json, headers).json()
        return answer


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
        return httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, headers=headers)
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
