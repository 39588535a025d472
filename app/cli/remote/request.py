"""Path and content of an operation's request; `latest` and `champion` are looked up in the service."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer

from app.cli.operations import CHAMPION, KEYS, LATEST, NAMED, NEWEST, Operation
from app.cli.remote.service import Json, RefusedError, Service

QUERIES = ("GET", "DELETE")


def path_of(service: Service, template: str, values: Json) -> str:
    """An operation's path with its arguments; resolved names replace those in ``values``.

    Raises:
        RefusedError, UnreachableError: a look-up fails, or there is no newest item or no champion.
    """
    path = ""
    for part in template.split("/")[1:]:
        name = part[1:-1] if part.startswith("{") else ""
        value = meant(service, path, name, str(values[name])) if name in KEYS else str(values.get(name, ""))
        path += "/" + (quote(value, safe="") if name else part)
        if name:
            values[name] = value
    return path


def meant(service: Service, collection: str, name: str, value: str) -> str:
    """The item of a list that an argument's ``value`` means.

    `newest`, `latest`, `champion`, and `WORKLOAD@latest` where a list holds items of several workloads, are looked up
    in the service; all other values are returned.

    Raises:
        RefusedError, UnreachableError: a look-up fails, or there is no such item or no champion.
    """
    workload, _, word = value.rpartition("@")
    within = collection.startswith("/workloads/")
    if name in NAMED or (workload and within) or word not in (NEWEST, LATEST, CHAMPION):
        return value
    if word == CHAMPION:
        if "/agents" not in collection:
            return value
        workload = collection.rpartition("/")[0]
        champion = service.call("GET", workload)["champion"]
        if champion is None:
            detail = f"the built-in policy decides for {workload.removeprefix('/workloads/')}"
            raise RefusedError({"title": "No champion", "detail": detail, "status": 404})
        return str(champion)
    chosen = f"&workload={quote(workload, safe='')}" if workload else ""
    items = service.call("GET", f"{collection}?limit=1{chosen}")["items"]
    if not items:
        raise RefusedError(_none(collection, workload))
    return str(items[0][KEYS[name]])


def _none(collection: str, of: str = "") -> Json:
    """Problem document of an empty list, with the command that adds an item; ``of``: the only workload listed."""
    *_, workload, plural = collection.split("/")
    workload = of or workload
    noun = plural.removesuffix("s")
    command = {"evaluations": "evaluate WORKLOAD", "jobs": "job create fit WORKLOAD"}.get(
        plural, f"{noun} create {workload or 'WORKLOAD'}"
    )
    return {"title": f"No {noun}", "detail": f"there is none yet; `steward {command}` makes one", "status": 404}


def content_of(operation: Operation, values: Json) -> dict[str, Any]:
    """Keyword arguments of the HTTP request: a JSON body, or a query.

    Raises:
        typer.BadParameter: a file or a member can't be read.
    """
    content: Json = dict(operation.fixed)
    for file in (values.get("document"), values.get("file")):
        content |= {} if file is None else _document(file)
    content |= {name: values[name] for name in operation.arguments}
    content |= {
        option.name: values[option.name] for option in operation.options if values[option.name] not in (None, [])
    }
    for field in values.get("fields") or ():
        _put(content, field)
    if operation.method in QUERIES:
        return {"params": query_of(content)}
    return {"json": content} if operation.body else {}


def query_of(content: Json) -> Json:
    """Members as the API's queries have them: ``{"allocation": {"gpus": 4}}`` is ``allocation=gpus:4``."""
    return {name: _texts(value) for name, value in content.items()}


def _document(file: Path) -> Json:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        document = json.loads(text)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise typer.BadParameter(f"{file}: is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise typer.BadParameter(f"{file}: must hold a JSON object, not {type(document).__name__}")
    return document


def _put(content: Json, field: str) -> None:
    """Add ``allocation.gpus=4`` to ``content`` as ``{"allocation": {"gpus": 4}}``; raises BadParameter for another
    form, or if an outer name has a value already."""
    place, equals, value = field.partition("=")
    *outer, last = place.split(".")
    if not equals or not all((*outer, last)):
        raise typer.BadParameter(f"{field!r} is not MEMBER=VALUE, such as allocation.gpus=4")
    for name in outer:
        content = content.setdefault(name, {})
        if not isinstance(content, dict):
            raise typer.BadParameter(f"{field!r}: {name} is given as a value, too")
    try:
        content[last] = json.loads(value)
    except ValueError:
        content[last] = value


def _texts(value: Any) -> str | Sequence[str]:
    if isinstance(value, dict):
        return [f"{name}:{_text(one)}" for name, one in value.items()]
    return [_text(one) for one in value] if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
