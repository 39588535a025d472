"""Errors of validation, as callers are told."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from app.http.problems import invalid


class Server(BaseModel):
    cores: int = Field(ge=1)
    share: float = Field(default=0.5, le=1)


class Fleet(BaseModel):
    servers: Annotated[tuple[Server, ...], Field(min_length=1)]


def shown_fields(values: object) -> list[tuple[str, str]]:
    try:
        Fleet.model_validate(values)
    except ValidationError as error:
        return [(one.pointer, one.message) for one in invalid(error.errors()).errors]
    return []


def test_a_list_is_not_called_too_short_for_errors_in_its_items() -> None:
    assert shown_fields({"servers": [{"cores": -1}]}) == [
        ("/servers/0/cores", "input should be greater than or equal to 1"),
    ]
    assert [pointer for pointer, _ in shown_fields({"servers": []})] == ["/servers"]


def test_what_is_no_number_is_not_called_too_large() -> None:
    assert shown_fields({"servers": [{"cores": 1, "share": float("nan")}]}) == [
        ("/servers/0/share", "must be a finite number"),
    ]
