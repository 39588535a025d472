"""The reference of the HTTP API, written from its schema: one section for each noun, one entry for each operation."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

Schema = dict[str, Any]
INTRODUCTION = """# HTTP API

{description}

Errors are problem documents (RFC 9457, `application/problem+json`) that name each invalid field, its value and what is
accepted. Every field of every schema is on [the interactive page](schema.html), which a running service has at `/docs`,
and in [openapi.json](../repository/openapi.json).
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>HTTP API: schemas</title>
<link rel="stylesheet" href="swagger-ui.css">
<div id="schema"></div>
<script src="swagger-ui-bundle.js"></script>
<script>
const spec = {schema};
SwaggerUIBundle({{spec, dom_id: "#schema", deepLinking: true, supportedSubmitMethods: [], validatorUrl: null}});
</script>
</html>
"""


def page(schema: Schema) -> str:
    """A page that shows the schema field by field, from the schema itself and the files of Swagger UI beside it."""
    return PAGE.format(schema=json.dumps(schema).replace("</", "<\\/"))


def reference(schema: Schema) -> str:
    """The reference as Markdown."""
    nouns: dict[str, list[str]] = defaultdict(list)
    for path, operations in schema["paths"].items():
        for verb, operation in operations.items():
            nouns[operation["tags"][0]].append(_entry(verb.upper(), path, operation))
    sections = [f"## {noun.capitalize()}\n\n" + "\n".join(entries) for noun, entries in nouns.items()]
    return "\n".join([INTRODUCTION.format(description=schema["info"]["description"]), *sections])


def _entry(verb: str, path: str, operation: Schema) -> str:
    name = operation["operationId"]
    parts: list[str] = [f"### `{verb} {path}` {{ #{name} }}", operation.get("description") or operation["summary"]]
    rows = [_parameter(one) for one in operation.get("parameters", [])] + _bodies(operation)
    if rows:
        parts.append("\n".join(["| parameter | in | description |", "|---|---|---|", *rows]))
    parts.append(f"{_answers(operation)} [All fields](schema.html#/{operation['tags'][0]}/{name}).")
    return "\n\n".join(parts) + "\n"


def _parameter(parameter: Schema) -> str:
    return f"| `{parameter['name']}` | {parameter['in']} | {_line(parameter.get('description', ''))} |"


def _bodies(operation: Schema) -> list[str]:
    content: Schema = operation.get("requestBody", {}).get("content", {})
    return [f"| {_shape(media['schema'])} | body | `{name}` |" for name, media in content.items()]


def _answers(operation: Schema) -> str:
    codes = sorted(code for code in operation["responses"] if code != "default")
    good = [f"{code}{_content(operation['responses'][code])}" for code in codes if code < "400"]
    bad = [code for code in codes if code >= "400"]
    return f"Returns {', '.join(good)}" + (f"; errors: {', '.join(bad)}." if bad else ".")


def _content(response: Schema) -> str:
    shapes = {_shape(media.get("schema", {})) for media in response.get("content", {}).values()}
    return f" ({' or '.join(sorted(shapes))})" if shapes else ""


def _shape(schema: Schema) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    either: list[Schema] = schema.get("oneOf") or schema.get("anyOf") or []
    options = [_shape(one) for one in either]
    return " or ".join(options) or f"`{schema.get('type', 'any')}`"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
