"""Types of fields that the specs of all kinds use."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", examples=["gpus"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", examples=["resnet18"])]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Strict(BaseModel):
    """A part of a spec: unknown fields are errors, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
