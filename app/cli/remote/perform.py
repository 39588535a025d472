"""Commands that make one request: the request, and its response on standard output or in a file."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from app.cli.operations import KEYS, Operation
from app.cli.options import Format, require_one_format
from app.cli.remote import train as bar
from app.cli.remote.evaluate import words
from app.cli.remote.output import console, document, list_parts, print_parts, tree
from app.cli.remote.request import content_of, path_of
from app.cli.remote.service import Json, RefusedError, Service
from app.cli.remote.train import Bar, progress
from app.database.backup_sqlite import BackupError
from app.database.backup_sqlite import written as whole

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
    """Upload files one by one, streaming each; ``format_``: suffix that names the format, None: each file's own;
    ``query``: query parameters of each request.

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
            print_parts(output, [json.dumps(answer) if as_json else Text("\n".join(tree(answer)))])


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
    require_one_format(values.setdefault("output", None), as_json=values["as_json"])
    output, notes = output or console(), notes or Console(stderr=True)
    content = content_of(operation, values)
    with Service(values["url"]) as service:
        path, method = path_of(service, operation.path, values), operation.method
        if operation.columns:
            _print_watching(
                values, output, lambda: _list_parts(service, operation, path, content, values, output, notes)
            )
        elif operation.file:
            written(values["out"], service.stream(path, **content))
            _done(values, {"file": str(values["out"])}, f"{operation.line.split()[-1]}: {values['out']}", output, notes)
        elif method == "DELETE":
            service.send(method, path, **content)
            named = {name: values[name] for name in operation.parameters}
            _done(values, named, operation.deletion_message(values), output, notes)
        elif operation.result is not None:
            answer = _result(service, operation, service.call(method, path, **content), values, notes)
            print_parts(output, _render_answer(answer, values))
        else:
            _print_watching(values, output, lambda: _render_answer(service.call(method, path, **content), values))


def _list_parts(
    service: Service, operation: Operation, path: str, content: Json, values: Json, output: Console, notes: Console
) -> Iterator[Any]:
    """Printable parts of a list, by ``--json`` or ``--output``; that it ends at the limit is printed to `notes`."""
    most, count = None if values["all"] else values["limit"], 0
    items = _items(service, path, content, most)
    if values["as_json"]:
        for item in items:
            count += 1
            yield json.dumps(item)
    else:
        form: Format = values["output"] or "table"
        rows = list(items)
        headers, full_ids, count = not values["no_headers"], not output.is_terminal, len(rows)
        yield from list_parts(operation.columns, rows, form, output.width, headers=headers, full_ids=full_ids)
    if count == most and not values.get("noted"):
        values["noted"] = True
        notes.print(Text(f"the first {count:,}; --all has all"))


def _items(service: Service, path: str, content: Json, most: int | None) -> Iterator[Json]:
    """The first ``most`` items of a list, page by page; None: all. Raises RefusedError if the service refuses a call,
    and UnreachableError if it doesn't respond."""
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
        keys = (answer[name] for name in dict.fromkeys(KEYS.values()) if name in answer)
        yield from document(answer, values["output"] or "table", str(next(keys, "")))


def _done(values: Json, result: Json, words: str, output: Console, notes: Console) -> None:
    """Print what the operation has done, if its response is empty."""
    if values["as_json"]:
        print_parts(output, [json.dumps(result)])
    else:
        notes.print(Text(words), soft_wrap=True)


def _print_watching(values: Json, output: Console, parts: Callable[[], Iterator[Any]]) -> None:
    """Print ``parts`` once; with ``--watch``, again after each change: in place on a terminal, else below."""
    if not values.get("watch"):
        print_parts(output, parts())
        return
    if output.is_terminal and not values["as_json"] and values["output"] in (None, "table", "wide"):
        with Live(console=output, auto_refresh=False) as live:
            while True:
                live.update(Group(*parts()), refresh=True)
                if values.get("ended"):
                    return
                time.sleep(WATCH_SECONDS)
    before: list[str] = []
    while True:
        results = [*_render_parts(output, parts())]
        for line in results if results != before else ():
            print_parts(output, [line])
        if values.get("ended"):
            return
        before = results
        time.sleep(WATCH_SECONDS)


def _render_parts(output: Console, parts: Iterator[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        with output.capture() as capture:
            print_parts(output, [part])
        yield capture.get().removesuffix("\n")


def _result(service: Service, operation: Operation, job: Json, values: Json, notes: Console) -> Json:
    """The job at its end, or its result; Ctrl-C cancels the job that this command started, and is raised again. Raises
    RefusedError or UnreachableError if a request or the job fails."""
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
