"""Common part of the callbacks: reports the iterations of a library's loop to a service or launcher."""

from __future__ import annotations

import atexit
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Self, TypeVar, cast

from steward_client.channel import Channel
from steward_client.epochs import Epoch, Loop
from steward_client.launched import channel_of_launcher
from steward_client.retry import Retry

PATIENCE_SECONDS = 10.0
LONGEST_NAME = 63
RANKS = ("RANK", "SLURM_PROCID")
logger = logging.getLogger("steward_client")

F = TypeVar("F", bound=Callable[..., None])


def log_errors(method: F) -> F:
    """Decorator of a reporter's method: an error is logged once and ends the reporting, not the training."""

    @wraps(method)
    def wrapped(reporter: Reporter, *values: Any) -> None:
        if reporter.given_up:
            return
        try:
            method(reporter, *values)
        except Exception:
            logger.exception("iterations are not reported any more")
            reporter.given_up, reporter.epoch = True, None

    return cast("F", wrapped)


class Reporter:
    """Reports iterations of a loop: ``begin`` and ``end`` for each, ``log`` in between. Its methods never raise.

    Of several processes of one training only the first reports (by ``RANK`` or ``SLURM_PROCID``).

    Args:
        channel: destination of reports; None: the launcher or run named in the environment, or nothing without one.
        features: features of every iteration, by name.

    Attributes:
        epoch: the iteration in progress; None if there is none or nothing is reported.
    """

    def __init__(self, channel: Channel | None = None, features: Mapping[str, float] | None = None) -> None:
        self._channel, self._features = channel, dict(features or {})
        self._loop: Loop | None = None
        self.given_up = False
        self.epoch: Epoch | None = None

    @property
    def allocation(self) -> dict[str, float]:
        """The decided allocation of this iteration: amounts by resource, in the spec's units; empty if none."""
        return {} if self.epoch is None else self.epoch.allocation

    @log_errors
    def begin(self, left: int | Iterable[Any] = 0) -> None:
        """Begin an iteration; one in progress is discarded.

        ``left``: number of remaining iterations including this one, or an iterable with that length; 0: unknown.
        """
        loop = self._loop = self._loop or self._start_loop(left)
        if loop is not None:
            self.epoch = loop.begin()
            self.epoch.describe(**self._features)

    def _start_loop(self, left: int | Iterable[Any]) -> Loop | None:
        if self._channel is None and all(os.environ.get(name) in (None, "", "0") for name in RANKS):
            self._channel = channel_of_launcher("log", Retry(patience_seconds=PATIENCE_SECONDS))
        if self._channel is None:
            return None
        self._channel.start()
        atexit.register(self.close)
        count = left if isinstance(left, int) else _length(left)
        return Loop(self._channel, self._channel.iteration + count if count > 0 else 0)

    @log_errors
    def describe(self, features: Mapping[str, Any]) -> None:
        """Add features of the iteration in progress; values that aren't finite numbers are left out."""
        if self.epoch is not None:
            self.epoch.describe(**_numbers(features))

    @log_errors
    def log(self, figures: Mapping[str, Any]) -> None:
        """Add metrics of the iteration in progress, ``Train/Loss`` as ``train_loss``; only finite numbers are kept."""
        if self.epoch is not None:
            self.epoch.log(**_numbers(figures))

    @log_errors
    def end(self, figures: Mapping[str, Any] | None = None) -> None:
        """End and report the iteration in progress, with these metrics; no effect if there is none."""
        epoch, self.epoch = self.epoch, None
        if epoch is not None:
            epoch.log(**_numbers(figures or {}))
            epoch.end()

    @log_errors
    def close(self) -> None:
        """Send waiting reports, for at most about 10 s, and close the channel; a later iteration opens a new one."""
        channel, self._channel, self._loop = self._channel, None, None
        atexit.unregister(self.close)
        if channel is not None:
            try:
                channel.end()
            finally:
                channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def plain(name: str) -> str:
    """A name as the service accepts it, at most 63 characters: ``Train/Loss`` becomes ``train_loss``."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST_NAME] or "unnamed"


def _length(steps: Any) -> int:
    """Length of an iterable; 0 if unknown, as for streams."""
    try:
        return len(steps)
    except (TypeError, NotImplementedError):
        return 0


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    """The values that are finite numbers, by plain names."""
    result = ((plain(name), _number(value)) for name, value in figures.items())
    return {name: number for name, number in result if math.isfinite(number)}


def _number(value: Any) -> float:
    try:
        return float(value.detach() if hasattr(value, "detach") else value)  # of a tensor, what it is without its slope
    except (TypeError, ValueError, RuntimeError):  # a text, or a tensor of several numbers
        return math.nan
