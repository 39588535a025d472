"""``steward import``: check files of samples, register their workload, upload them, and fit a model."""

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

# Reading and checking one file of samples, CSV or NDJSON, before its upload.


MEDIA_TYPES: Mapping[str, str] = {
    ".csv": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
}
OWN_START = 1e8
"""POSIX seconds; smaller times count from the log's own start."""
Words = Callable[[Sample, Any], Iterator[str]]
"""Function that describes an execution in sentences, given the workload's layout."""


class SampleFile(NamedTuple):
    """A checked file.

    Attributes:
        path: its location.
        name: name of the execution that it contains.
        media_type: media type of its content before compression.
        packed: whether it is compressed by gzip.
        words: sentences that describe it.
    """

    path: Path
    name: str
    media_type: str
    packed: bool
    words: tuple[str, ...]

    def pieces(self) -> Iterator[bytes]:
        """The file's bytes in pieces, as stored."""
        with self.path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


def read(path: Path, kind: Kind, layout: Any, words: Words) -> SampleFile:
    """Read a file and check that its samples fit a workload's ``layout`` (names and scales, derived from its spec).
    Raises InvalidInput, with the line, if its content is invalid, OSError if it can't be read."""
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    if bare.suffix not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise InvalidInput([FieldIssue("", f"the name must end in {known}, or one of them and .gz", None)])
    media_type = MEDIA_TYPES[bare.suffix]
    reader = kind.samples.formats[media_type].reader(kind.samples(layout), bare.stem)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        (result,) = reader.read(_blocks(path, packed=packed))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput([FieldIssue("", f"is broken gzip: {error}", None)]) from error
    if isinstance(result, Refused):
        raise InvalidInput([result.issue])
    return SampleFile(path, bare.stem, media_type, packed, tuple(words(result, layout)))


def _blocks(path: Path, *, packed: bool) -> Iterator[bytes]:
    """Blocks of whole lines, without the last newline of each block."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while lines := file.readlines(PIECE):
            yield b"".join(lines).removesuffix(b"\n")


def since(start: float) -> str:
    """The start of a log (POSIX seconds) as “ from <UTC time>”; empty if it counts from its own start."""
    return f" from {datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC" if start >= OWN_START else ""


def lasting(seconds: float) -> str:
    """A duration given in seconds, in days from 2 days on, hours from 2 h, minutes from 2 min, else seconds."""
    scales = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"))
    divisor, unit = next(((size, unit) for least, size, unit in scales if seconds >= least), (1, "seconds"))
    return f"{number(seconds / divisor)} {unit}"


def describe_issue(issue: FieldIssue) -> str:
    """A field's error in words: ``line 12, user: must be …, not 'x'``."""
    parts = issue.pointer.removeprefix("/").split("/")
    where = ["line " + parts[1], *parts[2:]] if parts[0] == "lines" else [issue.pointer] if issue.pointer else []
    value = "" if issue.value is None else f", not {plain(issue.value)!r}"
    return ": ".join(filter(None, [", ".join(where), issue.message + value]))


# The import of files of one kind.


Json = dict[str, Any]
VAIN = ("failed", "cancelled")


@dataclass(frozen=True)
class Options:
    """Options of ``steward import``; ``check``: only read the files, without any request."""

    files: Sequence[Path]
    spec: Path
    check: bool
    url: str


class Import(NamedTuple):
    """A kind's import of its files.

    Attributes:
        kind: name of the kind.
        words: function that describes the execution in a file, in sentences.
        model: function that describes a fitted model (the API's JSON) and the limits of its use, in sentences.
    """

    kind: str
    words: Words
    model: Callable[[Json], Iterator[str]]


def run(what: Import, options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Run the import; results go to ``output``, progress and errors to ``notes`` (None: standard streams).

    Returns 0 done, 1 refused, failed or invalid files, 3 unreachable, 130 interrupted.
    """
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
    """The spec in a file; None, with errors in ``notes``, if it is invalid."""
    try:
        return KINDS[what.kind].spec.model_validate_json(path.read_bytes())
    except OSError as error:
        _complain(notes, path, [FieldIssue("", str(error.strerror), None)])
    except ValidationError as error:
        issues = [
            FieldIssue("/" + "/".join(map(str, one["loc"])) if one["loc"] else "", one["msg"], _invalid_value(one))
            for one in error.errors(include_url=False)
        ]
        _complain(notes, path, issues)
    return None


def _invalid_value(error: Any) -> object:
    """The invalid value of a Pydantic error; None for objects, lists and malformed JSON."""
    value = error["input"]
    return value if isinstance(value, str | int | float) and error["type"] != "json_invalid" else None


def _files(
    what: Import, paths: Sequence[Path], layout: Any, output: Console, notes: Console
) -> list[SampleFile] | None:
    """All files, described in ``output``; None, with errors in ``notes``, if any is invalid."""
    results = []
    for path in paths:
        try:
            file = read(path, KINDS[what.kind], layout, what.words)
        except InvalidInput as error:
            _complain(notes, path, error.errors)
            continue
        except OSError as error:
            _complain(notes, path, [FieldIssue("", str(error.strerror), None)])
            continue
        results.append(file)
        output.print(Text(str(path), "bold"), soft_wrap=True)
        for sentence in file.words:
            output.print(Text(f"  {sentence}"), soft_wrap=True)
    return results if len(results) == len(paths) and not _alike(results, notes) else None


def _alike(files: Sequence[SampleFile], notes: Console) -> bool:
    """Whether two files have the same execution name, with errors in ``notes``."""
    first = dict[str, Path]()
    alike = [(file, first[file.name]) for file in files if first.setdefault(file.name, file.path) != file.path]
    for file, other in alike:
        accepted = f"would be execution {file.name!r}, as {other} would: rename one of them"
        _complain(notes, file.path, [FieldIssue("", accepted, None)])
    return bool(alike)


def _complain(notes: Console, path: Path, issues: Sequence[FieldIssue]) -> None:
    for issue in issues:
        notes.print(Text(f"{path}: {describe_issue(issue)}", "red"), soft_wrap=True)


def _hand_over(
    what: Import, service: Service, spec: Any, files: Sequence[SampleFile], output: Console, notes: Console
) -> None:
    """Register the workload, upload the files, and fit a model, each unless the service has done so already.

    So a repeated command continues an interrupted one. Raises RefusedError or UnreachableError if a request fails.
    """
    path = f"/workloads/{spec.name}"
    output.print(Text(_register_workload(service, spec, path)), soft_wrap=True)
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
    """The newest fit job of a workload that has not failed or been cancelled; None if there is none."""
    link: str | None = f"/jobs?workload={workload}&limit=100"
    while link:
        page = service.call("GET", link)
        for job in page["items"]:
            if job["type"] == "fit" and job["state"] not in VAIN:
                last_fit: Json = job
                return last_fit
        link = page["next"]
    return None


def _moment(result: Json) -> datetime:
    return datetime.fromisoformat(result["created_at"])


def _register_workload(service: Service, spec: Any, path: str) -> str:
    """Register a workload unless it exists and return a message; raises RefusedError if that fails."""
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
    """Upload a file's execution unless it is stored already; returns the time at which it was stored."""
    headers = {"Content-Type": file.media_type} | ({"Content-Encoding": "gzip"} if file.packed else {})
    named = {"execution": file.name}
    reply = service.call("POST", f"{path}/samples", params=named, content=file.pieces(), headers=headers)
    done = "uploaded" if reply["accepted"] else "there already"
    output.print(Text(f"{done}: execution {file.name}"), soft_wrap=True)
    (samples,) = service.call("GET", f"{path}/samples", params=named)["items"]
    return _moment(samples)
