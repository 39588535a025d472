"""``steward explain``: fields of the API's nouns, with types and descriptions from the packaged OpenAPI document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import typer

from app.charts.text import exact
from app.cli.operations import Json, document, operations
from app.nouns import NOUNS

WIDTH = 80
MOST_FIELDS = 200
"""Number of fields that are printed."""
LONGEST_PATH = 12
"""Number of names in a field's path."""
UNLIMITED = 1e30
"""Limits from this size on are not printed."""
LONGEST_LIST = 200
"""Characters of a list of accepted values."""


class Field(NamedTuple):
    """A field, or a noun: the commands whose request or response has it, and its schema."""

    commands: Sequence[str]
    schema: Json


def lines(path: str) -> Iterator[str]:
    """Lines that explain a field: what it is, and the fields within, one level deep.

    Args:
        path: a noun's command and names of fields, joined by dots: ``workload.targets``. Items of lists and values of
            mappings need no name.

    Raises:
        typer.BadParameter: there is no such noun or field; the error names those that there are.
    """
    noun, *names = path.split(".")
    nouns = [one.command for one in NOUNS.values() if one.command]
    noun = noun if noun in nouns else noun.removesuffix("s")
    if noun not in nouns:
        raise typer.BadParameter(f"must be one of {', '.join(nouns)}, not {noun!r}")
    if len(names) > LONGEST_PATH:
        raise typer.BadParameter(f"the field has {len(names)} names; at most {LONGEST_PATH} are accepted")
    options = _of_noun(noun)
    for position, name in enumerate(names):
        inner = [Field(one.commands, schema) for one in options for schema in _variants(one.schema, name)]
        if not inner:
            known = sorted({field for one in options for field in _fields(one.schema)})
            where = ".".join((noun, *names[:position]))
            accepted = f"has the fields {', '.join(known[:MOST_FIELDS])}" if known else "has no fields"
            raise typer.BadParameter(f"{where} {accepted}, and no {name!r}")
        options = inner
    yield f"{'.'.join((noun, *names))}"
    for one in _merged(options):
        yield ""
        yield f"  <{_type(one.schema)}>  in {', '.join(f'`steward {line}`' for line in one.commands)}"
        yield from _wrapped(_description(one.schema), "    ")
        fields = _fields(one.schema)
        if fields:
            yield ""
            yield "  Fields:"
        kinds = _kinds(one.schema)
        for name, schemas in [*fields.items()][:MOST_FIELDS]:
            types = dict.fromkeys(_type(schema) for _, schema in schemas)
            of = sorted({kind for kind, _ in schemas if kind}) if len(schemas) < len(kinds) else []
            notes = ["required"] * (name in _required(one.schema)) + [f"kind {', '.join(of)}"] * bool(of)
            yield "  ".join([f"    {name}", f"<{' | '.join(types)}>", *notes])
            yield from _wrapped(_description(schemas[0][1]), "        ")


def _of_noun(noun: str) -> list[Field]:
    """Bodies that a noun's commands send, then what ``show`` or ``list`` prints."""
    options = []
    for line, operation in operations().items():
        if not line.startswith(f"{noun} "):
            continue
        entry = document()["paths"][operation.path][operation.method.lower()]
        sent = _json(entry.get("requestBody", {}))
        if sent:
            options.append(Field([line], sent))
        answer = _json(entry["responses"].get("200", {}))
        if answer and operation.method == "GET" and not operation.columns:
            options.append(Field([line], answer))
    return options


def _json(media: Json) -> Json:
    schema: Json = media.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _alternatives(schema: Json) -> Iterator[Json]:
    """Yield the schemas that a JSON schema stands for: its reference is followed, and instead of a union, list or
    mapping come its members, or the schema of its values. Raises KeyError if a reference leads nowhere."""
    if "$ref" in schema:
        yield from _alternatives(document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        return
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    values = schema.get("additionalProperties")
    if parts:
        for part in parts:
            yield from _alternatives(part)
    elif "items" in schema:
        yield from _alternatives(schema["items"])
    elif isinstance(values, Mapping) and values and not schema.get("properties"):
        yield from _alternatives(dict(values))
    else:
        yield schema


def _fields(schema: Json) -> dict[str, list[tuple[str, Json]]]:
    """Fields of a schema by name: in each alternative that has it, the alternative's kind and the field's schema."""
    fields: dict[str, list[tuple[str, Json]]] = {}
    for one in _alternatives(schema):
        for name, field in one.get("properties", {}).items():
            fields.setdefault(name, []).append((_kind(one), field))
    return fields


def _kinds(schema: Json) -> list[str]:
    """Kinds of a schema's alternatives; empty for those that have none."""
    return [_kind(one) for one in _alternatives(schema) if one.get("properties")]


def _kind(schema: Json) -> str:
    return str(schema.get("properties", {}).get("kind", {}).get("const", ""))


def _required(schema: Json) -> set[str]:
    """Names of the fields that all alternatives require."""
    each = [set(one.get("required", ())) for one in _alternatives(schema) if one.get("properties")]
    return set.intersection(*each) if each else set()


def _variants(schema: Json, name: str) -> Iterator[Json]:
    """Schemas of a field in each alternative that has it."""
    for one in _alternatives(schema):
        if name in one.get("properties", {}):
            yield one["properties"][name]


def _merged(fields: Sequence[Field]) -> list[Field]:
    """The fields without repetitions: commands with the same schema are named together."""
    merged: list[Field] = []
    for one in fields:
        same = next((at for at, other in enumerate(merged) if other.schema == one.schema), None)
        if same is None:
            merged.append(one)
        else:
            merged[same] = Field([*dict.fromkeys([*merged[same].commands, *one.commands])], one.schema)
    return merged


def _type(schema: Json) -> str:
    """Type in words: ``integer``, ``list of object``, ``number or null``."""
    if "$ref" in schema:
        return _type(document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if parts:
        return " or ".join(dict.fromkeys(map(_type, parts)))
    if "enum" in schema or "const" in schema:
        text = " | ".join(map(str, schema.get("enum", [schema.get("const")])))
        return text if len(text) <= LONGEST_LIST else f"{text[:LONGEST_LIST]}…"
    values = schema.get("additionalProperties")
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(values, Mapping) and values and not schema.get("properties"):
        return f"{_type(dict(values))} by name"
    return str(schema.get("type", "any"))


LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
    "pattern": "pattern {}",
    "default": "default {}",
}


def _description(schema: Json) -> str:
    """A schema's description, with what is accepted."""
    own = schema
    if "$ref" in own:
        own = {**document()["components"]["schemas"][own["$ref"].rpartition("/")[2]], **own}
    parts = [own, *(one for one in (*own.get("anyOf", ()), *own.get("oneOf", ())) if one.get("type") != "null")]
    limits = {name: one[name] for one in reversed(parts[:2]) for name in LIMITS if one.get(name) not in (None, "")}
    limits = {name: value for name, value in limits.items() if not (isinstance(value, float) and value >= UNLIMITED)}
    shown = {name: exact(value) if isinstance(value, float) else value for name, value in limits.items()}
    accepted = ", ".join(LIMITS[name].format(value) for name, value in shown.items())
    text = str(own.get("description", "")).strip()
    return " ".join(filter(None, (text, f"({accepted})" if accepted else "")))


def _wrapped(text: str, indent: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from textwrap.wrap(" ".join(paragraph.split()), WIDTH, initial_indent=indent, subsequent_indent=indent)
