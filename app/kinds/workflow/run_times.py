"""Prediction of run times: a regression on users' recent tasks, and fitted families."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.tensors import read_json
from app.kinds.workflow.trace import Seconds

LAST = 6  # number of each user's past tasks that are stored
DECAY = 0.8  # weight of a past task over that of the next newer one
SHRINKAGE = 0.3  # number of tasks as which the mean over all of a user's tasks counts in that over similar ones
PRIOR_VARIANCE = 0.1  # prior variance of each weight over the noise variance of the logarithm of a share
SHORTEST = 10.0  # seconds; as in a bounded slowdown
SHARE, LENGTH, SIZE, RAN = range(4)
INPUTS = 9

Numbers = Any
"""A number, or an array [N]; the code is the same for compiled scalars and arrays."""


class PastTask(NamedTuple):
    """A finished task: run time in seconds at speed 1, estimate in seconds (NaN: unknown), and number of processors."""

    seconds: float
    estimate: float
    processors: int


class Regression(NamedTuple):
    """Recursive least squares of the logarithm of the share of its estimate that a task takes, updated in place.

    Attributes:
        weight: weights of the inputs, [``INPUTS``].
        covariance: covariance of the weights, in units of the noise variance, [``INPUTS``, ``INPUTS``].
        history: last tasks of each of U users, newest first: natural logarithms of the share taken and of the estimate
            in seconds, processors (0: no task), and logarithm of the run time in seconds, [U + 1, ``LAST``, 4]; the
            last row, for unknown users, stays empty.
    """

    weight: Seconds
    covariance: Seconds
    history: Seconds


def blank(users: int) -> Regression:
    """Return the regression of ``users`` users before any task. It predicts the share of the user's last tasks, or the
    whole estimate without any."""
    weight = np.zeros(INPUTS)
    weight[2:5] = 0.5, 0.25, 0.25
    return Regression(weight, PRIOR_VARIANCE * np.eye(INPUTS), np.zeros((users + 1, LAST, 4)))


def describe(history: Seconds, user: Numbers, length: Numbers, size: Numbers) -> tuple[Numbers, ...]:
    """Return the inputs of the regression, ``INPUTS`` numbers or arrays [N] for N tasks.

    They are, with shares as logarithms of run time over estimate: whether the user has a past task, and whether not;
    weighted means of the shares of the user's past tasks, of those with the same estimate, and of those that also have
    the same number of processors; the last and the second last run time over this estimate, logarithms of at most 0;
    and the scaled logarithms of estimate and processors.

    Args:
        history: history of ``Regression``.
        user: index of the user; −1: unknown.
        length: natural logarithm of the estimate in seconds, at least of ``SHORTEST``.
        size: number of processors.
    """
    weight, known = 1.0, (history[user, 0, SIZE] > 0.0) * 1.0
    every, equal, both = 1e-9 + 0.0 * length, SHRINKAGE + 0.0 * length, SHRINKAGE + 0.0 * length
    of_all, of_equal, of_both = 0.0 * length, 0.0 * length, 0.0 * length
    for k in range(LAST):
        share, there = history[user, k, SHARE], weight * (history[user, k, SIZE] > 0.0)
        same = there * (np.abs(history[user, k, LENGTH] - length) < 1e-9)
        alike = same * (history[user, k, SIZE] == size)
        every, of_all = every + there, of_all + there * share
        equal, of_equal = equal + same, of_equal + same * share
        both, of_both = both + alike, of_both + alike * share
        weight *= DECAY
    mean = of_all / every
    mean_equal = (of_equal + SHRINKAGE * mean) / equal
    mean_both = (of_both + SHRINKAGE * mean_equal) / both
    last = known * np.minimum(history[user, 0, RAN] - length, 0.0)
    second = (history[user, 1, SIZE] > 0.0) * 1.0
    earlier = second * np.minimum(history[user, 1, RAN] - length, 0.0) + (1.0 - second) * last
    return (
        known,
        1.0 - known,
        mean,
        mean_equal,
        mean_both,
        last,
        earlier,
        (length - 8.0) / 3.0,
        np.log(1.0 * size) / 3.0,
    )


def learn(regression: Regression, inputs: Seconds, share: float) -> None:
    """Update ``regression`` in place by a finished task. ``inputs`` [``INPUTS``] describe it (``describe``); ``share``
    is the natural logarithm of run time over estimate."""
    weight, covariance = regression.weight, regression.covariance
    along = covariance @ inputs
    gain = along / (1.0 + inputs @ along)
    weight += gain * (share - inputs @ weight)
    for i in range(INPUTS):
        covariance[i] -= gain[i] * along


def remember(regression: Regression, user: int, length: float, size: int, ran: float) -> None:
    """Update ``regression`` in place by a finished task of a known user, and add the task to the user's history.

    Args:
        regression: updated in place.
        user: index of the user, at least 0.
        length: natural logarithm of the estimate in seconds, at least of ``SHORTEST``.
        size: number of processors.
        ran: natural logarithm of the task's run time in seconds, at least of ``SHORTEST``.
    """
    history, inputs = regression.history, np.zeros(INPUTS)
    result = describe(history, user, length, size)
    for i in range(INPUTS):
        inputs[i] = result[i]
    learn(regression, inputs, ran - length)
    for k in range(LAST - 1, 0, -1):
        history[user, k] = history[user, k - 1]
    history[user, 0, SHARE], history[user, 0, LENGTH] = ran - length, length
    history[user, 0, SIZE], history[user, 0, RAN] = size, ran


def shares(regression: Regression, user: NDArray[np.int64], length: Seconds, size: NDArray[np.int64]) -> Seconds:
    """Return the predicted natural logarithm of run time over estimate of each of N tasks, at most 0, [N]. ``user``:
    index, −1: unknown; ``length``: natural logarithm of the estimate in seconds; ``size``: processors; [N] each."""
    result = np.zeros(len(length))
    for weight, values in zip(regression.weight, describe(regression.history, user, length, size), strict=True):
        result += weight * values  # a product of matrices rounds equal columns differently, and ties would not be ties
    return np.minimum(result, 0.0)


def table(users: Sequence[Sequence[PastTask]]) -> Seconds:
    """Return ``Regression.history`` of U users, [U + 1, ``LAST``, 4], from their last tasks, newest last. Tasks without
    an estimate are left out."""
    table = np.zeros((len(users) + 1, LAST, 4))
    for row, tasks in zip(table, users, strict=False):
        estimated = [task for task in tasks if task.estimate > 0.0][::-1]
        for place, (seconds, estimate, processors) in zip(row, estimated, strict=False):
            ran, length = np.log(max(seconds, SHORTEST)), np.log(max(estimate, SHORTEST))
            place[:] = ran - length, length, processors, ran
    return table


# Domain model of kind ``workflow``: run times where users' estimates are unreliable.
#
# Families, from few to many parameters: *mean*, one run time for all; *estimate*, the user's request; *ratio*, the
# request times the user's usual share of it; *history*, the mean of the user's last two run times (Tsafrir, Etsion and
# Feitelson 2007). None exceeds the estimate, at which batch systems end a task.


Floats = NDArray[np.float64]
FAMILIES = ("mean", "estimate", "ratio", "history")
UNKNOWN_SECONDS = 3600.0  # assumed for a task before any data


@dataclass(frozen=True)
class Predictor:
    """Fitted predictor of run times; by default it returns the estimate.

    Attributes:
        family: one of ``FAMILIES``.
        mean: mean run time over all tasks, seconds at speed 1; NaN: unknown.
        ratio: run time over estimate, over all tasks.
        ratios: run time over estimate, by user.
    """

    family: str = "estimate"
    mean: float = float("nan")
    ratio: float = 1.0
    ratios: Mapping[str, float] = field(default_factory=dict)

    def expected(self, estimate: Floats, users: Sequence[str], history: Mapping[str, Sequence[PastTask]]) -> Floats:
        """Return the predicted seconds at speed 1 of each of N tasks, above 0 and at most its estimate, [N].

        Args:
            estimate: estimates in seconds, NaN: unknown, [N].
            users: names of the users; empty: unknown, [N].
            history: last tasks of each user, newest last.
        """
        last = {user: [task.seconds for task in tasks[-2:]] for user, tasks in history.items() if tasks}
        usual = {user: sum(seconds) / len(seconds) for user, seconds in last.items()}
        own = np.array([usual.get(user, np.nan) for user in users]) if usual else np.full(len(estimate), np.nan)
        seconds = {
            "mean": np.full(len(estimate), self.mean),
            "estimate": estimate,
            "ratio": (estimate * np.array([self.ratios.get(user, self.ratio) for user in users]))
            if self.family == "ratio"
            else estimate,
            "history": own,
        }[self.family]
        for fallback in (estimate, own, np.full(len(estimate), self.mean), np.full(len(estimate), UNKNOWN_SECONDS)):
            seconds = np.where(np.isnan(seconds), fallback, seconds)
        return np.fmax(np.fmin(seconds, estimate), 1e-3)

    def to_bytes(self) -> bytes:
        """Serialise the predictor as JSON."""
        mean = None if np.isnan(self.mean) else self.mean
        return json.dumps(
            {"family": self.family, "mean": mean, "ratio": self.ratio, "ratios": dict(self.ratios)}
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Deserialise bytes that ``to_bytes`` returned. Raises IncompatibleModel if ``data`` is no such predictor."""
        try:
            known = read_json(data)
            mean = float("nan") if known["mean"] is None else float(known["mean"])
            ratios = {user: float(ratio) for user, ratio in known["ratios"].items()}
            return cls(FAMILIES[FAMILIES.index(known["family"])], mean, float(known["ratio"]), ratios)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise IncompatibleModel(f"it can't be read: {type(error).__name__}: {error}") from error
