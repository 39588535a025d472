"""What is known of a workload when something is learned or judged for it: plain values, no session behind them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Chain, Member

Samples = Sequence[tuple[str, Any]]
"""Executions, oldest first: name, and what the kind's sample codec unpacks."""


class ExogenousSeries(NamedTuple):
    """A series from outside, of each time what was issued last.

    Attributes:
        time: seconds since 1970, UTC, ascending, [n].
        mean: what is expected then, [n].
        low: the lower bound, at most ``mean``, [n].
        high: the upper bound, at least ``mean``, [n].
    """

    time: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Drifts(NamedTuple):
    """What has drifted, and what of it had when executions were measured.

    Attributes:
        now: drifts up to now.
        then: drifts up to when each execution was measured, by its name; of others there had been none.
    """

    now: Chain = ()
    then: Mapping[str, Chain] = {}


STEADY = Drifts()


@dataclass(frozen=True, eq=False)
class Workload:
    """A workload as tasks read it.

    Attributes:
        spec: as its kind reads it.
        model: the domain model that is learned or judged under, as its kind stores it; empty where there is none.
        samples: empty where the model stands for them and nothing is held out.
        exogenous: series from outside, by name; read with the samples.
        drifts: what has become of what older samples say.
        members: what the workloads that its spec names tell of themselves, by name.
    """

    spec: Any
    model: bytes = b""
    samples: Samples = ()
    exogenous: Mapping[str, ExogenousSeries] = field(default_factory=dict)
    drifts: Drifts = STEADY
    members: Mapping[str, Member] = field(default_factory=dict)


class Conditions(NamedTuple):
    """Under which circumstances a simulator is made.

    Attributes:
        batch: environments in lock-step, B.
        seed: of everything that it draws.
        purpose: for learners, episodes begin anew as they end and rewards are of order 1; for an evaluation, a
            ``World``: plain returns, open to disturbances, all B episodes the one of the seed until it is reseeded.
        held_out: what episodes of L3 follow: the kind's own, as its problem made it of held-out samples.
        options: of the kind's own, plain values.
    """

    batch: int
    seed: int
    purpose: Literal["learning", "evaluation"] = "evaluation"
    held_out: Sequence[Any] = ()
    options: Mapping[str, Any] = {}


class LoggedRun(NamedTuple):
    """A run that ended: what it reported, in order, and what it was started with."""

    reports: Sequence[dict[str, Any]]
    start: Mapping[str, Any]


@dataclass(frozen=True)
class HoldOut:
    """What of the samples an evaluation keeps back.

    Attributes:
        executions: by name; None: a share of all.
        share: 0 to 1.
        unseen: names of those that nothing that is judged has learned from.
        of: what a share is kept back of: executions, or what else the kind can hold out.
    """

    executions: Sequence[str] | None = None
    share: float = 0.25
    unseen: Collection[str] = field(default_factory=frozenset)
    of: str = "executions"
