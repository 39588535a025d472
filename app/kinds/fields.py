"""Field types shared by all kinds, reports as structs, and error messages for invalid fields.

Pydantic reads the ``Field`` of a type, ``msgspec`` its ``Meta``. A report is declared once, as a struct that decodes
bodies; on failure the body is checked again member by member, so that the error names each invalid field. The struct
also stands in Pydantic models, with the JSON schema that ``msgspec`` derives."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, structs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, PydanticKnownError, core_schema

from app.kinds.contract.inputs import (
    LARGEST_NUMBER,
    LATEST_MOMENT,
    MALFORMED,
    TOO_DEEP,
    FieldIssue,
    InvalidInput,
    deep_place,
    first_issue,
    invalid,
)

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


Named = TypeVar("Named")


def unique(named: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return ``named``, models with a ``name``; raise ValueError if two have the same one."""
    names = [one.name for one in named]  # type: ignore[attr-defined]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must be unique: {', '.join(twice)} given twice")
    return named


class EarlyMaxLength:
    """Pydantic annotation that rejects a list with too many items before its items are validated.

    It stands after a ``Field(max_length=…)`` of the same type, whose limit it takes."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the list's schema with a check of its length in front; raises KeyError without ``max_length``.

        The check raises PydanticKnownError ("too_long"), which Pydantic turns into a ValidationError."""
        schema = handler(source)
        most: int = schema["max_length"]

        def few(value: Any) -> Any:
            if isinstance(value, list | tuple) and len(value) > most:
                fields = {"field_type": "Tuple", "max_length": most, "actual_length": len(value)}
                raise PydanticKnownError("too_long", fields)
            return value

        return core_schema.no_info_before_validator_function(few, schema)


class Strict(BaseModel):
    """A part of a spec: unknown fields are errors, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# Report structs.


LONGEST_NAMED = 1 << 15
"""Most bytes of a body for which every invalid field is named; in longer ones only the first is."""
_NAMES = {
    "float": "a number",
    "int": "a whole number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {
    ">=": "greater than or equal to",
    "<=": "less than or equal to",
    ">": "greater than",
    "<": "less than",
}
_LENGTHS = {"<=": "at most", ">=": "at least"}
_UNITS = {"str": "characters", "array": "items", "object": "members"}
"""Words in error messages for types and bounds named by ``msgspec``."""


class Part(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A report or a part of one: unknown fields are errors, and it never changes."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return Pydantic's schema: it validates by msgspec, and serialises with all fields, defaults included."""
        return core_schema.no_info_plain_validator_function(
            partial(_validate, cls),
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
            serialization=core_schema.plain_serializer_function_ser_schema(in_full),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema that msgspec derives; nested structs become components of their own."""
        _, known = msgspec.json.schema_components([cls], ref_template="{name}")
        inside = {arm for field in structs.fields(cls) for arm in _arms(field.type, deep=True)}
        members = {
            part.__name__: core_schema.typed_dict_field(TypeAdapter(part).core_schema)
            for part in inside
            if hasattr(part, "__struct_fields__")
        }
        references = handler(core_schema.typed_dict_schema(members)).get("properties", {})
        pydantic_json_schema: dict[str, Any] = _resolve_references(known[cls.__name__], references)
        return pydantic_json_schema


Report = TypeVar("Report", bound=Struct)
_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)


@dataclass(frozen=True, eq=False)
class OneOf:
    """Pydantic annotation of a field that holds a report of one of several kinds; ``reports``: their types by kind."""

    reports: Mapping[str, type[Part]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a union schema with the discriminator ``kind``."""
        choices = {name: handler.generate_schema(report) for name, report in self.reports.items()}
        return core_schema.tagged_union_schema(choices, discriminator="kind")


def _resolve_references(schema: Any, references: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a JSON ``schema`` with each "$ref" replaced by its entry of ``references``; single enums become consts."""
    if isinstance(schema, list):
        return [_resolve_references(one, references) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        name: _resolve_references(one, references) for name, one in schema.items() if name not in ("$ref", "enum")
    }
    if "$ref" in schema:
        result |= references[schema["$ref"]]
    if "enum" in schema:
        values = schema["enum"]
        result |= {"const": values[0]} if len(values) == 1 else {"enum": values}
        result["type"] = "string"
    return result


def in_full(value: Any) -> Any:
    """Convert a report or a part of one to dicts, lists and scalars, with default values but without ``UNSET``."""
    if isinstance(value, Struct):
        each = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: in_full(one) for name, one in each if one is not UNSET}
    if isinstance(value, dict):
        return {name: in_full(one) for name, one in value.items()}
    return [in_full(one) for one in value] if isinstance(value, list | tuple) else value


def decoded(body: bytes, report: type[Report]) -> Report:
    """Decode a report from JSON.

    Raises:
        InvalidInput: ``body`` isn't a valid report. It names every invalid field, or the first alone in a body above
            ``LONGEST_NAMED`` bytes or if it isn't JSON.
    """
    try:
        return _decoder(report).decode(body)
    except MALFORMED as error:
        place = deep_place(body)
        if place is not None:
            raise invalid(place, TOO_DEEP, None) from error
        if len(body) <= LONGEST_NAMED:
            # no field accepts a complex number: it stands for one that isn't finite
            finite = lambda text: number if math.isfinite(number := float(text)) else complex(number)  # noqa: E731
            try:
                converted(json.loads(body, parse_float=finite, parse_constant=complex), report)
            except InvalidInput:
                raise
            except ValueError:
                pass  # no JSON, or no Unicode
        raise InvalidInput([first_issue(body, error)]) from error


def converted(value: Any, report: type[Report]) -> Report:
    """Convert decoded JSON to a report.

    Raises:
        InvalidInput: ``value`` isn't a valid report; it names every invalid field by JSON pointer.
    """
    try:
        return msgspec.convert(value, report)
    except msgspec.ValidationError as error:
        results = []
        for path, message, wrong in _wrong(value, report, ()):
            pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
            results.append(FieldIssue(pointer, message, str(wrong.real) if isinstance(wrong, complex) else wrong))
        raise InvalidInput(results) from error


_Path = tuple[str | int, ...]
_Wrong = tuple[_Path, str, Any]


def _wrong(value: Any, expected: Any, path: _Path) -> Iterator[_Wrong]:
    """Yield path, message and value of each invalid member, or of the whole value."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        inside = [one for arm in _arms(expected) for one in _wrong_members(value, arm, path)]
        yield from inside or [(path, _message(value, expected, error), value)]


def _wrong_members(value: Any, expected: Any, path: _Path) -> Iterator[_Wrong]:
    origin, arguments = get_origin(expected), get_args(expected)
    members: Iterable[tuple[str | int, Any, Any]] = ()  # name or place, value, type
    fields, extra = dict[str, structs.FieldInfo](), list[str]()
    if isinstance(value, dict) and hasattr(expected, "__struct_fields__"):
        fields = {field.name: field for field in structs.fields(expected)}
        extra = [name for name in value if name not in fields]
        for name in [name for name, field in fields.items() if field.required and name not in value]:
            yield (*path, name), "is required", None
        members = ((name, value[name], field.type) for name, field in fields.items() if name in value)
    elif isinstance(value, dict) and origin is dict:
        members = ((name, own, arguments[1]) for name, own in value.items())
    elif isinstance(value, list) and origin in (list, tuple):
        members = ((place, own, arguments[0]) for place, own in enumerate(value))
    for step, member, inside in members:
        yield from _wrong(member, inside, (*path, step))
    for name in extra:
        yield (*path, name), f"extra field; known: {', '.join(fields)}", value[name]


def _arms(expected: Any, *, deep: bool = False) -> Iterable[Any]:
    """Return the types of a union, without their annotations; if ``deep``, also the types of items of containers."""
    origin = get_origin(expected)
    if origin is Annotated:
        return _arms(get_args(expected)[0], deep=deep)
    if origin in (Union, UnionType) or (deep and origin in (list, tuple, dict)):
        return [one for arm in get_args(expected) for one in _arms(arm, deep=deep)]
    return [expected]


def _message(value: Any, expected: Any, error: msgspec.ValidationError) -> str:
    if isinstance(value, complex):
        return "must be a finite number"
    message = str(error).partition(" - at `$")[0]
    choices = [str(one) for arm in _arms(expected) if get_origin(arm) is Literal for one in get_args(arm)]
    if choices:
        return f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(choices)}"
    if not message.startswith("Expected "):
        return message  # a struct's own
    accepted = message.removeprefix("Expected ").partition(", got ")[0]
    length = re.fullmatch(r"`(\w+)` of length (<=|>=) (\d+)", accepted)
    if length:
        return f"must be {_NAMES[length[1]]} of {_LENGTHS[length[2]]} {length[3]} {_UNITS[length[1]]}"
    for symbol, words in _BOUNDS.items():
        accepted = accepted.replace(f" {symbol} ", f" {words} ")
    named = re.sub(r"`([^`]+)`", lambda match: " or ".join(_NAMES.get(n, n) for n in match[1].split(" | ")), accepted)
    return f"must be {named.removesuffix('.0')}"


def _validate(report: type[Part], value: Any) -> Part:
    """Convert ``value`` to a report; raises Pydantic's ValidationError, with every invalid field, if it isn't one."""
    if isinstance(value, report):
        return value
    try:
        return msgspec.convert(value, report)
    except msgspec.ValidationError as error:
        details = [
            InitErrorDetails(
                type=PydanticCustomError("report", "{accepted}", {"accepted": message}), loc=path, input=wrong
            )
            for path, message, wrong in _wrong(value, report, ())
        ]
        raise ValidationError.from_exception_data(report.__name__, details) from error
