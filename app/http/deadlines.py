"""Ends exchanges whose time is over; they are looked through now and then, which costs less than a timer each."""

from __future__ import annotations

import asyncio
import time

from app.http.exchange import Exchange

LONGEST_PERIOD = 1.0


class Deadlines:
    """The open exchanges of one event loop.

    Args:
        shortest: the shortest time that any of them has, in seconds.
    """

    def __init__(self, shortest: float) -> None:
        self._period = min(LONGEST_PERIOD, shortest / 2)
        self._open: set[Exchange] = set()
        self._looking = False

    def watch(self, exchange: Exchange) -> None:
        """It is open from now on."""
        self._open.add(exchange)
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(self._period, self._look)

    def forget(self, exchange: Exchange) -> None:
        """It is answered."""
        self._open.discard(exchange)

    def _look(self) -> None:
        now = time.monotonic()
        for exchange in [exchange for exchange in self._open if exchange.is_overdue(now)]:
            self._open.discard(exchange)
            exchange.expire()
        self._looking = bool(self._open)
        if self._looking:
            asyncio.get_running_loop().call_later(self._period, self._look)
