"""Commands that follow from what is said of a noun: their arguments and options, in one order everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.nouns.contract import CHAMPION, NAMED, NEWEST, Action, Noun
from app.cli.nouns.names import COMPLETIONS, names_of, workloads
from app.cli.options import SERVICE, STATUSES, AsJson, Url

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
        from app.cli.remote.nouns.perform import perform

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
    """How the answer is told."""
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
