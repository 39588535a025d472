"""Commands for the API's operations; arguments, options, help and completion follow from the OpenAPI document."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urljoin

import typer
from typer._click.core import ParameterSource

from app.cli.commands import Noun as GroupOfNoun
from app.cli.operations import CHAMPION, KEYS, NAMED, NEWEST, Json, Operation, Option, operations
from app.cli.options import SERVICE, STATUSES, AsJson, NoHeaders, Output, Url
from app.nouns import Noun

# Shell completion with names from the service; nothing is completed if it doesn't respond in time.


TYPES = {"integer": int, "number": float, "boolean": bool, "array": list[str]}
SECONDS = 0.5
MOST = 100


def names_of(collection: str, argument: str, fixed: Sequence[str] = ()) -> Callable[..., list[str]]:
    """A function for Typer that completes an argument by the names of a list's items.

    ``collection``: path of the list, with earlier arguments in braces. ``argument``: name of the completed argument.
    ``fixed``: further completions, the only ones if the service doesn't respond.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from http.client import HTTPException

        before = {name: quote(str(value), safe="") for name, value in ctx.params.items() if value is not None}
        root = ctx.find_root().params
        explicit = ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE  # else it may be a default
        try:
            url = ctx.params["url"] if explicit else root.get("url")
            items = _items(url, root.get("token"), collection.format(**before))
            names = [str(item[KEYS[argument]]) for item in items]
        except (OSError, ValueError, LookupError, TypeError, HTTPException):
            names = []
        return [name for name in (*fixed, *names) if name.startswith(incomplete)]

    return complete


def _items(url: str | None, token: str | None, path: str) -> list[Json]:
    """The first 100 items of a list; address and key default to the environment's.

    Raises:
        OSError, HTTPException: the service doesn't respond within 0.5 s, or rejects the request.
        ValueError: the address isn't HTTP or HTTPS, or the response isn't JSON.
        KeyError, TypeError: the response is JSON without ``items``.
    """
    from urllib.request import ProxyHandler, Request, build_opener

    base = url or os.environ.get("STEWARD_URL") or SERVICE
    if not base.startswith(("http://", "https://")):
        raise ValueError(base)
    key = (token or os.environ.get("STEWARD_API_KEY", "")).strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = Request(urljoin(base, f"{path}?limit={MOST}"), headers=headers)  # noqa: S310 # HTTP, as checked above
    with build_opener(ProxyHandler({})).open(request, timeout=SECONDS) as answer:
        items: list[Json] = json.load(answer)["items"]
    return items


workloads = names_of("/workloads", "workload")
executions = names_of("/workloads/{workload}/samples", "execution")
COMPLETIONS = {"workload": workloads, "execution": executions}


# Commands of operations: arguments of the path, then of the body; then options, in one order everywhere.


Workload = Annotated[str, typer.Argument(help="Name of the workload.", autocompletion=workloads)]
Fields = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MEMBER=VALUE]...", help="Request fields, nested with dots: allocation.gpus=4"),
]
Body = Annotated[Path, typer.Argument(metavar="FILE", help="JSON file; - for standard input.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help="JSON file with further fields; - for standard input.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows.")]
All = Annotated[bool, typer.Option("--all", help="Show all rows.")]
Watch = Annotated[bool, typer.Option("--watch", help="Print again on each change, until it ends or Ctrl-C.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the job to end.")]
Out = Annotated[Path, typer.Option(help="File to write.")]
ROWS = 50


def group(noun: Noun, *, without: Sequence[str] = (), more: str = "", cls: Any = None) -> typer.Typer:
    """A group with one command per operation of a noun.

    Args:
        noun: the noun, whose commands begin with its ``command``.
        without: verbs that the caller adds itself.
        more: addition to the noun's description in the help.
        cls: class of the group.
    """
    text = f"{noun.description.rstrip('.')}; {more}" if more else noun.description
    result = typer.Typer(name=noun.command, help=text, no_args_is_help=True, cls=cls or GroupOfNoun)
    for line, operation in operations().items():
        first, _, verb = line.partition(" ")
        if first == noun.command and verb not in without:
            result.command(verb, help=operation.help, short_help=operation.summary, epilog=STATUSES)(
                _command(operation)
            )
    return result


def _command(operation: Operation) -> Callable[..., None]:
    def run(**values: Any) -> None:
        from app.cli.remote.perform import perform

        perform(operation, values)

    run.__name__ = operation.line.replace(" ", "_")
    parameters = sorted(_parameters(operation), key=lambda one: one.default is not Parameter.empty)
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(operation: Operation) -> Iterator[Parameter]:
    """Parameters of a command: arguments of the path, then of the body; then options."""
    get, last = operation.method == "GET", operation.parameters[-1:]
    newest = get and not (operation.fields or operation.arguments or set(last) & set(NAMED))
    for name in operation.parameters:
        yield _parameter(
            name, Annotated[str, place(operation, name)], NEWEST if newest and name in last else Parameter.empty
        )
    for name in operation.arguments:
        argument = typer.Argument(help=operation.places[name], autocompletion=COMPLETIONS[name])
        yield _parameter(name, Annotated[str, argument])
    for option in operation.options:
        yield _parameter(option.name, _option(operation, option), None)
    further: tuple[tuple[str, Any, Any, Any], ...] = (
        ("document", Body, Parameter.empty, operation.document),
        ("fields", Fields, None, operation.fields),
        ("file", File, None, operation.body and not operation.document),
        ("limit", Limit, ROWS, operation.columns),
        ("all", All, False, operation.columns),
        ("watch", Watch, False, get and not operation.file and operation.result is None),
        ("wait", Wait, True, operation.result),
        ("out", Out, Path(operation.file), operation.file),
        ("output", Output, None, not operation.file and operation.method != "DELETE"),
        ("no_headers", NoHeaders, False, operation.columns),
        ("as_json", AsJson, False, True),
        ("url", Url, SERVICE, True),
    )
    for name, annotation, default, wanted in further:
        if wanted:
            yield _parameter(name, annotation, default)


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def place(operation: Operation, name: str) -> Any:
    """Typer argument of a path parameter, with completion from the service."""
    collection = operation.collection(name)
    fixed: tuple[str, ...] = () if name in (*NAMED, "iteration") else (NEWEST,)
    suffix = ", or newest" if fixed else ""
    if fixed and not collection.startswith("/workloads/"):
        suffix = ", its first 6 or more digits, newest, or WORKLOAD@newest"
    if collection.endswith("/agents"):
        fixed, suffix = (NEWEST, CHAMPION), ", newest or champion"
    completion = None if name == "iteration" else names_of(collection, name, fixed)
    return typer.Argument(help=f"{operation.places[name].rstrip('.')}{suffix}.", autocompletion=completion)


def _option(operation: Operation, option: Option) -> Any:
    schema = next((one for one in option.schema.get("anyOf", ()) if one.get("type") != "null"), option.schema)
    kind: Any = TYPES.get(schema["type"], str)
    if "enum" in schema:
        kind = Literal.__getitem__(tuple(schema["enum"]))
    text = option.schema["description"]
    text += " Repeatable." if schema["type"] == "array" else ""
    text += f" [default: {operation.fixed[option.name]}]" if option.name in operation.fixed else ""
    name = f"--{option.name.replace('_', '-')}"
    return Annotated[kind | None, typer.Option(name, help=text, autocompletion=COMPLETIONS.get(option.name))]
