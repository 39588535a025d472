"""Import of samples from files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from app.charts.text import number
from app.cli.failures import exit_status
from app.cli.options import DONE, INTERRUPTED, REFUSED
from app.cli.remote import train
from app.cli.remote.perform import GZIP_MAGIC, PIECE
from app.cli.remote.service import NOT_FOUND, RefusedError, Service, UnreachableError
from app.kinds.contract.inputs import FieldIssue, InvalidInput, Refused, Sample, plain
from app.kinds.contract.kind import Kind
from app.kinds.registry import KINDS

# One file of samples, CSV or NDJSON, as it is read before it is uploaded.


MEDIA_TYPES: Mapping[str, str] = {
    ".csv": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
}
OWN_START = 1e8
"""Seconds; times below count from a start of their own."""
Words = Callable[[Sample, Any], Iterator[str]]
"""What is in an execution, a sentence each, given the workload's layout."""


class SampleFile(NamedTuple):
    """A file that was read.

    Attributes:
        path: where it stands.
        name: of the execution that it becomes.
        media_type: of its content, packed or not.
        packed: whether it is gzip.
        words: what is in it, a sentence each.
    """

    path: Path
    name: str
    media_type: str
    packed: bool
    words: tuple[str, ...]

    def pieces(self) -> Iterator[bytes]:
        """The file as it is."""
        with self.path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


def read(path: Path, kind: Kind, layout: Any, words: Words) -> SampleFile:
    """Check a file against the layout of a workload of a kind.

    Raises:
        InvalidInput: it can't be right; the line is named.
        OSError: it can't be read.
    """
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    if bare.suffix not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise InvalidInput([FieldIssue("", f"the name must end in {known}, or one of them and .gz", None)])
    media_type = MEDIA_TYPES[bare.suffix]
    reader = kind.samples.formats[media_type].reader(kind.samples(layout), bare.stem)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        (found,) = reader.read(_blocks(path, packed=packed))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput([FieldIssue("", f"is broken gzip: {error}", None)]) from error
    if isinstance(found, Refused):
        raise InvalidInput([found.issue])
    return SampleFile(path, bare.stem, media_type, packed, tuple(words(found, layout)))


def _blocks(path: Path, *, packed: bool) -> Iterator[bytes]:
    """Whole lines, without the end of the last."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while lines := file.readlines(PIECE):
            yield b"".join(lines).removesuffix(b"\n")


def since(start: float) -> str:
    """From when on a log tells; nothing where it counts from a start of its own."""
    return f" from {datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC" if start >= OWN_START else ""


def lasting(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    scales = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"))
    divisor, unit = next(((size, unit) for least, size, unit in scales if seconds >= least), (1, "seconds"))
    return f"{number(seconds / divisor)} {unit}"


def told(issue: FieldIssue) -> str:
    """``line 12, user: must be …, not 'x'``."""
    parts = issue.pointer.removeprefix("/").split("/")
    where = ["line " + parts[1], *parts[2:]] if parts[0] == "lines" else [issue.pointer] if issue.pointer else []
    value = "" if issue.value is None else f", not {plain(issue.value)!r}"
    return ": ".join(filter(None, [", ".join(where), issue.message + value]))


# Files of samples of one kind: check them, register their workload, upload, and have a model fitted.


Json = dict[str, Any]
VAIN = ("failed", "cancelled")


@dataclass(frozen=True)
class Options:
    """What may be said on the command line."""

    files: Sequence[Path]
    spec: Path
    check: bool
    url: str


class Import(NamedTuple):
    """What a kind says of its files.

    Attributes:
        kind: name of the workload's.
        words: what is in a file.
        model: what is to be known of a fitted model, as the service answers it, before it is trusted, a sentence each.
    """

    kind: str
    words: Words
    model: Callable[[Json], Iterator[str]]


def run(what: Import, options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Do it; the exit status. What was found goes to ``output``, progress and complaints to ``notes``."""
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        spec = _spec(what, options.spec, notes)
        files = None if spec is None else _files(what, options.files, KINDS[what.kind].layout(spec), output, notes)
        if spec is None or files is None:
            return REFUSED
        if not options.check:
            with Service(options.url) as service:
                _hand_over(what, service, spec, files, output, notes)
    except KeyboardInterrupt:
        notes.print("interrupted: what was uploaded is kept, and a fit goes on; the same command goes on from there")
        return INTERRUPTED
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(str(error), "red"), soft_wrap=True)
        return exit_status(error)
    return DONE


def _spec(what: Import, path: Path, notes: Console) -> Any | None:
    """The spec in a file; None, and complaints, where it is none."""
    try:
        return KINDS[what.kind].spec.model_validate_json(path.read_bytes())
    except OSError as error:
        _complain(notes, path, [FieldIssue("", str(error.strerror), None)])
    except ValidationError as error:
        issues = [
            FieldIssue("/" + "/".join(map(str, one["loc"])) if one["loc"] else "", one["msg"], _given(one))
            for one in error.errors(include_url=False)
        ]
        _complain(notes, path, issues)
    return None


def _given(error: Any) -> object:
    """The value that was given, where that says more than the message."""
    value = error["input"]
    return value if isinstance(value, str | int | float) and error["type"] != "json_invalid" else None


def _files(
    what: Import, paths: Sequence[Path], layout: Any, output: Console, notes: Console
) -> list[SampleFile] | None:
    """All files, told as they are read; None, and complaints, where one can't be right."""
    found = []
    for path in paths:
        try:
            file = read(path, KINDS[what.kind], layout, what.words)
        except InvalidInput as error:
            _complain(notes, path, error.errors)
            continue
        except OSError as error:
            _complain(notes, path, [FieldIssue("", str(error.strerror), None)])
            continue
        found.append(file)
        output.print(Text(str(path), "bold"), soft_wrap=True)
        for sentence in file.words:
            output.print(Text(f"  {sentence}"), soft_wrap=True)
    return found if len(found) == len(paths) and not _alike(found, notes) else None


def _alike(files: Sequence[SampleFile], notes: Console) -> bool:
    """Whether two files would be one execution; complaints."""
    first = dict[str, Path]()
    alike = [(file, first[file.name]) for file in files if first.setdefault(file.name, file.path) != file.path]
    for file, other in alike:
        accepted = f"would be execution {file.name!r}, as {other} would: rename one of them"
        _complain(notes, file.path, [FieldIssue("", accepted, None)])
    return bool(alike)


def _complain(notes: Console, path: Path, issues: Sequence[FieldIssue]) -> None:
    for issue in issues:
        notes.print(Text(f"{path}: {told(issue)}", "red"), soft_wrap=True)


def _hand_over(
    what: Import, service: Service, spec: Any, files: Sequence[SampleFile], output: Console, notes: Console
) -> None:
    """Register the workload where it isn't yet, upload, and have a model fitted where none has learned from the files.

    What is done already is told by the service alone: so whoever is stopped in the middle says the same again.

    Raises:
        RefusedError, UnreachableError: see there.
    """
    path = f"/workloads/{spec.name}"
    output.print(Text(_registered(service, spec, path)), soft_wrap=True)
    stored = max(_upload(service, path, file, output) for file in files)
    job, models = _last_fit(service, spec.name), service.call("GET", f"{path}/models?limit=1")["items"]
    known = job or next(iter(models), None)  # jobs are forgotten in time, models are not
    current = known is not None and _moment(known) >= stored
    goes_on = current and job is not None and job["state"] != "succeeded"
    if current and models and not goes_on:
        output.print(Text(f"nothing new: model {models[0]['version']} stands"))
        return
    if job is None or not goes_on:
        job = service.call("POST", f"{path}/models", json={})
    ended = train.follow(notes, "fit", service.follow(job["id"]), train.remaining)
    model = service.call("GET", f"{path}/models/{ended['result']['model']}")
    output.print(Text(f"model {model['version']} of {spec.name}", "bold"))
    for sentence in what.model(model):
        output.print(Text(f"  {sentence}"))


def _last_fit(service: Service, workload: str) -> Json | None:
    """The last fit that was asked for, unless it was in vain."""
    link: str | None = f"/jobs?workload={workload}&limit=100"
    while link:
        page = service.call("GET", link)
        for job in page["items"]:
            if job["type"] == "fit" and job["state"] not in VAIN:
                found: Json = job
                return found
        link = page["next"]
    return None


def _moment(made: Json) -> datetime:
    return datetime.fromisoformat(made["created_at"])


def _registered(service: Service, spec: Any, path: str) -> str:
    """Register a workload that isn't there; in words."""
    try:
        known = service.call("GET", path)
    except RefusedError as error:
        if error.status != NOT_FOUND:
            raise
        service.call("POST", "/workloads", json=spec.model_dump(mode="json"))
        return f"registered: workload {spec.name}"
    same = known["kind"] == spec.kind and type(spec).model_validate(known["spec"]) == spec
    return f"workload {spec.name} is there already" + ("" if same else ", with another spec: that one is kept")


def _upload(service: Service, path: str, file: SampleFile, output: Console) -> datetime:
    """When the execution was stored: now, or by a call before."""
    headers = {"Content-Type": file.media_type} | ({"Content-Encoding": "gzip"} if file.packed else {})
    named = {"execution": file.name}
    reply = service.call("POST", f"{path}/samples", params=named, content=file.pieces(), headers=headers)
    done = "uploaded" if reply["accepted"] else "there already"
    output.print(Text(f"{done}: execution {file.name}"), soft_wrap=True)
    (kept,) = service.call("GET", f"{path}/samples", params=named)["items"]
    return _moment(kept)
