"""Channel from a process to the launcher that started it, named by environment variables.

``STEWARD_ITERATIONS`` names a file for one JSON line per iteration, ``STEWARD_ALLOCATION`` a file with the last
decision. Otherwise ``STEWARD_RUN`` names a run of the service at ``STEWARD_URL``, and ``STEWARD_TOKEN`` is its key.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from .background import Background
from .channel import Channel, Numbers, Segments
from .errors import StewardError
from .iterative import Refusals, Run
from .reaction import Contingency
from .retry import Retry

ITERATIONS, ALLOCATION, RUN = "STEWARD_ITERATIONS", "STEWARD_ALLOCATION", "STEWARD_RUN"
LARGEST_LINE = 4_096
"""Bytes of a line that one write to a file or pipe keeps together."""

logger = logging.getLogger("steward_client")


class Launched:
    """Channel to this process's launcher through its files; errors of the files are logged, never raised.

    Args:
        iterations: file to which lines are appended.
        allocation: file with the last decision; None: there is none.
    """

    def __init__(self, iterations: Path, allocation: Path | None = None) -> None:
        self.id = os.environ.get(RUN, "")
        self._iterations, self._allocation = iterations, allocation
        self._next: int | None = None
        self._extent = dict[str, int]()

    def start(self) -> None:
        """Do nothing: the launcher's files need no connection."""

    def expect(self, count: int) -> None:
        """Add the number of iterations to each line, as the launcher may not know the workload yet."""
        self._extent = {"total": count}

    @property
    def iteration(self) -> int:
        """Number of the next line; first the launcher's number, else 0."""
        if self._next is None:
            answer = self._decision().get("iteration")
            self._next = answer if isinstance(answer, int) and answer >= 0 else 0
        return self._next

    @property
    def allocation(self) -> dict[str, float]:
        """The allocation in the launcher's file: amounts by resource, in the spec's units; empty without a readable
        file."""
        answer = self._decision().get("allocation")
        return dict(answer) if isinstance(answer, dict) else {}

    @property
    def refused(self) -> StewardError | None:
        """Always None: a launcher refuses nothing."""
        return None

    @property
    def outcome(self) -> None:
        """Always None: the launcher ends the run."""

    @property
    def contingencies(self) -> list[Contingency]:
        """Always empty: the launcher applies them."""
        return []

    def report(
        self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers, segments: Segments = ()
    ) -> Future[None]:
        """Append a line with metrics and features, without them if it exceeds 4,096 bytes; the future is done."""
        del allocation, segments
        line = {"iteration": iteration, **self._extent, "metrics": dict(metrics), "features": dict(features)}
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if len(data) > LARGEST_LINE:
            logger.warning("iteration %d: figures of %d bytes are left out: too long", iteration, len(data))
            data = json.dumps({"iteration": iteration, **self._extent}).encode() + b"\n"
        self._append(data)
        self._next = iteration + 1
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _append(self, data: bytes) -> None:
        try:
            file = os.open(self._iterations, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
            try:
                os.write(file, data)
            finally:
                os.close(file)
        except OSError as error:
            logger.warning("%s: an iteration is not reported: %s", self._iterations, error)

    def _decision(self) -> Mapping[str, Any]:
        try:
            body = json.loads(self._allocation.read_bytes()) if self._allocation else {}
        except (OSError, ValueError):
            return {}
        return body if isinstance(body, dict) else {}

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing: the launcher ends the run."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""


def channel_of_launcher(refusals: Refusals = "log", retry: Retry | None = None) -> Channel | None:
    """The channel that ``STEWARD_ITERATIONS`` or ``STEWARD_RUN`` names; None if neither does.

    ``refusals``: whether reports that the service refuses are logged or raised.

    Raises:
        StewardError: the service refuses the run.
        Unreachable: the service doesn't respond.
    """
    if iterations := os.environ.get(ITERATIONS):
        allocation = os.environ.get(ALLOCATION)
        return Launched(Path(iterations), Path(allocation) if allocation else None)
    if run := os.environ.get(RUN):
        return Background(Run.resume(None, run, retry=retry, refusals=refusals, unknown="omit"), owned=False)
    return None
