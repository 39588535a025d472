"""Operations of the API that have commands, read from the packaged OpenAPI document.

An operation's extension ``x-cli`` names its commands (`app.http.dependencies.command`); path, query and body follow
from the document. The module knows no kinds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
KEYS = {"workload": "name", "version": "version", "id": "id", "run": "id", "series": "series", "execution": "execution"}
"""Member that identifies an item of a list, by path parameter."""
NAMED = ("workload", "series")
"""Path parameters that are always names, for which `newest` has no special meaning."""
NEWEST, LATEST, CHAMPION = "newest", "latest", "champion"
PAGING = ("limit", "cursor")
DOCUMENT = Path(__file__).parents[1] / "openapi.json"


class Column(NamedTuple):
    """A column of a list.

    Attributes:
        head: its head.
        member: path of a member, with dots for nested members.
        until: path of a second time; the cell is then the duration from the first one until it, or until now.
        wide: whether only ``-o wide`` and CSV have it.
        text: whether ``member`` is no path but a name, and its cells are printed as they are.
    """

    head: str
    member: str
    until: str = ""
    wide: bool = False
    text: bool = False

    @classmethod
    def parse(cls, text: str, *, wide: bool = False) -> Column:
        """A column given as ``member`` or ``head: member``; ``from..until`` is a duration."""
        place = text.rpartition(": ")[2]
        member, _, until = place.partition("..")
        return cls(text.partition(": ")[0], member, until, wide)


class Option(NamedTuple):
    """An option for a member of the query or body; not sent by default."""

    name: str
    schema: Json


@dataclass(frozen=True)
class Operation:
    """A command that makes one request.

    Attributes:
        line: noun and verb, such as ``job list``.
        method: HTTP method.
        path: path of the URL, with parameters in braces.
        parameters: names of the path's parameters, in order.
        help: description of the command.
        summary: the same in one line.
        places: descriptions of the path's parameters and of ``arguments``, by name, in order.
        columns: columns of a list; empty if the response is a single object.
        arguments: members of the query or body that are positional arguments.
        options: members of the query or body that are options.
        fields: whether members of query or body are given as ``member=value …``.
        body: whether the request has a body.
        document: whether the first argument is a file with the body.
        fixed: members sent by default, with their values.
        result: path of a job's result, with members of it in braces; empty: the job itself; None: the operation starts
            no job.
        file: default name of the file that the response is written to; empty: the response is JSON.
    """

    line: str
    method: str
    path: str
    parameters: Sequence[str]
    help: str
    summary: str
    places: Mapping[str, str]
    columns: Sequence[Column]
    arguments: Sequence[str]
    options: Sequence[Option]
    fields: bool
    body: bool
    document: bool
    fixed: Mapping[str, Any]
    result: str | None
    file: str

    def collection(self, parameter: str) -> str:
        """Path of the list whose items ``parameter`` names."""
        return self.path.partition(f"/{{{parameter}}}")[0]

    def deletion_message(self, values: Json) -> str:
        """Message after a deletion, such as ``model 2 of vision is deleted``."""
        *outer, last = self.parameters
        of = f" of {values[outer[0]]}" if outer else ""
        if not self.path.endswith("}"):
            return f"{self.path.rpartition('/')[2]} of {values[last]} are deleted"
        noun = self.collection(last).rpartition("/")[2].removesuffix("s") if last in ("id", "version") else last
        return f"{noun} {values[last]}{of} is deleted"


@cache
def document() -> Json:
    """This version's OpenAPI document, without backticks in its texts; cached."""
    body: Json = json.loads(DOCUMENT.read_text(encoding="utf-8").replace("`", ""))
    return body


@cache
def operations() -> dict[str, Operation]:
    """Operations by command, in the document's order; cached."""
    return {
        line: _operation(line, settings, method.upper(), path, entry)
        for path, methods in document()["paths"].items()
        for method, entry in methods.items()
        for line, settings in entry.get("x-cli", {}).items()
    }


def _operation(line: str, settings: Json, method: str, path: str, entry: Json) -> Operation:
    path_parameters = re.findall(r"{(\w+)}", path)
    parameters = {one["name"]: one for one in entry.get("parameters", ())}
    query = {name: one for name, one in parameters.items() if one["in"] == "query" and name not in PAGING}
    media = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = members(media.get("schema", {}))
    arguments, fixed = settings.get("arguments", ()), settings.get("fixed", {})
    fields = settings.get("fields", bool(media))
    offered = settings.get("options", () if fields else [name for name in query if name not in (*arguments, *fixed)])
    return Operation(
        line=line,
        method=method,
        path=path,
        parameters=path_parameters,
        help=settings.get("help") or entry["description"],
        summary=settings.get("help") or f"{entry['summary']}.",
        places={name: (parameters.get(name) or body[name])["description"] for name in (*path_parameters, *arguments)},
        columns=[
            *map(Column.parse, settings.get("columns", ())),
            *(Column.parse(one, wide=True) for one in settings.get("wide", ())),
        ],
        arguments=arguments,
        options=[Option(name, body[name] if media else {**query[name], **query[name]["schema"]}) for name in offered],
        fields=fields,
        body=bool(media),
        document=settings.get("document", False),
        fixed=fixed,
        result=settings.get("result"),
        file=settings.get("file", ""),
    )


def members(schema: Json) -> Json:
    """Properties of a body's schema; of a union, those of all its members."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    result: Json = {}
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        result = members(one) | result
    return result | schema.get("properties", {})
