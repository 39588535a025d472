"""Bounds on the time that a reporting caller is blocked while the service is unreachable."""

import logging
from collections.abc import Callable
from dataclasses import replace

from .errors import Unreachable
from .retry import Retry

WAIT_SECONDS = 5.0
SHARE = 0.1

logger = logging.getLogger("steward_client")


class Outage:
    """Whether the service is unreachable, and when to try again.

    The first unanswered call is repeated for ``wait_seconds``. Afterwards each attempt is a single call, with growing
    pauses, and takes at most a tenth of the caller's time.

    Args:
        retry: how calls are repeated while the service responds, and how pauses grow.
        wait_seconds: longest time in seconds for which a caller is blocked, above 0.

    Raises:
        ValueError: ``wait_seconds`` isn't above 0.
    """

    def __init__(self, retry: Retry, wait_seconds: float = WAIT_SECONDS) -> None:
        if not wait_seconds > 0:
            raise ValueError(f"wait_seconds must be above 0, not {wait_seconds!r}")
        self._retry, self._wait = retry, wait_seconds
        self._failures, self._again = 0, float("-inf")

    def deliver(self, send: Callable[[Retry], bool]) -> None:
        """Send stored items one by one, until none is left, ``wait_seconds`` have passed, or the service is
        unreachable.

        Args:
            send: sends the first item with the given ``Retry``; False if there is none.

        Raises:
            StewardError: the service refused an item.
        """
        clock = self._retry.clock
        began = now = clock()
        while self._again <= now < began + self._wait:
            try:
                if not send(self._patience(began + self._wait - now)):
                    return
            except Unreachable as error:
                self.failed(error, clock() - began)
                return
            self.over()
            now = clock()

    @property
    def rest(self) -> float:
        """Seconds until the next attempt; 0 if it is due."""
        return max(0.0, self._again - self._retry.clock())

    def _patience(self, seconds: float) -> Retry:
        left = min(seconds, self._retry.patience_seconds)
        return replace(self._retry, patience_seconds=left, attempts=1 if self._failures else None)

    def failed(self, error: Unreachable, seconds: float) -> None:
        """Note that a caller was blocked for ``seconds`` without a response, and set the next attempt's time."""
        if not self._failures:
            logger.warning("%s; what is reported is kept, the last decision holds", error)
        self._pause(max(self._retry.pause(self._failures, error.retry_after), seconds * (1 / SHARE - 1)))

    def refused(self) -> None:
        """Note that the service refused an item, and set the next attempt's time."""
        self._pause(self._retry.pause(self._failures))

    def _pause(self, seconds: float) -> None:
        self._again = self._retry.clock() + seconds
        self._failures += 1

    def over(self) -> None:
        """Note that an item was delivered; the pauses begin anew."""
        if self._failures:
            logger.info("the service answers again")
        self._failures, self._again = 0, float("-inf")
