"""Files of samples, to the service and from it, with a bar of the bytes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.text import Text

from app.cli.remote.nouns.tree import tree
from app.cli.remote.progress_bar import Bar, progress
from app.cli.remote.service import Json, Service
from app.database.backups.contents import BackupError
from app.database.backups.contents import written as whole

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
