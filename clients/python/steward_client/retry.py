"""Repeating calls that may safely be repeated, with growing pauses."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from .answers import UNREADABLE, Read, refusal
from .attempt import Call, attempt
from .display import shown_url
from .errors import StewardError, Unreachable

SILENT_SECONDS = 5.0  # so long a call is repeated before that is said
SHORTEST_ANSWER_SECONDS = 1.0  # that an answer may take as a whole, however little patience is left
PASSING = frozenset({408, 429})  # the service asks for a later repetition
SERVER_ERROR = 500  # and above: the responder is at fault, not the request
CONFLICT = 409  # final, but for one that says when to come again: the first request under its key is in flight

T = TypeVar("T")
logger = logging.getLogger("steward_client")


@dataclass(frozen=True)
class Retry:
    """Rules for repeating a call; all durations are in seconds.

    The pause after attempt k = 0, 1, … is random between half of and the whole of ``first_seconds`` · 2ᵏ, at most
    ``longest_seconds``, and at least the response's ``Retry-After``, which counts up to ``longest_asked_seconds``.
    ``patience_seconds`` limits all attempts together, and each step of an attempt (connect, send, every read).
    ``answer_seconds``, or the client's own read timeout if that is longer or None, limits an attempt as a whole, from
    the end of an uploaded body. ``attempts`` limits their number; None: unlimited.
    """

    patience_seconds: float = 300.0
    first_seconds: float = 0.1
    longest_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: random.Random = field(default_factory=random.Random)
    attempts: int | None = None
    answer_seconds: float = 30.0
    longest_asked_seconds: float = 30.0

    def call(
        self,
        http: httpx.Client,
        method: str,
        path: str,
        read: Read[T],
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: Callable[[], Iterator[bytes]] | None = None,
    ) -> T:
        """Repeat a call until the service gives a final response, and return it as parsed by ``read``. For idempotent
        calls.

        Args:
            http: HTTP client of the service.
            method, path, json, headers: the request.
            read: parses a success; raises ValueError, KeyError or the like if it isn't the service's own response.
            content: yields the body in pieces, anew for each attempt; None: ``json`` is the body.

        Raises:
            StewardError: the service refused the call.
            Unreachable: within ``patience_seconds`` there was no connection, or only responses 408, 429, 5xx, 409 with
                ``Retry-After``, or of other programs than the service (such as a proxy's page).
        """
        call = Call(method, path, json, headers, content)
        begun, number, warned = self.clock(), 0, False
        ends = begun + self.patience_seconds
        while True:
            answer = self._once(http, call, ends - self.clock())
            if isinstance(answer, httpx.Response):
                result, cause = _understood(answer, read)
                if cause is None:
                    return result  # type: ignore[return-value]  # read, then
                retry_after = min(_retry_after(answer), self.longest_asked_seconds)
            else:
                retry_after, cause = 0.0, answer
            pause, number = self.pause(number, retry_after), number + 1
            if number == self.attempts or self.clock() + pause > ends:
                where = shown_url(http.base_url)
                message = f"{method} {path}: no answer of {where} in {self.patience_seconds:g} s: {cause}"
                raise Unreachable(message, retry_after) from cause
            if not warned and self.clock() + pause > begun + SILENT_SECONDS:
                where = shown_url(http.base_url)
                logger.warning("no answer of %s yet (%s); asked for %g s", where, cause, self.patience_seconds)
                warned = True
            self.sleep(pause)

    def pause(self, attempt: int, retry_after: float = 0.0) -> float:
        """Seconds to wait after attempt ``attempt``, counting from 0; at least ``retry_after`` seconds."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt, 30))
        return max(longest * self.jitter.uniform(0.5, 1.0), retry_after)

    def _once(self, http: httpx.Client, call: Call, left: float) -> httpx.Response | httpx.HTTPError:
        left = max(left, self.first_seconds)
        own = http.timeout.read
        longest = self.patience_seconds if own is None else max(self.answer_seconds, own)
        whole = min(max(left, SHORTEST_ANSWER_SECONDS), longest)
        return attempt(http, call, left, whole)


def _understood(answer: httpx.Response, read: Read[T]) -> tuple[T | None, Exception | None]:
    """Result of a final response, as parsed by ``read``, and None; or None and the error after which to try again.

    Raises:
        StewardError: the service refused the call.
    """
    if answer.is_success:
        try:
            return read(answer), None
        except UNREADABLE as error:
            return None, ValueError(f"{answer.status_code}: not the service's answer: {error!r:.200}")
    refused = StewardError.of(answer)
    if refusal(answer) is None or _passes(answer):
        return None, refused
    raise refused


def _passes(answer: httpx.Response) -> bool:
    """Whether the response asks for a later repetition."""
    status = answer.status_code
    return status in PASSING or status >= SERVER_ERROR or (status == CONFLICT and "retry-after" in answer.headers)


def _retry_after(answer: httpx.Response) -> float:
    """Seconds in a response's `Retry-After`, given as a number or a time; 0 without one."""
    retry_after = answer.headers.get("retry-after", "")
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        until, now = (parsedate_to_datetime(text) for text in (retry_after, answer.headers.get("date", "")))
        return (until - now).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
