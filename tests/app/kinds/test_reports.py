"""Reports: one declaration decodes bodies, names every wrong field, and gives the schema."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, UnsetType
from pydantic import BaseModel, TypeAdapter, ValidationError

from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.kind import Kind
from app.kinds.fields import LONGEST_NAMED, OneOf, Part, converted, decoded, in_full
from app.kinds.registry import KINDS

Share = Annotated[float, Meta(ge=0, le=1)]


class Inner(Part, frozen=True):
    """A part."""

    name: Annotated[str, Meta(min_length=1)]
    state: Literal["on", "off"] = "on"

    def __post_init__(self) -> None:
        if self.name == self.state:
            raise ValueError("name must differ from state")


class Outer(Part, frozen=True):
    """A report."""

    at: Annotated[Share, Meta(description="When.")]
    kind: Literal["outer"] = "outer"
    parts: Annotated[tuple[str | Inner, ...], Meta(max_length=3)] = ()
    by_name: dict[str, Share | None] | UnsetType = UNSET


class Other(Part, frozen=True):
    """Another report."""

    kind: Literal["other"] = "other"


class Page(BaseModel):
    """A model that has reports."""

    report: Annotated[Any, OneOf({"outer": Outer, "other": Other})]


def refused(body: bytes) -> dict[str, tuple[str, Any]]:
    with pytest.raises(InvalidInput) as caught:
        decoded(body, Outer)
    return {issue.pointer: (issue.message, issue.value) for issue in caught.value.errors}


def test_every_wrong_field_is_named_with_what_is_accepted() -> None:
    body = (
        b'{"kind": "inner", "parts": [{"name": "", "state": "up"}, "a", {"state": "on"}, 3], "colour": {}, '
        b'"by_name": {"a": -1, "b": null, "c": NaN, "d/e": 1e999}}'
    )
    assert refused(body) == {
        "/colour": ("extra field; known: at, kind, parts, by_name", {}),
        "/at": ("is required", None),
        "/kind": ("must be outer", "inner"),
        "/parts/0/name": ("must be a string of at least 1 characters", ""),
        "/parts/0/state": ("must be one of on, off", "up"),
        "/parts/2/name": ("is required", None),
        "/parts/3": ("must be a string or an object", 3),
        "/by_name/a": ("must be a number greater than or equal to 0", -1),
        "/by_name/c": ("must be a finite number", "nan"),
        "/by_name/d~1e": ("must be a finite number", "inf"),
    }


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        (b'{"at": 0, "parts": [{"name": "on"}]}', "/parts/0", "name must differ from state"),
        (b'{"at": 0, "parts": ["a", "b", "c", "d"]}', "/parts", "must be a list of at most 3 items"),
        (b'{"at": true}', "/at", "must be a number"),
        (b"[]", "", "must be an object"),
        (b'{"at": ', "", "is not valid JSON: Input data was truncated"),
        (b'{"at": %s1%s}' % (b"[" * 99, b"]" * 99), "/at", "must be nested at most 64 levels deep"),
    ],
)
def test_what_is_wrong_with_a_whole_is_said_of_the_whole(body: bytes, pointer: str, message: str) -> None:
    problem = refused(body)
    assert {place: text for place, (text, _) in problem.items()} == {pointer: message}


def test_of_a_long_body_the_first_wrong_field_is_named() -> None:
    names = {f"n{number}": 2 for number in range(LONGEST_NAMED // 8)}
    assert len(refused(json.dumps({"at": 0, "by_name": names}).encode())) == 1
    assert len(refused(json.dumps({"at": 0, "by_name": dict(list(names.items())[:200])}).encode())) == 200


def test_a_report_stands_in_models_with_all_its_fields() -> None:
    fields = {"at": 1, "parts": [{"name": "a"}, "b"]}
    page = Page.model_validate({"report": {"kind": "outer", **fields}})
    assert page.report == converted(fields, Outer) == Outer(1, parts=(Inner("a"), "b"))
    full = {"at": 1, "kind": "outer", "parts": [{"name": "a", "state": "on"}, "b"]}
    assert page.model_dump(mode="json") == {"report": full}
    assert Page(report=Other()).model_dump() == {"report": {"kind": "other"}}
    assert in_full(page.report) == full
    with pytest.raises(ValidationError) as caught:
        Page.model_validate({"report": {"kind": "outer", "at": 2, "parts": [{}]}})
    places = [error["loc"] for error in caught.value.errors()]
    assert places == [("report", "outer", "at"), ("report", "outer", "parts", 0, "name")]


def test_the_schema_is_that_of_the_declaration() -> None:
    schema = Page.model_json_schema()
    assert schema["properties"]["report"]["discriminator"]["mapping"] == {
        "outer": "#/$defs/Outer",
        "other": "#/$defs/Other",
    }
    outer = schema["$defs"]["Outer"]
    assert (outer["required"], outer["additionalProperties"], outer["description"]) == (["at"], False, "A report.")
    assert outer["properties"]["at"] == {"type": "number", "minimum": 0, "maximum": 1, "description": "When."}
    assert outer["properties"]["kind"] == {"const": "outer", "default": "outer", "type": "string"}
    items = outer["properties"]["parts"]["items"]["anyOf"]
    assert items == [{"type": "string"}, {"$ref": "#/$defs/Inner"}]
    assert schema["$defs"]["Inner"]["properties"]["state"]["enum"] == ["off", "on"]
    assert Page.model_json_schema(mode="serialization") == schema


def unbounded(schema: dict[str, Any], definitions: dict[str, Any]) -> list[Any]:
    """The lists in a schema that have no bound."""
    if "$ref" in schema:
        return unbounded(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    inside = [schema.get("items", {}), *schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    own = [schema] if schema.get("type") == "array" and "maxItems" not in schema else []
    return [*own, *(one for part in inside if part for one in unbounded(part, definitions))]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_list_of_a_report_is_bounded(kind: Kind) -> None:
    schema = TypeAdapter(kind.engine.report).json_schema()
    assert unbounded(schema, schema.get("$defs", {})) == []
