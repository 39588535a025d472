"""Savings of a run against other allocations in the same iterations, for kinds whose model converts between
allocations."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

Number = Annotated[float, Field(allow_inf_nan=False)]


class Estimate(BaseModel):
    """A value estimated by the domain model (seconds or currency), with an interval."""

    value: Number = Field(description="Expected value.", examples=[12.4])
    low: Number | None = Field(
        description="Lower bound of what the share `level` of the models that fit the samples equally well say; null: "
        "there is one model only.",
        examples=[8.1],
    )
    high: Number | None = Field(description="Upper bound.", examples=[16.2])


class Comparison(BaseModel):
    """The reported iterations, had they run at other allocations; without figures where the model extrapolates."""

    allocation: dict[str, float] | None = Field(
        description="The allocation that is held, by resource; null: what was recommended, which changes.",
        examples=[{"gpus": 8}],
    )
    unmeasured: str | None = Field(
        default=None,
        description="Why there are no figures: neither the model's samples nor the run reach this allocation. Null: "
        "they do.",
        examples=["not measured at 8 GPUs: samples and run have 1 to 4"],
    )
    seconds: Estimate | None = Field(description="Seconds they would have taken; null: `unmeasured`.")
    cost: Estimate | None = Field(description="What they would have cost: hours times prices; null: `unmeasured`.")
    saved: Estimate | None = Field(
        description="That cost minus the run's: below 0 where the run cost more; null: `unmeasured`."
    )
    meets_targets: Number | None = Field(
        description="Share of the models by which they would have met all targets; null without targets, and if "
        "`unmeasured`.",
        examples=[0.93],
    )


class Savings(BaseModel):
    """Seconds and cost (prices' currency) of a run's reported iterations, beside those of other allocations."""

    iterations: int = Field(description="Number of reported iterations that are compared.")
    seconds: Number = Field(description="Seconds that they took.")
    cost: Number = Field(description="What they cost: hours times the prices per unit when the run finished.")
    level: Number = Field(description="Share of the models within `low` to `high`.", examples=[0.9])
    largest: Comparison = Field(description="The largest allocation, held throughout.")
    best_fixed: Comparison = Field(
        description="The best allocation to hold, chosen with hindsight: the cheapest that is expected to meet all "
        "targets or, if none is, the fastest."
    )
    advised: Comparison | None = Field(
        default=None,
        description="Recommendations, applied throughout, of runs to which nothing was applied (mode `advise`): by the "
        "model and the policy when the run finished. Its `saved` is below 0 where they would have saved.",
    )
