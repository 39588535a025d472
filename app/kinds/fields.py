"""Types of fields that the specs and reports of all kinds use, and their twins in ``msgspec``."""

from typing import Annotated

from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.inputs import LARGEST_NUMBER, LATEST_MOMENT

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", examples=["gpus"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", examples=["resnet18"])]
Finite = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, le=LATEST_MOMENT, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]

Number = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
PositiveNumber = Annotated[float, Meta(gt=0, le=LARGEST_NUMBER)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST_NUMBER)]
Time = Annotated[float, Meta(ge=0, le=LATEST_MOMENT)]


class Strict(BaseModel):
    """A part of a spec: unknown fields are errors, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
