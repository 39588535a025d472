"""How long whoever reports is held up while the service is away: a bounded time, and seldom."""

import logging
from collections.abc import Callable
from dataclasses import replace

from .errors import Unreachable
from .retry import Retry

WAIT_SECONDS = 5.0
SHARE = 0.1

logger = logging.getLogger("steward_client")


class Outage:
    """Whether the service is away, and when it is asked again.

    The first call that isn't answered is repeated for ``wait_seconds``. From then on the service is asked once, with
    growing pauses, and no more than a tenth of the caller's time is spent on it.

    Args:
        retry: how patiently calls are repeated while the service is there, and how pauses grow.
        wait_seconds: how long the caller is held up at most, above 0.

    Raises:
        ValueError: ``wait_seconds`` isn't above 0.
    """

    def __init__(self, retry: Retry, wait_seconds: float = WAIT_SECONDS) -> None:
        if not wait_seconds > 0:
            raise ValueError(f"wait_seconds must be above 0, not {wait_seconds!r}")
        self._retry, self._wait = retry, wait_seconds
        self._failures, self._again = 0, float("-inf")

    def deliver(self, send: Callable[[Retry], bool]) -> None:
        """Send what there is, one after the other, until nothing is left, time is up, or the service is away.

        Args:
            send: sends the first of what is kept, with that patience; false where nothing is.

        Raises:
            StewardError: the service refused something.
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
        """Seconds until the service is to be asked again."""
        return max(0.0, self._again - self._retry.clock())

    def _patience(self, seconds: float) -> Retry:
        left = min(seconds, self._retry.patience_seconds)
        return replace(self._retry, patience_seconds=left, attempts=1 if self._failures else None)

    def failed(self, error: Unreachable, seconds: float) -> None:
        """Nobody answered, and the caller was held up for so long: don't ask again at once."""
        if not self._failures:
            logger.warning("%s; what is reported is kept, the last decision holds", error)
        self._pause(max(self._retry.pause(self._failures, error.asked), seconds * (1 / SHARE - 1)))

    def refused(self) -> None:
        """The service is there and does not take what it is sent: don't ask again at once."""
        self._pause(self._retry.pause(self._failures))

    def _pause(self, seconds: float) -> None:
        self._again = self._retry.clock() + seconds
        self._failures += 1

    def over(self) -> None:
        """Note that something was delivered."""
        if self._failures:
            logger.info("the service answers again")
        self._failures, self._again = 0, float("-inf")
