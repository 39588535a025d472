"""Commands that make one request: the request, and its response as a table, a tree, JSON or a file."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.charts.text import UNITS, moment, number, percent
from app.cli.operations import Column, Operation
from app.cli.remote import train as bar
from app.cli.remote.evaluate import words
from app.cli.remote.request import content_of, path_of
from app.cli.remote.service import Json, RefusedError, Service
from app.cli.remote.train import Bar, progress
from app.database.backup_sqlite import BackupError
from app.database.backup_sqlite import written as whole

# Lists are tables with one line per row: long cells are truncated, except names and states.


STATES = ("state", "outcome")
"""Members that are never truncated, as users search for them; the first column isn't either, as users type it again."""


def table(columns: Sequence[Column], items: Iterable[Json], now: datetime | None = None) -> Table:
    """Table with a row per item; empty columns are left out, except names and states. ``now`` is the time for ages."""
    rows = [[cell(column.member, item, now or datetime.now(UTC)) for column in columns] for item in items]
    whole = [not index or column.member in STATES for index, column in enumerate(columns)]
    kept = [index for index in range(len(columns)) if whole[index] or any(row[index] for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index in kept:
        longest = max([len(columns[index].head), *(len(row[index]) for row in rows)])
        made.add_column(columns[index].head, no_wrap=whole[index], overflow="ellipsis")
        made.columns[-1].min_width = longest if whole[index] else None
    for row in rows:
        made.add_row(*(Text(row[index], no_wrap=True, overflow="ellipsis") for index in kept))
    return made


def cell(member: str, item: Json, now: datetime) -> str:
    """Text of a member of an item, formatted by its name: times as ages, shares in per cent; empty for None."""
    value = _member(item, member.split("."))
    if value is None or value == []:
        return ""
    if member == "at" or member.endswith("_at"):
        return lasting((now - datetime.fromisoformat(value)).total_seconds())
    if member.endswith("_until"):
        return moment(datetime.fromisoformat(value))
    if member == "seconds":
        return lasting(value)
    return percent(value, 0) if member == "progress" else plain(value)


def plain(value: Any) -> str:
    """A scalar, or a list of scalars, on one line."""
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 6) if isinstance(value, float) else " ".join(str(value).split())


def lasting(seconds: float) -> str:
    """A duration given in seconds, rounded down to its largest unit: ``3 min``."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    return f"{max(seconds, 0) // size:.0f} {unit}"


def _member(item: Any, place: Sequence[str]) -> Any:
    """The nested member at a path of names, None if it is missing; for a list, a list of its items' members."""
    for index, name in enumerate(place):
        if isinstance(item, list):
            return [found for one in item if (found := _member(one, place[index:])) is not None]
        item = item.get(name) if isinstance(item, dict) else None
    return item


# A single object is printed as an indented tree, whatever members its kind has.


MOST = 20
"""Number of entries of a list that are printed; ``--json`` prints all."""


def tree(value: Any, indent: str = "") -> Iterator[str]:
    """Lines of a JSON value as an indented tree; empty members are left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not (member is None or member in ("", [], {})):
                yield from _tree_member(f"{indent}{name}:", member, indent)
    elif isinstance(value, list):
        for member in value[:MOST]:
            first, *rest = [*tree(member, indent + "  ")] or [f"{indent}  –"]
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
        if len(value) > MOST:
            yield f"{indent}… {len(value) - MOST:,} more (--json has all)"
    else:
        yield f"{indent}{plain(value)}"


def _tree_member(head: str, member: Any, indent: str) -> Iterator[str]:
    nested = isinstance(member, dict) or (isinstance(member, list) and any(isinstance(x, dict | list) for x in member))
    if not nested:
        yield f"{head} {_inline(member)}"
        return
    within = [*tree(member, indent + "  ")]
    yield head if within else f"{head} none"
    yield from within


def _inline(member: Any) -> str:
    if not isinstance(member, list) or len(member) <= MOST:
        return plain(member)
    return f"{plain(member[:MOST])}, … {len(member) - MOST:,} more (--json has all)"


# Upload and export of sample files, with a progress bar of bytes.


PIECE = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
FORMATS = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "jsonl": "application/x-ndjson",
    "json": "application/json",
    "swf": "application/x-swf",
    "wfformat": "application/vnd.wfformat+json",
}
"""Media types by file suffix."""


def upload(
    url: str,
    workload: str,
    files: Sequence[Path],
    format_: str | None,
    query: Json,
    *,
    as_json: bool,
    output: Console | None = None,
    notes: Console | None = None,
) -> None:
    """Upload files one by one, streaming each; ``format_``: suffix that names the format, None: each file's own.

    Raises:
        RefusedError, UnreachableError: a request fails.
        typer.BadParameter: a file's format is unknown.
    """
    output, notes = output or Console(), notes or Console(stderr=True)
    media = [_media_type(file, format_) for file in files]
    with Service(url) as service:
        for file, media_type in zip(files, media, strict=True):
            headers = {"Content-Type": media_type} | ({"Content-Encoding": "gzip"} if _is_gzip(file) else {})
            with progress(notes, file.name) as bar:
                path = f"/workloads/{quote(workload, safe='')}/samples"
                answer = service.call("POST", path, params=query, content=_pieces(file, bar), headers=headers)
            text: Any = json.dumps(answer) if as_json else Text("\n".join(tree(answer)))
            output.print(text, soft_wrap=True, markup=False, highlight=False)


def export(url: str, workload: str, out: Path | None, format_: str | None, execution: str | None) -> None:
    """Write a workload's samples to a file, atomically, or to standard output (None).

    ``format_``: suffix that names the format, None: by the file's name. ``execution``: the only execution, None: all.

    Raises:
        RefusedError, UnreachableError: the request fails.
        typer.BadParameter: the format is unknown, or the file can't be written.
    """
    media_type = _media_type(out or Path("samples.csv"), format_)
    params = {} if execution is None else {"execution": execution}
    path = f"/workloads/{quote(workload, safe='')}/samples"
    with Service(url) as service:
        pieces = service.stream(path, params=params, headers={"Accept": media_type})
        if out is not None:
            written(out, pieces)
            return
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def written(out: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces of bytes to a file atomically: to a temporary file beside it, which replaces it at the end.

    Raises:
        typer.BadParameter: it can't be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with whole(out, force=True) as beside, beside.open("wb") as file:
            file.writelines(pieces)
    except (OSError, BackupError) as error:
        raise typer.BadParameter(f"{out}: {getattr(error, 'strerror', None) or error}") from error


def _pieces(file: Path, bar: Bar) -> Iterator[bytes]:
    size, sent = file.stat().st_size, 0
    with file.open("rb") as handle:
        while piece := handle.read(PIECE):
            yield piece
            sent += len(piece)
            done = min(sent / max(size, 1), 1.0)
            bar.update(done, ", ".join(filter(None, (f"{sent / 1e6:,.1f} MB", bar.remaining_time(done)))))


def _media_type(file: Path, format_: str | None) -> str:
    ends = format_ or file.name.removesuffix(".gz").rpartition(".")[2]
    if ends not in FORMATS:
        raise typer.BadParameter(f"{file}: its name tells no format; say --format: {', '.join(FORMATS)}")
    return FORMATS[ends]


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(len(GZIP_MAGIC)) == GZIP_MAGIC


# Requests of operations, and their printed responses.


PAGE = 500
PIPED_COLUMNS = 10_000
"""Width in characters of tables that are not written to a terminal: wider than any row."""
WATCH_SECONDS = 1.0


def perform(operation: Operation, values: Json, output: Console | None = None, notes: Console | None = None) -> None:
    """Make an operation's request and print its response to `output`, everything else to `notes`.

    Args:
        operation: the operation.
        values: arguments and options of the command, by name.
        output: console for the response; None: standard output.
        notes: console for messages; None: standard error.

    Raises:
        RefusedError, UnreachableError: the request fails.
        typer.BadParameter: a file or a member of the request can't be read.
    """
    if output is None:
        output = Console()
        if not output.is_terminal and "COLUMNS" not in os.environ:  # in a pipe nothing is cut: `grep` would not find it
            output.width = PIPED_COLUMNS
    notes = notes or Console(stderr=True)
    content = content_of(operation, values)
    with Service(values["url"]) as service:
        path, method = path_of(service, operation.path, values), operation.method
        if operation.columns:
            _print_watching(values, output, lambda: _list_parts(service, operation, path, content, values))
        elif operation.file:
            written(values["out"], service.stream(path, **content))
            _done(values, {"file": str(values["out"])}, f"{operation.line.split()[-1]}: {values['out']}", output, notes)
        elif method == "DELETE":
            service.send(method, path, **content)
            named = {name: values[name] for name in operation.parameters}
            _done(values, named, operation.deletion_message(values), output, notes)
        elif operation.result is not None:
            answer = _result(service, operation, service.call(method, path, **content), values, notes)
            for part in _render_answer(answer, values):
                _print(output, part)
        else:
            _print_watching(values, output, lambda: _render_answer(service.call(method, path, **content), values))


def _list_parts(service: Service, operation: Operation, path: str, content: Json, values: Json) -> Iterator[Any]:
    """Printable parts of a list: a line of JSON per item, or one table."""
    items = _items(service, path, content, None if values["all"] else values["limit"])
    if values["as_json"]:
        yield from (json.dumps(item) for item in items)
        return
    rows = list(items)
    yield table(operation.columns, rows) if rows else Text("none")
    if not values["all"] and len(rows) == values["limit"]:
        yield Text(f"the first {len(rows):,}; --all has all")


def _items(service: Service, path: str, content: Json, most: int | None) -> Iterator[Json]:
    """The first ``most`` items of a list, page by page; None: all."""
    content = {"params": {**content["params"], "limit": min(most or PAGE, PAGE)}}

    def pages() -> Iterator[Json]:
        page = service.call("GET", path, **content)
        yield from page["items"]
        while page["next"]:
            page = service.call("GET", page["next"])
            yield from page["items"]

    return islice(pages(), most)


def _render_answer(answer: Json, values: Json) -> Iterator[Any]:
    values["ended"] = answer.get("finished_at") is not None
    if values["as_json"]:
        yield json.dumps(answer)
    else:
        yield Text("\n".join(tree(answer)))


def _done(values: Json, document: Json, words: str, output: Console, notes: Console) -> None:
    """Print what the operation has done, if its response is empty."""
    if values["as_json"]:
        _print(output, json.dumps(document))
    else:
        notes.print(Text(words), soft_wrap=True)


def _print(output: Console, part: Any) -> None:
    """Print texts without wrapping, and tables in the available width."""
    output.print(part, soft_wrap=isinstance(part, str | Text), markup=False, highlight=False)


def _print_watching(values: Json, output: Console, parts: Callable[[], Iterator[Any]]) -> None:
    """Print ``parts`` once; with ``--watch``, again after each change: in place on a terminal, else below."""
    if not values.get("watch"):
        for part in parts():
            _print(output, part)
        return
    if output.is_terminal and not values["as_json"]:
        with Live(console=output, auto_refresh=False) as live:
            while True:
                live.update(Group(*parts()), refresh=True)
                if values.get("ended"):
                    return
                time.sleep(WATCH_SECONDS)
    before: list[str] = []
    while True:
        found = [*_render_parts(output, parts())]
        for line in found if found != before else ():
            _print(output, Text(line))
        if values.get("ended"):
            return
        before = found
        time.sleep(WATCH_SECONDS)


def _render_parts(output: Console, parts: Iterator[Any]) -> Iterator[str]:
    for part in parts:
        with output.capture() as capture:
            _print(output, part)
        yield capture.get().removesuffix("\n")


def _result(service: Service, operation: Operation, job: Json, values: Json, notes: Console) -> Json:
    """The job at its end, or its result; Ctrl-C cancels the job that this command started, and is raised again."""
    if not values.get("wait", True):
        return job
    try:
        ended = bar.follow(notes, job["type"], service.follow(job["id"]), words)
    except KeyboardInterrupt:
        if operation.result:
            with suppress(RefusedError):  # it has ended meanwhile
                service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return service.call("GET", operation.result.format(**values, **ended["result"])) if operation.result else ended
