"""``steward init``: builds, validates and writes a spec, and prints the next steps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from rich.console import Console

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.iterative.commands.ask import Questions, ask
from app.kinds.iterative.commands.guess import guess, read_log
from app.kinds.iterative.spec import IterativeSpec


class CommandArguments(NamedTuple):
    """Arguments of the command line, ``deadline`` in seconds. None: absent, to be asked or inferred."""

    name: str | None
    log: Path | None
    iterations: int | None
    deadline: float | None


def write(args: CommandArguments, out: Path, *, force: bool, as_json: bool, notes: Console | None = None) -> None:
    """Write a spec to a file, with notes on standard error.

    Raises:
        InvalidInput: the log is invalid, the file exists and ``force`` is False, or the spec is invalid.
    """
    notes = notes or Console(stderr=True)
    if out.exists() and not force:
        raise InvalidInput(
            [FieldIssue(f"/{out}", "is there already; name another with --out, or replace it with --force", None)]
        )
    spec = _check_spec(_from_log(args, args.log, notes) if args.log is not None else _from_answers(args, notes))
    text = json.dumps(spec, indent=2)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")
    except OSError as error:
        raise InvalidInput([FieldIssue(f"/{out}", str(error.strerror), None)]) from error
    if as_json:
        Console().print(json.dumps(spec), soft_wrap=True, markup=False, highlight=False)
    _print_note(notes, f"wrote {out}; next:")
    _print_note(notes, f"  steward workload create {out}")
    if args.log is not None:
        _print_note(notes, f"  steward samples create {spec['name']} {args.log}")


def _print_note(notes: Console, words: str) -> None:
    notes.print(words, markup=False, highlight=False, soft_wrap=True)


def _from_log(arguments: CommandArguments, log: Path, notes: Console) -> dict[str, Any]:
    result = guess(read_log(log), arguments.iterations, arguments.deadline)
    for reason in result.reasons:
        _print_note(notes, reason)
    return {"name": arguments.name or _slug(log.name.partition(".")[0]), "kind": "iterative", **result.spec}


def _from_answers(arguments: CommandArguments, notes: Console) -> dict[str, Any]:
    questions = Questions(notes)
    name = arguments.name or questions.text("Name of the workload?", "my-training")
    return {"name": _slug(name), "kind": "iterative", **ask(questions, arguments.iterations, arguments.deadline)}


def _slug(name: str) -> str:
    """Convert ``name`` to a valid workload name; ``my-training`` if no valid character is left."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:63] or "my-training"


def _check_spec(spec: dict[str, Any]) -> dict[str, Any]:
    try:
        IterativeSpec.model_validate(spec)
    except ValidationError as error:
        issues = [
            FieldIssue("/" + "/".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, "), None)
            for one in error.errors(include_url=False)
        ]
        raise InvalidInput(issues) from error
    return spec
