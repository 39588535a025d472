"""Repeating calls that may safely be repeated, with growing pauses."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from .errors import StewardError, Unreachable

PASSING = frozenset({429, 502, 503, 504})  # the service, or a proxy before it, asks to come again
CONFLICT = 409  # final, but for one that says when to come again: the first request under its key is in flight


@dataclass(frozen=True)
class Retry:
    """How patiently a call is repeated; durations are seconds.

    A pause is drawn between half of and the whole of ``first_seconds`` · 2ᵏ, at most ``longest_seconds``, and is never
    shorter than the ``Retry-After`` that the service asked for. ``patience_seconds`` bounds all attempts together.
    """

    patience_seconds: float = 300.0
    first_seconds: float = 0.1
    longest_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: random.Random = field(default_factory=random.Random)

    def call(
        self,
        http: httpx.Client,
        method: str,
        path: str,
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Make the call until it is answered for good. Only for calls that are safe to repeat.

        Raises:
            StewardError: the service refused it.
            Unreachable: it found nobody, or only 429, 502, 503, 504 and requests in flight, until patience ended.
        """
        ends, attempt = self.clock() + self.patience_seconds, 0
        while True:
            answer = self._once(http, method, path, json, headers)
            if isinstance(answer, httpx.Response) and not _passes(answer):
                if answer.is_error:
                    raise StewardError.of(answer)
                return answer
            pause = self._pause(attempt, answer)
            if self.clock() + pause > ends:
                cause = StewardError.of(answer) if isinstance(answer, httpx.Response) else answer
                raise Unreachable(f"{method} {path}: no answer in {self.patience_seconds:g} s: {cause}") from cause
            self.sleep(pause)
            attempt += 1

    @staticmethod
    def _once(
        http: httpx.Client, method: str, path: str, json: Mapping[str, Any] | None, headers: Mapping[str, str] | None
    ) -> httpx.Response | httpx.TransportError:
        try:
            return http.request(method, path, json=json, headers=headers)
        except httpx.TransportError as error:
            return error

    def _pause(self, attempt: int, answer: httpx.Response | httpx.TransportError) -> float:
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt, 30))
        drawn = longest * self.jitter.uniform(0.5, 1.0)
        return max(drawn, _asked(answer)) if isinstance(answer, httpx.Response) else drawn


def _passes(answer: httpx.Response) -> bool:
    return answer.status_code in PASSING or (answer.status_code == CONFLICT and "retry-after" in answer.headers)


def _asked(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, whether it is a number or a time, by the clock of whoever answered."""
    asked = answer.headers.get("retry-after", "")
    if asked.isdigit():
        return float(asked)
    try:
        until, now = (parsedate_to_datetime(text) for text in (asked, answer.headers.get("date", "")))
        return (until - now).total_seconds()
    except (ValueError, TypeError):
        return 0.0
