"""Reports of all kinds: each is declared once, as a struct.

The struct decodes bodies. Where that fails, the body is read again member by member, so that the error names each field
that is wrong. The struct also stands in Pydantic models, and its JSON schema is what ``msgspec`` derives of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, structs
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from app.kinds.contract.inputs import MALFORMED, TOO_DEEP, FieldIssue, InvalidInput, deep_place, first_issue, invalid

LONGEST_NAMED = 1 << 15
"""Bytes of the longest body of which each wrong field is named; of a longer one the first is."""
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
"""What error messages call the types and bounds that ``msgspec`` names."""


class Part(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A report or a part of one: unknown fields are errors, and it never changes."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """How Pydantic reads and writes it."""
        return core_schema.no_info_plain_validator_function(
            partial(_validated, cls),
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
            serialization=core_schema.plain_serializer_function_ser_schema(in_full),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Its JSON schema; structs within are components of their own."""
        _, known = msgspec.json.schema_components([cls], ref_template="{name}")
        inside = {arm for field in structs.fields(cls) for arm in _arms(field.type, deep=True) if _is_struct(arm)}
        members = {part.__name__: core_schema.typed_dict_field(TypeAdapter(part).core_schema) for part in inside}
        references = handler(core_schema.typed_dict_schema(members)).get("properties", {})
        found: dict[str, Any] = _linked(known[cls.__name__], references)
        return found


Report = TypeVar("Report", bound=Struct)


@dataclass(frozen=True, eq=False)
class OneOf:
    """Annotation of a field that holds a report of one of several kinds, by name."""

    reports: Mapping[str, type[Part]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A union of them, told apart by ``kind``."""
        choices = {name: handler.generate_schema(report) for name, report in self.reports.items()}
        return core_schema.tagged_union_schema(choices, discriminator="kind")


def _linked(schema: Any, references: Mapping[str, Mapping[str, Any]]) -> Any:
    """A schema whose references are replaced; the only value of an enumeration is a constant."""
    if isinstance(schema, list):
        return [_linked(one, references) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _linked(one, references) for name, one in schema.items() if name not in ("$ref", "enum")}
    if "$ref" in schema:
        found |= references[schema["$ref"]]
    if "enum" in schema:
        values = schema["enum"]
        found |= {"const": values[0]} if len(values) == 1 else {"enum": values}
        found["type"] = "string"
    return found


def in_full(value: Any) -> Any:
    """A report as plain data, with the fields that have their defaults."""
    if isinstance(value, Struct):
        each = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: in_full(one) for name, one in each if one is not UNSET}
    if isinstance(value, dict):
        return {name: in_full(one) for name, one in value.items()}
    return [in_full(one) for one in value] if isinstance(value, list | tuple) else value


def decoded(body: bytes, decoder: msgspec.json.Decoder[Report]) -> Report:
    """The report.

    Raises:
        InvalidInput: it is none; every wrong field is named.
    """
    try:
        return decoder.decode(body)
    except MALFORMED as error:
        place = deep_place(body)
        if place is not None:
            raise invalid(place, TOO_DEEP, None) from error
        found: list[FieldIssue] = []
        if len(body) <= LONGEST_NAMED:
            with suppress(ValueError):  # it is no JSON
                found = [*issues(json.loads(body, parse_float=_finite, parse_constant=_NotFinite), decoder.type)]
        raise InvalidInput(found or [first_issue(body, error)]) from error


def converted(value: Any, report: type[Report]) -> Report:
    """Plain data as a report.

    Raises:
        InvalidInput: it is none; every wrong field is named.
    """
    try:
        return msgspec.convert(value, report)
    except msgspec.ValidationError as error:
        raise InvalidInput([*issues(value, report)]) from error


def issues(value: Any, expected: Any) -> Iterator[FieldIssue]:
    """Everything in plain data that a type refuses."""
    return (FieldIssue(_pointer(path), message, _shown(one)) for path, message, one in _wrong(value, expected, ()))


_Path = tuple[str | int, ...]
_Wrong = tuple[_Path, str, Any]


def _wrong(value: Any, expected: Any, path: _Path) -> Iterator[_Wrong]:
    """What is wrong with the members of a value, or else with all of it: where, what is accepted, what was given."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        inside = [one for arm in _arms(expected) for one in _wrong_members(value, arm, path)]
        yield from inside or [(path, _message(value, expected, error), value)]


def _wrong_members(value: Any, expected: Any, path: _Path) -> Iterator[_Wrong]:
    origin, arguments = get_origin(expected), get_args(expected)
    members: Iterable[tuple[str | int, Any, Any]] = ()  # name or place, value, type
    if isinstance(value, dict) and _is_struct(expected):
        fields = {field.name: field for field in structs.fields(expected)}
        for name in [name for name in value if name not in fields]:
            yield (*path, name), f"extra field; known: {', '.join(fields)}", value[name]
        for name in [name for name, field in fields.items() if field.required and name not in value]:
            yield (*path, name), "is required", None
        members = ((name, value[name], field.type) for name, field in fields.items() if name in value)
    elif isinstance(value, dict) and origin is dict:
        members = ((name, given, arguments[1]) for name, given in value.items())
    elif isinstance(value, list) and origin in (list, tuple):
        members = ((place, given, arguments[0]) for place, given in enumerate(value))
    for step, given, inside in members:
        yield from _wrong(given, inside, (*path, step))


def _is_struct(expected: Any) -> bool:
    return isinstance(expected, type) and issubclass(expected, Struct)


def _arms(expected: Any, *, deep: bool = False) -> Iterable[Any]:
    """The types of a union, without what annotates them; if ``deep`` those of members, too."""
    origin = get_origin(expected)
    if origin is Annotated:
        return _arms(get_args(expected)[0], deep=deep)
    if origin in (Union, UnionType) or (deep and origin in (list, tuple, dict)):
        return [one for arm in get_args(expected) for one in _arms(arm, deep=deep)]
    return [expected]


class _NotFinite:
    """A number that JSON has no form of, or that a float can't hold; no type accepts it."""

    def __init__(self, text: str) -> None:
        self.text = str(float(text))

    def __str__(self) -> str:
        return self.text


def _finite(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else _NotFinite(text)


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, _NotFinite) else value


def _message(value: Any, expected: Any, error: msgspec.ValidationError) -> str:
    if isinstance(value, _NotFinite):
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
    named = re.sub(r"`([^`]+)`", lambda found: " or ".join(_NAMES.get(n, n) for n in found[1].split(" | ")), accepted)
    return f"must be {named.removesuffix('.0')}"


def _pointer(path: _Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _validated(report: type[Part], value: Any) -> Part:
    """A report in a Pydantic model; raises Pydantic's errors."""
    if isinstance(value, report):
        return value
    try:
        return msgspec.convert(value, report)
    except msgspec.ValidationError as error:
        found = [
            InitErrorDetails(
                type=PydanticCustomError("report", "{accepted}", {"accepted": message}), loc=path, input=given
            )
            for path, message, given in _wrong(value, report, ())
        ]
        raise ValidationError.from_exception_data(report.__name__, found) from error
