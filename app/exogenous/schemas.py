"""What crosses the API about exogenous series."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.kinds.fields import Finite

MOST_ROWS_AT_ONCE = 2_000
"""They are checked on the event loop, in some 15 ms."""
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
ACCEPTED = "must be an RFC 3339 time with its zone, from 1970 to 2199, such as '2026-01-01T00:00:00Z'"


def _text(value: object) -> object:
    if not isinstance(value, str | datetime) or (isinstance(value, str) and "T" not in value.upper()):
        raise ValueError(ACCEPTED)
    return value


def _utc(value: datetime) -> datetime:
    if not EARLIEST <= value < LATEST:
        raise ValueError(ACCEPTED)
    return value.astimezone(UTC)


Time = Annotated[AwareDatetime, BeforeValidator(_text), AfterValidator(_utc)]


class ExogenousPoint(BaseModel):
    """Expected value at one time, with its interval."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"time": "2026-01-01T00:00:00Z", "mean": 12.5}]}
    )

    time: Time
    mean: Finite
    low: Finite | None = Field(default=None, description="Default: the mean, for values known for certain.")
    high: Finite | None = Field(default=None, description="Default: the mean.")

    @model_validator(mode="after")
    def _ordered(self) -> ExogenousPoint:
        low, high = self.bounds
        if not low <= self.mean <= high:
            raise ValueError(f"low {low:g}, mean {self.mean:g} and high {high:g} must stand in this order")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high, with their defaults."""
        return self.mean if self.low is None else self.low, self.mean if self.high is None else self.high


class ExogenousIssue(BaseModel):
    """One issue of a series: what was known at one moment."""

    model_config = ConfigDict(extra="forbid")

    issued_at: Time = Field(description="When this was known; repeating an issue replaces its rows.")
    rows: list[ExogenousPoint] = Field(
        min_length=1,
        max_length=MOST_ROWS_AT_ONCE,
        description="Each time at most once; send more rows in several requests.",
    )


class ExogenousRead(BaseModel):
    """One row of a series."""

    time: datetime
    issued_at: datetime
    mean: float
    low: float
    high: float


class SeriesRead(BaseModel):
    """Summary of a series."""

    workload: str
    series: str
    rows: int = Field(description="Number of rows of all issues.")
    since: datetime = Field(description="Its earliest time.")
    until: datetime = Field(description="Its latest time.")
    issued_at: datetime = Field(description="Its newest issue.")
