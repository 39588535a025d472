"""Types of fields that the specs and reports of all kinds use: Pydantic reads ``Field``, ``msgspec`` reads ``Meta``."""

from typing import Annotated, Any

from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from app.kinds.contract.inputs import LARGEST_NUMBER, LATEST_MOMENT

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", examples=["gpus"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", examples=["resnet18"])]
Finite = Annotated[
    float,
    Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False),
    Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER),
]
Positive = Annotated[float, Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False), Meta(gt=0, le=LARGEST_NUMBER)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False), Meta(ge=0, le=LARGEST_NUMBER)]
Moment = Annotated[float, Meta(ge=0, le=LATEST_MOMENT)]
Probability = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Counted:
    """Has a list that is too long refused by its length alone: else each of its items is looked at before.

    It stands after the field's ``max_length``.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The list's schema, with its length looked at first."""
        schema = handler(source)
        most: int = schema["max_length"]

        def few(given: Any) -> Any:
            if isinstance(given, list | tuple) and len(given) > most:
                told = {"field_type": "Tuple", "max_length": most, "actual_length": len(given)}
                raise PydanticKnownError("too_long", told)
            return given

        return core_schema.no_info_before_validator_function(few, schema)


class Strict(BaseModel):
    """A part of a spec: unknown fields are errors, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
