"""The contract of decision engines: states, reports, decisions and drift."""

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

from app.kinds.forecasting.answer import Coming
from app.policies.artifact import Artifact

# What a report says for and against a drift: how far what was measured is from what the domain model expects.
#
# A kind tells it by streams, each a quantity that may drift by itself: a user's load, a variant's seconds. Of every
# stream it gives e-values, one for each of ``FACTORS``: how much likelier what came is if the quantity is that factor
# beyond what the model tolerates, than at the bound of it. Their expectation is at most 1 as long as the model holds,
# by whatever it tolerates; what is made of them over time, ``app.drift.detector``, needs no more of a kind.


FACTORS = (1.2, 2.0, 1 / 1.2, 1 / 2.0)
"""By which quantities may have drifted beyond what is tolerated: up, and down."""
_LOGS = tuple(log(factor) for factor in FACTORS)
_LITTLE_UP, _MUCH_UP, _LITTLE_DOWN, _MUCH_DOWN = _LOGS
LEAST_VARIATION = 1e-9


Chain = Sequence[Mapping[str, float]]
"""Drifts, oldest first: of each the factors by stream, what is measured now over what was expected."""


class Residual(NamedTuple):
    """What a report says of one stream.

    Attributes:
        stream: its name, as users read it.
        evidence: natural logs of the e-values, in the order of ``FACTORS``.
        measured, expected: of which the drift's factor is the ratio, once both are summed over reports.
    """

    stream: str
    evidence: tuple[float, float, float, float]
    measured: float
    expected: float


class Reached(NamedTuple):
    """What a report says of how good the decisions before it were, as users count it.

    Attributes:
        outcome: name of what is counted, the more the better; of an outcome that agents' reports tell.
        total, number: the sum, and of how many, maybe none: their ratio over many reports is compared.
    """

    outcome: str
    total: float
    number: float


class Residuals(NamedTuple):
    """What a report says of streams.

    Attributes:
        streams: how many there are, be they spoken of here or not.
        found: of those that the report says something of.
        reached: None where the kind never says anything of that.
    """

    streams: int
    found: Sequence[Residual]
    reached: Reached | None = None


def counted(stream: str, count: float, expected: float, variation: float, tolerated: float) -> Residual:
    """Evidence of a count whose rate varies: negative binomial, Poisson where it does not.

    Args:
        expected: its mean under the model, above 0.
        variation: squared coefficient of variation of the rate.
        tolerated: factor by which the mean may be off, either way, at least 1.
    """
    spread = max(variation, LEAST_VARIATION)

    def of(factor: float, logs: float) -> float:
        bound = expected * (tolerated if factor > 1 else 1 / tolerated)
        wider = log1p((factor - 1) * bound * spread / (1 + bound * spread))
        return count * (logs - wider) - wider / spread

    little_up, much_up, little_down, much_down = map(of, FACTORS, _LOGS)
    return Residual(stream, (little_up, much_up, little_down, much_down), count, expected)


def measured(stream: str, logs: float, number: int, spread: float, tolerated: float, ratio: float) -> Residual:
    """Evidence of logarithms of what was measured over what was expected: normal.

    Args:
        logs: their sum.
        number: how many there are.
        spread: standard deviation of each, above 0.
        tolerated: natural log of the factor by which all may be off together, either way, at least 0.
        ratio: sum of what was measured over what was expected.
    """
    precision, up, down, half = 1 / (spread * spread), logs - number * tolerated, logs + number * tolerated, number / 2
    evidence = (
        precision * _LITTLE_UP * (up - half * _LITTLE_UP),
        precision * _MUCH_UP * (up - half * _MUCH_UP),
        precision * _LITTLE_DOWN * (down - half * _LITTLE_DOWN),
        precision * _MUCH_DOWN * (down - half * _MUCH_DOWN),
    )
    return Residual(stream, evidence, ratio, float(number))


# What a kind tells of a workload that is one of the jobs of another's: no kind need know any other.


class Member(NamedTuple):
    """A workload whose runs share something that is counted, with other jobs.

    Attributes:
        amounts: of what is shared that a run can have: whole numbers above 0, ascending, [A].
        seconds: median of one iteration on each; not a number where no domain model tells it, [A].
        spread: standard deviation of the log of what a run takes over that.
        iterations: of a run.
        run_seconds: what a run should take at most; infinite: it has no such target.
        iteration_seconds: what each iteration should take at most; infinite: there is no such target.
        weight: of these targets.
    """

    amounts: NDArray[np.int64]
    seconds: NDArray[np.float64]
    spread: float
    iterations: int
    run_seconds: float
    iteration_seconds: float
    weight: float

    @property
    def known(self) -> bool:
        """Whether a domain model tells how long it takes."""
        return bool(np.isfinite(self.seconds).all())


# A workload as it stands, a report that waits, and its answer; what decides is ``app.kinds.engine``.


Query = Mapping[str, list[str]]
DEFAULT_ROLE = "default"
"""What is meant where no role is named: all that a workload with one policy has."""


class RolePolicy(NamedTuple):
    """The champion of one role; `artifact` is None where it can't be used, and `problem` says why."""

    version: int
    artifact: Artifact | None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A workload as it stands at one revision. Spec, layout and model are its kind's own.

    Attributes:
        model: the domain model that the champion was trained on; without a champion the latest; None before the first.
        agent_version: version of the champion in the default role; None when a heuristic answers.
        artifact: the champion's policy and what it was made for; None without a champion, or when it can't be used.
        problem: why the champion or the model can't be used; empty when all is well.
        policies: the champions of all roles, by role.
        shadow: an agent that is consulted in all runs that have no shadow of their own.
        coming: what is expected to come in the next hour, by series, where it was counted lately; see ``next_hour``.
        members: what the workloads that its spec names tell of themselves, by name.
        rule: name of the rule that decides in place of agents and of the default rule; empty: none is named.
        stored_bytes: what was read for it: spec, domain model and agents.
        compiled: the same workload ready to decide, by the rule that decides; empty: agents and the default rule.
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
    coming: Mapping[str, Coming] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    rule: str = ""
    stored_bytes: int = 0
    compiled: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def answering(self) -> int | None:
        """Version of the champion, of several roles' the newest; None when heuristics answer in all of them."""
        return max((one.version for one in self.policies.values()), default=self.agent_version)


@dataclass(frozen=True, eq=False)
class Shadow:
    """An agent that is consulted too; `artifact` is None where it can't be used, and `problem` says why."""

    version: int
    artifact: Artifact | None
    problem: str = ""


class Pending(msgspec.Struct, frozen=True):
    """A report that waits for its decision. A structure, as are those below: a tuple with names takes thrice as long.

    Attributes:
        run: None for a state that a query gives in full; it has no report.
        state: of the run before it, as the engine has it.
        report: as the engine's ``read`` gave it.
        start: what the run was started with.
    """

    run: str | None
    iteration: int
    state: Any
    report: Any
    start: Mapping[str, Any]
    shadow: Shadow | None


class Answered(msgspec.Struct, frozen=True):
    """An encoded decision, the state of the run after the report that it answers, and what that says of a drift.

    Attributes:
        residuals: None where the kind watches nothing, or has no domain model to go by.
        risk: why the run is at risk of missing a target; empty while it is on track, or has no target; None where that
            can't be found out: what was said before goes on to hold.
        expected_seconds: of a first decision: seconds that the first iteration is predicted to take, if anything does.
        quiet: whether the next report need not come before something happens, however long that takes.
    """

    decision: bytes
    state: Any
    residuals: Residuals | None = None
    risk: str | None = ""
    expected_seconds: float | None = None
    quiet: bool = False


# What the decisions of all kinds say; a kind's own model adds what is allocated, and its discriminator ``kind``.


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
        exclude_if=lambda found: found is None,
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
    drift: Drifts = None


ADDED = ("drift",)
"""Fields of decisions that are the service's own: no engine gives them, and they stand at the end if at all."""
