"""Repeating calls that may safely be repeated, with growing pauses."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from .errors import StewardError, Unreachable

SILENT_SECONDS = 5.0  # so long a call is repeated before that is said
PASSING = frozenset({408, 429})  # the service, or a proxy before it, asks to come again
SERVER_ERROR = 500  # and above: whoever answered is at fault, not what was asked
CONFLICT = 409  # final, but for one that says when to come again: the first request under its key is in flight


logger = logging.getLogger("steward_client")


@dataclass(frozen=True)
class Retry:
    """How a call is repeated; durations are in seconds.

    Pause k is drawn between half of and the whole of ``first_seconds`` · 2ᵏ, at most ``longest_seconds``, and never
    shorter than the service's ``Retry-After``. ``patience_seconds`` limits all attempts together, and each step of an
    attempt (connect, send, every read); ``attempts``, if given, limits their number.
    """

    patience_seconds: float = 300.0
    first_seconds: float = 0.1
    longest_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: random.Random = field(default_factory=random.Random)
    attempts: int | None = None

    def call(
        self,
        http: httpx.Client,
        method: str,
        path: str,
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: Callable[[], Iterator[bytes]] | None = None,
    ) -> httpx.Response:
        """Repeat a call until it gets a final answer. Only for calls that are safe to repeat.

        ``content`` yields the body, in pieces, anew for each attempt, if it is not ``json``.

        Raises:
            StewardError: the service refused it.
            Unreachable: no connection, or only 408, 429, 5xx, proxies' pages and requests in flight, in that time.
        """
        begun, attempt, told = self.clock(), 0, False
        ends = begun + self.patience_seconds
        while True:
            answer = self._once(http, method, path, json, headers, content, ends - self.clock())
            if isinstance(answer, httpx.Response) and not _passes(answer):
                if not answer.is_success:
                    raise StewardError.of(answer)
                return answer
            asked = _asked(answer) if isinstance(answer, httpx.Response) else 0.0
            pause, attempt = self.pause(attempt, asked), attempt + 1
            cause = StewardError.of(answer) if isinstance(answer, httpx.Response) else answer
            if attempt == self.attempts or self.clock() + pause > ends:
                message = f"{method} {path}: no answer in {self.patience_seconds:g} s: {cause}"
                raise Unreachable(message, asked) from cause
            if not told and self.clock() + pause > begun + SILENT_SECONDS:
                logger.warning("no answer of %s yet (%s); asked for %g s", http.base_url, cause, self.patience_seconds)
                told = True
            self.sleep(pause)

    def pause(self, attempt: int, asked: float = 0.0) -> float:
        """Seconds to wait after attempt ``attempt``, counting from 0, when the service asked for ``asked``."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt, 30))
        return max(longest * self.jitter.uniform(0.5, 1.0), asked)

    def _once(
        self,
        http: httpx.Client,
        method: str,
        path: str,
        json: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        content: Callable[[], Iterator[bytes]] | None,
        left: float,
    ) -> httpx.Response | httpx.RequestError:
        timeout = _bounded(http.timeout, max(left, self.first_seconds))
        try:
            body = None if content is None else content()
            return http.request(method, path, json=json, content=body, headers=headers, timeout=timeout)
        except httpx.RequestError as error:
            return error


def _bounded(timeout: httpx.Timeout, seconds: float) -> httpx.Timeout:
    """A client's own timeouts, none of them longer than so many seconds."""
    steps = timeout.as_dict()
    return httpx.Timeout(**{step: seconds if own is None else min(own, seconds) for step, own in steps.items()})


def _passes(answer: httpx.Response) -> bool:
    status, headers = answer.status_code, answer.headers
    if answer.is_success:
        return headers.get("content-type", "").startswith("text/html")  # a proxy's page: the service sends none here
    return status in PASSING or status >= SERVER_ERROR or (status == CONFLICT and "retry-after" in headers)


def _asked(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, whether it is a number or a time, by the clock of whoever answered."""
    asked = answer.headers.get("retry-after", "")
    if asked.isdecimal():
        return float(asked)
    try:
        until, now = (parsedate_to_datetime(text) for text in (asked, answer.headers.get("date", "")))
        return (until - now).total_seconds()
    except (ValueError, TypeError):
        return 0.0
