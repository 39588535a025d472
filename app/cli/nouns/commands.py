"""Commands made of the catalogue of nouns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urljoin

import typer

from app.cli.nouns.contract import CHAMPION, KEYS, NAMED, NEWEST, Action, Noun
from app.cli.options import SERVICE, STATUSES, AsJson, Url

# Completion by what the service has: it must answer at once, and is silent where it does not.


SECONDS = 0.5
MOST = 100


def names_of(collection: str, argument: str, fixed: Sequence[str] = ()) -> Callable[..., list[str]]:
    """Completes an argument by the members of a list, whose path may have arguments before it in braces."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from http.client import HTTPException

        before = {name: quote(str(value), safe="") for name, value in ctx.params.items() if value is not None}
        try:
            items = _items(ctx.params.get("url"), collection.format(**before))
        except (OSError, ValueError, LookupError, HTTPException):
            items = []
        found = [*fixed, *(str(item.get(KEYS[argument], "")) for item in items)]
        return [name for name in found if name.startswith(incomplete)]

    return complete


def _items(url: str | None, path: str) -> list[dict[str, Any]]:
    """The list's first items.

    Raises:
        OSError, HTTPException: it does not answer in time, or refuses.
        ValueError: what it answers is no list.
    """
    from urllib.request import ProxyHandler as Proxies
    from urllib.request import Request, build_opener

    base = url or os.environ.get("STEWARD_URL") or SERVICE
    if not base.startswith(("http://", "https://")):
        raise ValueError(base)
    key = os.environ.get("STEWARD_API_KEY", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = Request(urljoin(base, f"{path}?limit={MOST}"), headers=headers)  # noqa: S310 # HTTP, as checked above
    with build_opener(Proxies({})).open(request, timeout=SECONDS) as answer:
        items: list[dict[str, Any]] = json.load(answer)["items"]
    return items


workloads = names_of("/workloads", "workload")
executions = names_of("/workloads/{workload}/samples", "execution")
COMPLETIONS = {"workload": workloads, "execution": executions}


# Commands that follow from what is said of a noun: their arguments and options, in one order everywhere.


PLACES = {
    "workload": "Name of the workload.",
    "id": "Id, or newest.",
    "run": "Id of the run, or newest.",
    "series": "Name of the series.",
    "iteration": "Iteration, counting from 0.",
    "execution": "Name of the execution.",
}
VERSIONS = {"models": "Version number, or newest.", "agents": "Version number, newest or champion."}
Fields = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MEMBER=VALUE]...", help="Request fields, nested with dots: allocation.gpus=4"),
]
Document = Annotated[Path, typer.Argument(metavar="FILE", help="JSON file; - for standard input.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help="JSON file with further fields; - for standard input.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows.")]
All = Annotated[bool, typer.Option("--all", help="Show all rows.")]
Watch = Annotated[bool, typer.Option("--watch", help="Print again on each change, until it ends or Ctrl-C.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the job to end.")]
Out = Annotated[Path, typer.Option(help="File to write.")]
Workload = Annotated[str, typer.Argument(help="Name of the workload.", autocompletion=workloads)]
ROWS = 50


def group(noun: Noun, cls: Any = None) -> typer.Typer:
    """A group with a command for each action of a noun."""
    made = typer.Typer(name=noun.name, help=noun.help, no_args_is_help=True, cls=cls)
    made.callback()(lambda: None)
    for action in noun.actions:
        made.command(action.verb, help=action.help, epilog=STATUSES)(_command(noun, action))
    return made


def _command(noun: Noun, action: Action) -> Callable[..., None]:
    def run(**said: Any) -> None:
        from app.cli.remote.perform import perform

        perform(action, said)

    run.__name__ = f"{noun.name}_{action.verb}"
    run.__signature__ = Signature(sorted(_parameters(action), key=_required))  # type: ignore[attr-defined]
    return run


def _required(parameter: Parameter) -> bool:
    return parameter.default is not Parameter.empty


def _parameters(action: Action) -> Iterator[Parameter]:
    """Arguments of the path, then of the body; then options."""
    for name in action.arguments:
        default = NEWEST if action.newest and name == action.arguments[-1] else Parameter.empty
        yield _parameter(name, Annotated[str, _place(action, name)], default)
    for name in action.given:
        yield _parameter(name, Annotated[str, typer.Argument(help=PLACES[name], autocompletion=COMPLETIONS[name])])
    if action.document:
        yield _parameter("document", Document)
    if action.fields:
        yield _parameter("fields", Fields, None)
        if not action.document and action.method != "GET":
            yield _parameter("file", File, None)
    for option in action.options:
        name = f"--{option.name}"
        said = typer.Option(name, help=option.help, autocompletion=COMPLETIONS.get(option.name))
        yield _parameter(option.name, Annotated[option.kind | None, said], None)
    yield from _ways(action)


def _ways(action: Action) -> Iterator[Parameter]:
    """Options that say how the answer is shown: rows, watching, waiting, file, JSON, and the address of the service."""
    if action.columns:
        yield _parameter("limit", Limit, ROWS)
        yield _parameter("all", All, False)
    if action.method == "GET" and not action.suffix and action.result is None:
        yield _parameter("watch", Watch, False)
    if action.result:
        yield _parameter("wait", Wait, True)
    if action.suffix:
        yield _parameter("out", Out, Path(f"{action.verb}{action.suffix}"))
    yield _parameter("as_json", AsJson, False)
    yield _parameter("url", Url, SERVICE)


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _place(action: Action, name: str) -> Any:
    """An argument of the path; what there is completes it."""
    collection = action.collection(name)
    told = VERSIONS.get(collection.rpartition("/")[2]) if name == "version" else PLACES[name]
    fixed = (NEWEST, CHAMPION) if collection.endswith("/agents") else (NEWEST,) if name not in NAMED else ()
    completion = None if name == "iteration" else names_of(collection, name, fixed)
    return typer.Argument(help=told, autocompletion=completion)
