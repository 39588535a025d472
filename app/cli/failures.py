"""Errors of commands that call the service: a line with the problem and a remedy, and an exit status."""

from __future__ import annotations

import re
from typing import Any

from app.cli.options import ABSENT, FORBIDDEN, REFUSED, UNREACHABLE, visible
from app.nouns import NOUNS

Json = dict[str, Any]
MOST_FIELDS = 3
"""Number of invalid fields named in one line."""
LISTS = {
    noun.item: f"{noun.command} list{' WORKLOAD' if noun.path.startswith('/workloads/{') else ''}"
    for noun in NOUNS.values()
    if noun.command and noun.item
}
"""Command that lists a noun's items, by the name of one item in error messages."""
CREATES = {noun.tag: f"{noun.command} create" for noun in NOUNS.values() if noun.path.startswith("/workloads/{")}
UNAUTHORISED, CONFLICT = 401, 409
REMEDIES = {
    UNAUTHORISED: "set STEWARD_API_KEY to a key; `steward key create` makes one where the database is",
    403: "`steward key create --scopes …` makes a key that may, where the database is",
    429: "try again in a while",
}


class RefusedError(RuntimeError):
    """The service rejected a request, or a job failed; its text is the problem in one line, with a remedy.

    Attributes:
        problem: the problem document.
        status: HTTP status of the response; None for a failed job without one.
    """

    def __init__(self, problem: Json) -> None:
        self.problem = problem
        self.status: int | None = problem.get("status")
        super().__init__(visible(f"{problem.get('title', 'refused')}: {_detail(problem)}"))


class UnreachableError(RuntimeError):
    """The service's address doesn't respond."""


def misuse(error: Any) -> str:
    """One line about a usage error of click, with a hint to ``--help``."""
    path = error.ctx.command_path if error.ctx is not None else "steward"
    text = re.sub(r"is not a valid (?:int|integer)(?: range)?", "is not a whole number", error.format_message())
    text = re.sub(r"^Invalid value: |^Invalid value for '(.*?)'(?: \(env var: '.*?'\))?(: )", r"\1\2", text)
    text = text.rstrip(".")
    return f"{path}: {text}{'' if text.endswith('?') else ';'} see `{path} --help`"


def exit_status(error: RefusedError | UnreachableError) -> int:
    """Exit status for an error of a call: 3 unreachable, 5 not found, 6 not authorized, otherwise 1."""
    if isinstance(error, UnreachableError):
        return UNREACHABLE
    return {401: FORBIDDEN, 403: FORBIDDEN, 404: ABSENT}.get(error.status or 0, REFUSED)


def _detail(problem: Json) -> str:
    """The invalid fields with their values, or the detail of a problem without them or of a conflict; then a remedy."""
    status = problem.get("status")
    fields = problem.get("errors") or [] if status != CONFLICT else []
    text = "; ".join(map(_field_line, fields[:MOST_FIELDS])) or str(problem.get("detail", problem))
    text += f"; and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
    absent = re.match(r"(?:workload '(?P<of>[^']+)' has )?no (?P<noun>\w+)", text) if status == 404 else None
    if (
        absent
        and absent["noun"] in LISTS
        and (absent["of"] is None or "; " not in text or re.search("(POST|PUT) /", text))
    ):
        which = LISTS[absent["noun"]].replace("WORKLOAD", absent["of"] or "WORKLOAD")
        return f"{text.partition(';')[0]}; `steward {which}` lists them"
    remedy = REMEDIES.get(status or 0)
    if status == UNAUTHORISED:  # the remedy for API callers does not apply to commands
        text = text.partition("; ")[0]
    text = re.sub(
        rf"POST /workloads/([^/ ]+)/({'|'.join(CREATES)})(?![\w/])",
        lambda call: f"`steward {CREATES[call[2]]} {call[1]}`",
        text,
    )
    return "; ".join(filter(None, (text, remedy)))


def _field_line(field: Json) -> str:
    """One invalid field: ``/resources/0/minimum: must be 0 or greater, not -1``; long values are left out."""
    value, place = field.get("value"), field.get("pointer") or "/"
    if field["message"].startswith("unknown name;") and not isinstance(value, str):
        value = None  # it was given under the name, and says nothing about it
    shown = f", not {value!r}" if isinstance(value, str | int | float) and len(repr(value)) <= 60 else ""
    return f"{place}: {field['message']}{shown}"
