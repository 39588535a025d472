"""Inputs of training and evaluation: a workload's spec, model and samples as plain
values, without a database session.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Chain, Member

Samples = Sequence[tuple[str, Any]]
"""Executions, oldest first: name, and the value decoded by the kind's sample codec."""


class ExogenousSeries(NamedTuple):
    """An exogenous forecast series: for each time the value issued last.

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
    """Drifts of a workload, now and at the time of each measurement.

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
        spec: decoded by its kind.
        model: the domain model to learn or evaluate with, serialised by its kind; empty without one.
        samples: empty where the model suffices and nothing is held out.
        exogenous: exogenous series by name, read together with the samples.
        drifts: to correct older samples for.
        members: descriptions of the workloads named in the spec, by name.
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
        seed: of all random numbers.
        purpose: ``learning``: episodes restart as they end, and rewards are of order 1; ``evaluation``: a ``World``
            with
            unscaled returns, open to disturbances, all B episodes equal until it is reseeded.
        held_out: models for the episodes of L3, as made by the kind's problem from held-out samples.
        options: of the kind, plain values.
    """

    batch: int
    seed: int
    purpose: Literal["learning", "evaluation"] = "evaluation"
    held_out: Sequence[Any] = ()
    options: Mapping[str, Any] = {}


class LoggedRun(NamedTuple):
    """A finished run: its reports in order, and its start request."""

    reports: Sequence[dict[str, Any]]
    start: Mapping[str, Any]


@dataclass(frozen=True)
class HoldOut:
    """Request for the samples that an evaluation holds out.

    Attributes:
        executions: names to hold out; None: a share of all.
        share: 0 to 1.
        unseen: names of the executions that no candidate has learned from.
        of: unit that is held out: executions, or another unit of the kind.
    """

    executions: Sequence[str] | None = None
    share: float = 0.25
    unseen: Collection[str] = field(default_factory=frozenset)
    of: str = "executions"
