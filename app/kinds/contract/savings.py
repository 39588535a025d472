"""What a run saved beside other courses of the same iterations, for kinds whose model converts between allocations."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Estimate(BaseModel):
    """A value by the domain model, with an interval of probability `level`."""

    value: float = Field(description="Expected value.", examples=[12.4])
    low: float | None = Field(description="Lower bound; null: the model has no interval.", examples=[8.1])
    high: float | None = Field(description="Upper bound.", examples=[16.2])


class Comparison(BaseModel):
    """The reported iterations, had they run at other allocations."""

    allocation: dict[str, float] | None = Field(
        description="The allocation that is held, by resource; null: what was recommended, which changes.",
        examples=[{"gpus": 8}],
    )
    seconds: Estimate = Field(description="Seconds they would have taken.")
    cost: Estimate = Field(description="What they would have cost: hours times prices.")
    saved: Estimate = Field(description="That cost minus the run's; below 0 where the run cost more.")
    meets_targets: float | None = Field(
        description="Probability that they would have met all targets; null without targets.", examples=[0.93]
    )


class Savings(BaseModel):
    """What a run's reported iterations took and cost, beside fixed allocations under the domain model."""

    iterations: int = Field(description="Number of reported iterations that are compared.")
    seconds: float = Field(description="Seconds that they took.")
    cost: float = Field(description="What they cost: hours times prices per unit.")
    level: float = Field(description="Probability of all intervals.", examples=[0.9])
    largest: Comparison = Field(description="The largest allocation, held throughout.")
    best_fixed: Comparison = Field(
        description="The best allocation to hold, chosen with hindsight: the cheapest that is expected to meet all "
        "targets or, if none is, the fastest."
    )
    advised: Comparison | None = Field(
        default=None,
        description="What was recommended, applied throughout: for runs to which nothing was applied (mode `advise`).",
    )
