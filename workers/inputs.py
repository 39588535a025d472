"""Inputs of training and evaluation: a workload's spec, model and samples as plain values, without a session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Chain, Member

Samples = Sequence[tuple[str, Any]]
"""Executions, oldest first, as pairs of name and value; the kind's sample codec has decoded the value."""


class ExogenousSeries(NamedTuple):
    """A series of n times of an exogenous quantity, each with the forecast that was issued last, in the series' unit.

    Attributes:
        time: seconds since 1970 (UTC), ascending, [n].
        mean: expected value, [n].
        low: lower bound, at most ``mean``, [n].
        high: upper bound, at least ``mean``, [n].
    """

    time: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Drifts(NamedTuple):
    """Drifts of a workload, oldest first: each a ratio of measured over expected value by name of the quantity.

    Attributes:
        now: drifts up to now.
        then: drifts up to the measurement of each execution, by its name; empty for executions not listed.
    """

    now: Chain = ()
    then: Mapping[str, Chain] = {}


STEADY = Drifts()


@dataclass(frozen=True, eq=False)
class Workload:
    """A workload as worker tasks use it.

    Attributes:
        spec: the workload's spec, decoded by its kind.
        model: the domain model to learn or evaluate with, serialised by its kind; empty without one.
        samples: executions, oldest first; empty where the model suffices and nothing is held out.
        exogenous: exogenous series by name, read together with the samples.
        drifts: drifts for which older samples are corrected.
        members: descriptions of the workloads that the spec names, by name.
    """

    spec: Any
    model: bytes = b""
    samples: Samples = ()
    exogenous: Mapping[str, ExogenousSeries] = field(default_factory=dict)
    drifts: Drifts = STEADY
    members: Mapping[str, Member] = field(default_factory=dict)


class Conditions(NamedTuple):
    """Settings with which to make a simulator.

    Attributes:
        batch: number B of environments in lock-step.
        seed: seed of all random numbers.
        purpose: ``learning``: episodes restart as they end, and rewards are of order 1; ``evaluation``: a ``World``
            with unscaled returns, open to disturbances, all B episodes equal until it is reseeded.
        held_out: models for the episodes of evaluation level L3, made by the kind's problem from held-out samples.
        options: plain values that the kind interprets, by name.
    """

    batch: int
    seed: int
    purpose: Literal["learning", "evaluation"] = "evaluation"
    held_out: Sequence[Any] = ()
    options: Mapping[str, Any] = {}


class LoggedRun(NamedTuple):
    """A finished run: the JSON values of its reports, in order, and of the request that started it."""

    reports: Sequence[dict[str, Any]]
    start: Mapping[str, Any]


@dataclass(frozen=True)
class HoldOut:
    """Request for the samples that an evaluation holds out.

    Attributes:
        executions: names of the executions to hold out; None: a share of all executions.
        share: share (0 to 1) of all executions to hold out if ``executions`` is None.
        unseen: names of the executions that no candidate has learned from.
        of: unit that is held out: executions, or another unit of the kind.
    """

    executions: Sequence[str] | None = None
    share: float = 0.25
    unseen: Collection[str] = field(default_factory=frozenset)
    of: str = "executions"
