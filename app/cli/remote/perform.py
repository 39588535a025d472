"""Commands on nouns, performed through the API."""

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
from app.cli.nouns.contract import Action, Column
from app.cli.remote import train as bar
from app.cli.remote.evaluate import words
from app.cli.remote.request import content_of, path_of
from app.cli.remote.service import Json, RefusedError, Service
from app.cli.remote.train import Bar, progress
from app.database.backup_sqlite import BackupError
from app.database.backup_sqlite import written as whole

# Lists as tables of a line a row: what is too long is cut, never wrapped; and what is typed again is not cut.


def table(columns: Sequence[Column], items: Iterable[Json], now: datetime | None = None) -> Table:
    """A row for each item; columns that are empty throughout are left out, but for those that name it."""
    rows = [[cell(column, item, now or datetime.now(UTC)) for column in columns] for item in items]
    kept = [index for index, column in enumerate(columns) if column.whole or any(row[index] for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index in kept:
        longest = max([len(columns[index].head), *(len(row[index]) for row in rows)])
        made.add_column(columns[index].head, no_wrap=columns[index].whole, overflow="ellipsis")
        made.columns[-1].min_width = longest if columns[index].whole else None
    for row in rows:
        made.add_row(*(Text(row[index], no_wrap=True, overflow="ellipsis") for index in kept))
    return made


def cell(column: Column, item: Json, now: datetime) -> str:
    """A value as it is written."""
    value = _member(item, column.member.split("."))
    if value is None or value == []:
        return ""
    match column.form:
        case "age":
            return lasting((now - datetime.fromisoformat(value)).total_seconds())
        case "moment":
            return moment(datetime.fromisoformat(value))
        case "lasting":
            return lasting(value)
        case "share":
            return percent(value, 0)
        case "flag":
            return "yes" if value else ""
        case _:
            return plain(value)


def plain(value: Any) -> str:
    """A scalar, or several, on one line."""
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 6) if isinstance(value, float) else " ".join(str(value).split())


def lasting(seconds: float) -> str:
    """``3 min``: whole numbers of the largest unit."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    return f"{max(seconds, 0) // size:.0f} {unit}"


def _member(item: Any, place: Sequence[str]) -> Any:
    """What lies at a place; of a list, of each that it holds."""
    for index, name in enumerate(place):
        if isinstance(item, list):
            return [found for one in item if (found := _member(one, place[index:])) is not None]
        item = item.get(name) if isinstance(item, dict) else None
    return item


# One thing as an indented tree: whatever a kind puts into it is told as it is.


MOST = 20
"""So many entries of a list are told; ``--json`` has all."""


def tree(value: Any, indent: str = "") -> Iterator[str]:
    """Lines; members that hold nothing are left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not _empty(member):
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


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


# Files of samples, to the service and from it, with a bar of the bytes.


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
"""Media types by what a name ends in."""


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
    """Send files one by one, each as it is read.

    Raises:
        RefusedError, UnreachableError: see there.
        typer.BadParameter: a name does not tell a file's format.
    """
    output, notes = output or Console(), notes or Console(stderr=True)
    media = [_media_type(file, format_) for file in files]
    with Service(url) as service:
        for file, media_type in zip(files, media, strict=True):
            headers = {"Content-Type": media_type} | ({"Content-Encoding": "gzip"} if _packed(file) else {})
            with progress(notes, file.name) as bar:
                path = f"/workloads/{quote(workload, safe='')}/samples"
                answer = service.call("POST", path, params=query, content=_pieces(file, bar), headers=headers)
            said: Any = json.dumps(answer) if as_json else Text("\n".join(tree(answer)))
            output.print(said, soft_wrap=True, markup=False, highlight=False)


def export(url: str, workload: str, out: Path | None, format_: str | None, execution: str | None) -> None:
    """Write a workload's samples to a file, which is whole or is not there, or to standard output.

    Raises:
        RefusedError, UnreachableError: see there.
        typer.BadParameter: a name does not tell a file's format.
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
    """Write a file: beside the one that is meant, whose place it takes at the end.

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
            bar.update(done, ", ".join(filter(None, (f"{sent / 1e6:,.1f} MB", bar.left(done)))))


def _media_type(file: Path, format_: str | None) -> str:
    ends = format_ or file.name.removesuffix(".gz").rpartition(".")[2]
    if ends not in FORMATS:
        raise typer.BadParameter(f"{file}: its name tells no format; say --format: {', '.join(FORMATS)}")
    return FORMATS[ends]


def _packed(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(len(GZIP_MAGIC)) == GZIP_MAGIC


# An action done: the call, and its answer told.


PAGE = 500
PIPED_COLUMNS = 10_000
"""Width of tables that are not written to a terminal: more than any row needs."""
WATCH_SECONDS = 1.0


def perform(action: Action, said: Json, output: Console | None = None, notes: Console | None = None) -> None:
    """Do it. What is answered goes to `output`, all else to `notes`.

    Raises:
        RefusedError, UnreachableError: see there.
        typer.BadParameter: what is to be sent can't be read.
    """
    output, notes = output or _standard_output(), notes or Console(stderr=True)
    content = content_of(action, said)
    with Service(said["url"]) as service:
        path = path_of(service, action, said)
        if action.columns:
            _watched(said, output, lambda: _listed(service, action, path, content, said))
        elif action.suffix:
            written(said["out"], service.stream(path, **content))
            _done(said, {"file": str(said["out"])}, f"{action.verb}: {said['out']}", output, notes)
        elif action.told:
            service.send(action.method, path, **content)
            named = {name: said[name] for name in action.arguments}
            _done(said, named, action.told.format(**said), output, notes)
        elif action.result is not None:
            answer = service.call(action.method, path, **content)
            _tell(_result(service, action, answer, said, notes), said, output)
        else:
            _watched(said, output, lambda: _shown(service.call(action.method, path, **content), said))


def _standard_output() -> Console:
    """As wide as the terminal or `COLUMNS`. In a pipe nothing is cut: `grep` would not find it."""
    output = Console()
    if not output.is_terminal and "COLUMNS" not in os.environ:
        output.width = PIPED_COLUMNS
    return output


def _listed(service: Service, action: Action, path: str, content: Json, said: Json) -> Iterator[Any]:
    """What is to be printed of a list: lines of JSON as they come, or a table."""
    items = _items(service, path, content, None if said["all"] else said["limit"])
    if said["as_json"]:
        yield from (json.dumps(item) for item in items)
        return
    rows = list(items)
    yield table(action.columns, rows) if rows else Text("none")
    if not said["all"] and len(rows) == said["limit"]:
        yield Text(f"the first {len(rows):,}; --all has all")


def _items(service: Service, path: str, content: Json, most: int | None) -> Iterator[Json]:
    """Items of all pages, or the first of them."""
    content = {"params": {**content["params"], "limit": min(most or PAGE, PAGE)}}

    def pages() -> Iterator[Json]:
        page = service.call("GET", path, **content)
        yield from page["items"]
        while page["next"]:
            page = service.call("GET", page["next"])
            yield from page["items"]

    return islice(pages(), most)


def _shown(answer: Json, said: Json) -> Iterator[Any]:
    said["ended"] = answer.get("finished_at") is not None
    if said["as_json"]:
        yield json.dumps(answer)
    else:
        yield Text("\n".join(tree(answer)))


def _done(said: Json, document: Json, words: str, output: Console, notes: Console) -> None:
    """Say what was done where nothing is answered."""
    if said["as_json"]:
        _print(output, json.dumps(document))
    else:
        notes.print(Text(words), soft_wrap=True)


def _tell(answer: Json, said: Json, output: Console) -> None:
    for part in _shown(answer, said):
        _print(output, part)


def _print(output: Console, part: Any) -> None:
    """Texts as they are, however long their lines; tables as wide as there is room."""
    output.print(part, soft_wrap=isinstance(part, str | Text), markup=False, highlight=False)


def _watched(said: Json, output: Console, parts: Callable[[], Iterator[Any]]) -> None:
    """Print once; or, to be watched, anew when it has changed: in place on a terminal, below elsewhere."""
    if not said.get("watch"):
        for part in parts():
            _print(output, part)
        return
    if output.is_terminal and not said["as_json"]:
        with Live(console=output, auto_refresh=False) as live:
            while True:
                live.update(Group(*parts()), refresh=True)
                if said.get("ended"):
                    return
                time.sleep(WATCH_SECONDS)
    before: list[str] = []
    while True:
        found = [*_rendered(output, parts())]
        for line in found if found != before else ():
            _print(output, Text(line))
        if said.get("ended"):
            return
        before = found
        time.sleep(WATCH_SECONDS)


def _rendered(output: Console, parts: Iterator[Any]) -> Iterator[str]:
    for part in parts:
        with output.capture() as capture:
            _print(output, part)
        yield capture.get().removesuffix("\n")


def _result(service: Service, action: Action, job: Json, said: Json, notes: Console) -> Json:
    """What came of a job; it is cancelled where who asked for it waits no longer."""
    if not said.get("wait", True):
        return job
    try:
        ended = bar.follow(notes, job["type"], service.follow(job["id"]), words)
    except KeyboardInterrupt:
        if action.result:
            with suppress(RefusedError):  # it has ended meanwhile
                service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return service.call("GET", action.result.format(**said, **ended["result"])) if action.result else ended
