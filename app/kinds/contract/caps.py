"""Caps on cost and duration: what is left of them, when that is announced, and when a run is to stop.

A run has caps of its own; those of its workload and tenant hold for all of their runs in a month. Kinds whose decisions
state a ``Spending`` can be capped."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from app.charts.text import duration, money
from app.kinds.contract.inputs import LARGEST_NUMBER

Scope = Literal["run", "workload", "tenant"]
Amount = Annotated[float, Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
NEAR = 0.8
"""Share of a cap from which its use is announced."""
ROUNDING = 1e-9
"""Relative tolerance of caps for rounding errors of sums."""
CAP_OF = "cap of"
"""Words before a limit, in every text on a cap."""


class Caps(BaseModel):
    """Upper limits of cost (in the prices' currency) and duration (in seconds); null: none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cost: Amount | None = Field(default=None, description="Limit of the cost, in the currency of prices.")
    seconds: Amount | None = Field(default=None, description="Limit of the sum of the iterations' seconds.")

    @property
    def limits(self) -> dict[Literal["cost", "seconds"], float]:
        """The limits that are set, by name, in the prices' currency and in seconds."""
        limits: dict[Literal["cost", "seconds"], float] = {}
        if self.cost is not None:
            limits["cost"] = self.cost
        if self.seconds is not None:
            limits["seconds"] = self.seconds
        return limits


class Cap(msgspec.Struct, frozen=True):
    """One limit of a run.

    Attributes:
        scope: whose limit it is.
        of: what is limited.
        limit: the limit, in the prices' currency or seconds.
        others: what other runs have used of it, with what their present iterations are expected to use.
    """

    scope: Scope
    of: Literal["cost", "seconds"]
    limit: float
    others: float = 0.0

    @property
    def words(self) -> str:
        """The cap in words: “the workload's monthly cost cap of $100.00”."""
        monthly = "" if self.scope == "run" else "monthly "
        what = "cost" if self.of == "cost" else "duration"
        return f"the {self.scope}'s {monthly}{what} {CAP_OF} {self.amount(self.limit)}"

    def amount(self, value: float) -> str:
        """A value of the limited quantity (the prices' currency, or seconds) as text with its unit."""
        return money(value) if self.of == "cost" else duration(value)


class Spending(NamedTuple):
    """Cost (in the prices' currency) and seconds of a run.

    Attributes:
        cost, seconds: of the reported iterations.
        next_cost, next_seconds: expected of the next iteration; 0: unknown, or there is none.
        rest_cost, rest_seconds: expected of all remaining iterations; NaN: unknown.
    """

    cost: float
    seconds: float
    next_cost: float = 0.0
    next_seconds: float = 0.0
    rest_cost: float = float("nan")
    rest_seconds: float = float("nan")


class CapUse(BaseModel):
    """A limit of a run (currency or seconds): what is used and left of it, and whether it is near or reached."""

    scope: Scope = Field(description="Whose cap it is. Caps of workload and tenant are for all runs of a month (UTC).")
    of: Literal["cost", "seconds"]
    limit: float
    spent: float = Field(
        description="Used so far, by all runs that it covers; with what the present iterations of other runs are "
        "expected to use."
    )
    left: float = Field(description="`limit` minus `spent`, at least 0.")
    projected: float | None = Field(
        description="`spent` at the end of this run, if the decision is followed and other runs stop now; null: "
        "unknown."
    )
    state: Literal["within", "near", "reached"] = Field(
        description="`near`: at least 80 % is used, or this run is projected to pass it. `reached`: the next iteration "
        "would pass it, so the run is to stop."
    )


class CapVerdict(NamedTuple):
    """A run's use of its caps; a text is empty where it doesn't apply.

    Attributes:
        entries: a ``CapUse`` for each cap.
        stop: why the run is to stop.
        notice: caps that are nearly used, or projected to be passed.
        risk: text on those of ``notice`` that may stop the run.
    """

    entries: Sequence[dict[str, Any]]
    stop: str
    notice: str
    risk: str


def left(caps: Sequence[Cap], of: Literal["cost", "seconds"], spent: float) -> float:
    """What a run that has used ``spent`` may still use of its scarcest cap of ``of`` (currency or seconds), at least 0.

    Infinite without such a cap.
    """
    return max(min((cap.limit - cap.others for cap in caps if cap.of == of), default=inf) - spent, 0.0)


def judge(caps: Sequence[Cap], spending: Spending, *, over: bool = False) -> CapVerdict:
    """Judge a run's use of its caps; ``over``: its last iteration is reported, so that it can't stop any more."""
    entries, stop, notices, risks = list[dict[str, Any]](), list[str](), list[str](), list[str]()
    for cap in caps:
        own, ahead, rest = _of(cap, spending)
        spent, most = cap.others + own, cap.limit * (1 + ROUNDING)
        projected = None if isnan(rest) else spent + (0.0 if over else rest)
        state: Literal["within", "near", "reached"] = "within"
        if not over and (spent >= cap.limit or spent + ahead > most):
            state = "reached"
            beyond = "" if spent >= cap.limit else f", and the next iteration takes about {cap.amount(ahead)}"
            stop.append(f"{cap.amount(spent)} of {cap.words} is used{beyond}")
        elif not over and projected is not None and projected > most:
            state = "near"
            notices.append(
                f"projected to use {cap.amount(projected)} of {cap.words}, of which {cap.amount(spent)} is used"
            )
            risks.append(notices[-1])
        elif spent >= NEAR * cap.limit and not over:
            state = "near"
            notices.append(f"{cap.amount(spent)} of {cap.words} is used")
            if cap.scope != "run" or projected is None:  # other runs go on spending, or it may pass it
                risks.append(notices[-1])
        entries.append(
            {
                "scope": cap.scope,
                "of": cap.of,
                "limit": cap.limit,
                "spent": spent,
                "left": max(cap.limit - spent, 0.0),
                "projected": projected,
                "state": state,
            }
        )
    return CapVerdict(entries, "; ".join(stop), "; ".join(notices), "; ".join(risks))


def _of(cap: Cap, spending: Spending) -> tuple[float, float, float]:
    """Return what a run has used of what ``cap`` limits, expects to use next, and to its end, in the cap's unit."""
    if cap.of == "cost":
        return spending.cost, spending.next_cost, spending.rest_cost
    return spending.seconds, spending.next_seconds, spending.rest_seconds
