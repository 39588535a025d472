"""Runs whose command reports to the service by itself, because it doesn't see the launcher's files."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx

from steward_client.answers import document
from steward_client.errors import ClientError

from .iterations.mark import Mark
from .service import Service

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 5.0


class Followed:
    """Marks from the run's number of reports, read from the service once per second.

    Attributes:
        ours: number of iterations that the launcher has reported; further ones are the command's own.
        active: whether the command reports by itself.
    """

    def __init__(self, service: Service, run: str) -> None:
        self._service, self._run = service, run
        self.ours, self.active = 0, False
        self._known, self._again = 0, 0.0

    def marks(self) -> Iterator[Mark]:
        """Yield the iterations that the command has reported since the last look; none if that is unknown."""
        now = time.monotonic()
        if now >= self._again:
            self._again = now + LOOK_SECONDS
            reported = self._reported_count()
            first, self._known = max(self._known, self.ours), max(self._known, reported)
            self.active = self.active or reported > first
            yield from (Mark(now, number) for number in range(first, reported))

    def move(self, run: str, ours: int) -> None:
        """Follow ``run``, which may be another than before, of which the launcher has reported ``ours`` iterations."""
        self._run, self.ours = run, ours

    def look(self) -> bool:
        """Wait 1 s, and return whether the command has reported by itself."""
        time.sleep(LOOK_SECONDS)
        self.active = self.active or self._reported_count() > self.ours
        return self.active

    def _reported_count(self) -> int:
        try:
            return self._service.once("GET", f"/runs/{self._run}", self._count, ANSWER_SECONDS)
        except ClientError:  # no response of the service: keep the last count
            return self._known

    def _count(self, answer: httpx.Response) -> int:
        result = document(answer)
        if result["id"] != self._run:
            raise ValueError(f"run {result['id']!r}, not {self._run!r}")
        return int(result["decision"]["iteration"])
