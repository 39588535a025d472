"""The contract of decision engines: snapshots, pending reports, decisions, and evidence of drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log, log1p
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.caps import Cap, Caps, CapUse, Scope, Spending
from app.kinds.forecasting.answer import NextHour
from app.policies.artifact import Artifact

# Evidence of drift in a report: how far measurements are from the domain model's expectation.
#
# A kind defines streams, quantities that may drift separately, such as a user's load or a variant's seconds. For each
# it computes e-values, one per factor in ``FACTORS``: the likelihood ratio of the data if the quantity is that factor
# beyond the model's tolerance, against its being at the tolerance. Their expectation is at most 1 while the model
# holds; ``app.drift.detector`` accumulates them over time.


FACTORS = (1.2, 2.0, 1 / 1.2, 1 / 2.0)
"""Factors of drift beyond the tolerance that are tested: up, and down."""
_LOGS = tuple(log(factor) for factor in FACTORS)
_LITTLE_UP, _MUCH_UP, _LITTLE_DOWN, _MUCH_DOWN = _LOGS
LEAST_VARIATION = 1e-9


Chain = Sequence[Mapping[str, float]]
"""Successive drifts, oldest first; each maps names of streams to the ratio of measured over expected values."""


class Residual(NamedTuple):
    """Evidence of drift in one stream from one report.

    Attributes:
        stream: name, as shown to users.
        evidence: natural logarithms of the e-values, one per tested factor of drift (``FACTORS``).
        measured, expected: measured quantity, and its expectation under the domain model, both in the stream's unit or
            relative; the ratio of their sums over reports estimates the drift's factor.
    """

    stream: str
    evidence: tuple[float, float, float, float]
    measured: float
    expected: float


class Performance(NamedTuple):
    """Performance of the decisions before a report, to be compared with the agent's evaluation.

    Attributes:
        outcome: name of an outcome in agents' evaluation reports; higher is better.
        total: sum of the outcome, in the unit that the evaluation report states.
        number: number of summands, possibly 0; the ratio of the sums of both over many reports is the mean outcome.
    """

    outcome: str
    total: float
    number: float


class Residuals(NamedTuple):
    """Evidence of drift in one report.

    Attributes:
        streams: number of streams of the workload, also those without evidence in this report.
        by_stream: evidence by stream, where there is any.
        reached: performance of earlier decisions; None if the kind doesn't measure it.
    """

    streams: int
    by_stream: Sequence[Residual]
    reached: Performance | None = None


def count_residual(stream: str, count: float, expected: float, variation: float, tolerated: float) -> Residual:
    """Return evidence of drift from a number of events, which has a negative binomial distribution (near Poisson if
    ``variation`` is small).

    Args:
        stream: name of the stream.
        count: number of events.
        expected: mean number of events under the model, above 0.
        variation: squared coefficient of variation of the rate; at least ``LEAST_VARIATION`` is used.
        tolerated: factor by which the mean may be off either way, at least 1.
    """
    spread = max(variation, LEAST_VARIATION)

    def of(factor: float, logs: float) -> float:
        bound = expected * (tolerated if factor > 1 else 1 / tolerated)
        wider = log1p((factor - 1) * bound * spread / (1 + bound * spread))
        return count * (logs - wider) - wider / spread

    little_up, much_up, little_down, much_down = map(of, FACTORS, _LOGS)
    return Residual(stream, (little_up, much_up, little_down, much_down), count, expected)


def ratio_residual(stream: str, logs: float, number: int, spread: float, tolerated: float, ratio: float) -> Residual:
    """Return evidence of drift from ratios of measured over expected values with normal logarithms.

    Args:
        stream: name of the stream.
        logs: sum of the natural logarithms.
        number: number of measurements.
        spread: standard deviation of each logarithm, above 0.
        tolerated: natural logarithm of the factor by which all may be off together either way, at least 0.
        ratio: sum of the ratios; becomes ``Residual.measured``, and ``number`` becomes ``Residual.expected``.
    """
    precision, up, down, half = 1 / (spread * spread), logs - number * tolerated, logs + number * tolerated, number / 2
    evidence = (
        precision * _LITTLE_UP * (up - half * _LITTLE_UP),
        precision * _MUCH_UP * (up - half * _MUCH_UP),
        precision * _LITTLE_DOWN * (down - half * _LITTLE_DOWN),
        precision * _MUCH_DOWN * (down - half * _MUCH_DOWN),
    )
    return Residual(stream, evidence, ratio, float(number))


# A workload as a member of another: the kinds need not know each other.


class Member(NamedTuple):
    """A workload whose runs are jobs of another workload and use a countable resource of it.

    Attributes:
        amounts: amounts of the resource that a run can use, whole numbers above 0, ascending, [A].
        seconds: median seconds per iteration on each amount; NaN without a domain model, [A].
        spread: standard deviation of the natural logarithm of a run's actual over expected duration.
        iterations: number of iterations of a run.
        run_seconds: target for a whole run, seconds; infinite: none.
        iteration_seconds: target for each iteration, seconds; infinite: none.
        weight: weight of these targets, as in the member's spec.
    """

    amounts: NDArray[np.int64]
    seconds: NDArray[np.float64]
    spread: float
    iterations: int
    run_seconds: float
    iteration_seconds: float
    weight: float

    @property
    def seconds_known(self) -> bool:
        """Whether the seconds per iteration are known (not NaN) on every amount."""
        return bool(np.isfinite(self.seconds).all())


# Snapshots of workloads, pending reports and their answers; ``app.kinds.engine`` decides.


Query = Mapping[str, list[str]]
DEFAULT_ROLE = "default"
"""Role used when none is named; the only role of workloads with one policy."""


class RolePolicy(NamedTuple):
    """Champion (promoted agent) of one role, by its version.

    ``artifact`` is None if the agent can't be used, and ``problem`` then states why; otherwise ``problem`` is empty."""

    version: int
    artifact: Artifact | None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A workload at one revision. Spec, layout and model have the kind's own types.

    Attributes:
        workload_id, name, spec_version, revision: identity of the workload and of this state of it.
        spec, layout: configuration, and quantities derived from it.
        model, model_version: domain model that the champion was trained on, else the latest; None before the first.
        agent_version: version of the champion in the default role; None: a heuristic decides.
        artifact: the champion's policy; None without a champion, or if it can't be used.
        problem: reason why the champion or the model can't be used; empty: none.
        policies: champions by role.
        shadow: agent consulted in all runs without a shadow of their own.
        prior: data of similar workloads, from which its first decisions are predicted without a domain model
            (``app.kinds.contract.kind.Prior``); None: there are none, and the kind assumes an average workload.
        coming: forecast counts for the next hour by name of series; only series with recent counts.
        members: member workloads by name.
        caps: caps of workload and tenant, for all their runs of a month; only those that are set.
        rule: name of the rule that decides in place of agents and the default rule; empty: none.
        stored_bytes: bytes read from storage for the snapshot: spec, domain model and agents.
        compiled: cache of the compiled workload by name of the deciding rule; empty name: agents and default rule.
    """

    workload_id: str
    name: str
    spec_version: int
    spec: Any
    layout: Any
    model: Any
    model_version: int | None
    agent_version: int | None
    artifact: Artifact | None
    revision: int
    problem: str = ""
    policies: Mapping[str, RolePolicy] = field(default_factory=dict)
    shadow: Shadow | None = None
    prior: Mapping[str, Any] | None = None
    coming: Mapping[str, NextHour] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    caps: Mapping[Scope, Caps] = field(default_factory=dict)
    rule: str = ""
    stored_bytes: int = 0
    compiled: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def similar(self) -> str:
        """Text on the data that first decisions are predicted from, such as "from 3 similar workloads"; "": none."""
        count = len(self.prior["workloads"]) if self.prior else 0
        return f"from {count} similar workload{'s' if count > 1 else ''}" if count else ""

    @property
    def answering(self) -> int | None:
        """Newest version among the champions of all roles; None if heuristics decide in all of them."""
        return max((one.version for one in self.policies.values()), default=self.agent_version)


@dataclass(frozen=True, eq=False)
class Shadow:
    """Agent consulted without effect on decisions, by its version.

    ``artifact`` is None if the agent can't be used, and ``problem`` then states why; otherwise ``problem`` is empty."""

    version: int
    artifact: Artifact | None
    problem: str = ""


class Pending(msgspec.Struct, frozen=True):
    """A report that waits for its decision. Structs are used here as a NamedTuple takes three times as long to create.

    Attributes:
        run: identifier; None for a state given in a query, without a report.
        iteration: reported iteration, counted from 0.
        state: the engine's ``RunMemory`` of the run before the report.
        report: the report as returned by the engine's ``read``.
        start: parameters that the run was started with.
        shadow: agent consulted without effect; None: none.
        caps: limits of the run, its own and those it shares.
    """

    run: str | None
    iteration: int
    state: Any
    report: Any
    start: Mapping[str, Any]
    shadow: Shadow | None
    caps: Sequence[Cap] = ()


class EncodedDecision(msgspec.Struct, frozen=True):
    """An encoded decision, with the run's state after the report and the report's evidence of drift.

    Attributes:
        decision: the decision as JSON in UTF-8.
        state: the engine's ``RunMemory`` of the run after the report.
        residuals: evidence of drift; None if the kind watches no streams, or without a domain model.
        risk: reason why the run may miss a target; empty: on track, or no target; None: unknown, the last value stays.
        expected_seconds: in a first decision, predicted seconds of the first iteration; None: unknown.
        quiet: whether no report is due until an event happens, however long that takes.
        spending: what the run has cost, and is expected to; None: its kind doesn't tell.
        stop: why the run is to stop; empty: it isn't.
        requested: state that a requested allocation has reached by the report: ``requested`` (it is awaited),
            ``granted`` later, ``refused`` or ``timed_out``; empty: none has.
    """

    decision: bytes
    state: Any
    residuals: Residuals | None = None
    risk: str | None = ""
    expected_seconds: float | None = None
    quiet: bool = False
    spending: Spending | None = None
    stop: str = ""
    requested: str = ""


# Fields common to the decisions of all kinds; a kind's own model adds the allocation and the discriminator ``kind``.


Source = Literal["agent", "heuristic", "guard", "fallback"]


class Reason(BaseModel):
    """Reason as a stable code and as text."""

    code: str
    text: str


class DriftNotice(BaseModel):
    """A quantity that deviates from the domain model."""

    stream: str = Field(
        description="Name of the drifting quantity, as defined by the kind.", examples=["seconds.resnet18"]
    )
    direction: Literal["up", "down"]
    factor: float = Field(description="Measurements since it began over the domain model's expectation.")
    iteration: int = Field(description="Report that revealed it.")
    since: int = Field(description="Approximate iteration at which it began.")
    at: datetime
    statistic: float = Field(description="Statistic of the sequential test, which has reached the threshold.")
    threshold: float = Field(
        description="Divided by the number of streams: minimum mean number of reports between false alarms."
    )
    model: int | None = Field(description="Version of the domain model it deviates from.")
    text: str


Drifts = Annotated[
    list[DriftNotice] | None,
    Field(
        description="Drift detected by this report; returned once.",
        exclude_if=lambda result: result is None,
    ),
]


CapUses = Annotated[
    list[CapUse],
    Field(
        description="The run's caps, and what is left of them; absent without caps.",
        exclude_if=lambda result: not result,
    ),
]
Stop = Annotated[
    bool,
    Field(
        description="Whether the run is to stop, because a cap is reached: end its process, and the run as "
        "`cancelled`.",
        exclude_if=lambda result: not result,
    ),
]


class DecisionBase(BaseModel):
    """The fields that the service itself, the client and the dashboard rely on."""

    run: str | None = Field(description="The run; null if the state was given in full.")
    workload: str
    reported: int | None = Field(description="Last reported iteration; null before the first.")
    iteration: int = Field(description="Iteration that this decision is for.")
    noop: bool = Field(description="Whether nothing changes.")
    source: Source = Field(
        description="What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's "
        "step, or a fallback after a failure."
    )
    agent: int | None = Field(description="Version of the promoted agent, if any.")
    policy: str = Field(description="Name of the deciding policy.", examples=["dueling_double_dqn"])
    reason: Reason
    valid_for_iterations: int = Field(description="Number of iterations it is valid for; 0 once the run is complete.")
    decided_at: datetime
    caps: CapUses = []
    stop: Stop = False
    drift: Drifts = None


ADDED = ("caps", "stop", "granted", "drift")
"""Fields at the end of decisions that are written only if they say something; ``drift`` is the service's."""
