"""``steward import``: reads traces, prints a summary and their issues, converts and uploads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from app.charts.text import count_text, number
from app.cli.failures import exit_status
from app.cli.options import DONE, INTERRUPTED, MISUSED, REFUSED, UNREACHABLE
from app.cli.remote.service import RefusedError, Service, UnreachableError
from app.kinds.contract.inputs import FieldIssue, InvalidInput, Skipped, plain
from app.kinds.workflow.formats.reading import Reading, misfits, refuse
from app.kinds.workflow.formats.sacct import read_sacct
from app.kinds.workflow.formats.swf import OUT_OF_ORDER, read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import swf_omits, wfformat_omits, write_swf, write_wfformat
from app.kinds.workflow.queue import pool
from app.kinds.workflow.samples import SWF, WFFORMAT, Spread, TraceRead, summary
from app.kinds.workflow.trace import Trace

Json = dict[str, Any]
SUFFIXES = (".gz", ".swf", ".json", ".txt")


class Format(NamedTuple):
    """A trace format: functions that read it, write it, and list the parts of a trace that it omits; and its media
    type."""

    read: Callable[..., Reading]
    write: Callable[[Trace, str, int | None], Iterator[str]]
    omits: Callable[[Trace], tuple[str, ...]]
    media_type: str


FORMATS = {
    "swf": Format(read_swf, lambda trace, name, size: write_swf(trace, name=name, machine=size), swf_omits, SWF),
    "sacct": Format(read_sacct, lambda trace, name, size: write_swf(trace, name=name, machine=size), swf_omits, SWF),
    "wfformat": Format(
        read_wfformat, lambda trace, name, _: write_wfformat(trace, name=name), wfformat_omits, WFFORMAT
    ),
}


@dataclass(frozen=True)
class Options:
    """Options of the command line; None: not given."""

    format: str
    files: list[Path]
    reading: Mapping[str, bool]
    processors: int | None
    export: Path | None
    export_format: str
    workload: str | None
    name: str | None
    url: str
    as_json: bool = False


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Run the command; return the exit status, the largest of all files. Findings go to ``output``, errors to
    ``notes``."""
    output, notes = output or Console(), notes or Console(stderr=True)
    if len(options.files) > 1 and (options.export is not None or options.name is not None):
        notes.print(Text("--export and --name are for one file", "red"))
        return MISUSED
    items: list[Json] = []
    status = DONE
    try:
        for path in options.files:
            status = max(status, _one(path, options, items, output, notes))
            if status == UNREACHABLE:
                break
    except KeyboardInterrupt:
        status = INTERRUPTED
    if options.as_json:
        output.print(json.dumps(items, indent=1), soft_wrap=True, markup=False, highlight=False)
    return status


def _one(path: Path, options: Options, items: list[Json], output: Console, notes: Console) -> int:
    """Read, convert and upload one file; return its exit status, and add its JSON entry to ``items``. Errors don't
    raise but go to the entry and, after the summary, to ``notes``."""
    entry: Json = {"file": str(path), "format": options.format}
    items.append(entry)
    complaints, status = list[str](), DONE
    try:
        reading = FORMATS[options.format].read(path, **options.reading)
        if options.processors is not None:
            refuse(misfits(reading.trace, pool(options.processors), reading.where))
        entry |= {
            "name": reading.name,
            **summary(reading.trace).model_dump(),
            "machines": list(reading.machines),
            "dropped": reading.dropped,
            "skipped": [asdict(one) for one in reading.skipped],
            "lacks": list(reading.lacks),
            "warnings": [_issue(warning) for warning in reading.warnings],
        }
        if options.export is not None:
            form = FORMATS[options.export_format]
            machine = max(reading.machines, default=None)
            text = "".join(form.write(reading.trace, reading.name or _stem(path), machine)).encode()
            options.export.parent.mkdir(parents=True, exist_ok=True)
            options.export.write_bytes(gzip.compress(text, mtime=0) if options.export.suffix == ".gz" else text)
            entry["exported"] = {
                "file": str(options.export),
                "format": options.export_format,
                "without": list(form.omits(reading.trace)),
            }
        if options.workload is not None:
            entry["uploaded"] = _upload(reading, path, options, options.workload)
    except InvalidInput as error:
        entry["errors"] = [_issue(issue) for issue in error.errors]
        complaints, status = [f"{_words(issue)}{_hint(issue, options)}" for issue in error.errors], REFUSED
    except (RefusedError, UnreachableError, OSError) as error:
        entry["errors"] = [{"pointer": "", "message": str(error), "value": None}]
        complaints, status = [str(error)], REFUSED if isinstance(error, OSError) else exit_status(error)
    if "tasks" in entry and not options.as_json:
        _show(reading, entry, output)
    for complaint in complaints:
        notes.print(Text(f"{path}: {complaint}", "red"), soft_wrap=True)
    return status


def _hint(issue: FieldIssue, options: Options) -> str:
    """Return a text on an option that would avoid the error; empty if there is none."""
    if issue.message.startswith(OUT_OF_ORDER):
        return "; --sort sorts them"
    skippable = options.reading.get("skip_bad") is False and issue.pointer.startswith("/lines/")
    return "; --skip-bad leaves it out" if skippable else ""


def _issue(issue: FieldIssue) -> Json:
    value = [plain(one) for one in issue.value] if isinstance(issue.value, list) else plain(issue.value)
    return {"pointer": issue.pointer, "message": issue.message, "value": value}


def _upload(reading: Reading, path: Path, options: Options, workload: str) -> Json:
    """Upload the trace, with repairs and without skipped lines; raise RefusedError or UnreachableError on failure."""
    form = FORMATS[options.format]
    text = "".join(form.write(reading.trace, reading.name, max(reading.machines, default=None)))
    headers = {"Content-Type": form.media_type, "Content-Encoding": "gzip"}
    name = options.name or _stem(path)
    with Service(options.url) as service:
        reply = service.call(
            "POST",
            f"/workloads/{workload}/samples",
            params={"execution": name},
            content=gzip.compress(text.encode(), 6, mtime=0),
            headers=headers,
        )
    return {"workload": workload, "execution": name, "duplicate": reply["duplicate"] == 1}


def _stem(path: Path) -> str:
    """Return the file name without the suffixes of trace formats and gzip."""
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _show(reading: Reading, entry: Json, output: Console) -> None:
    output.print(Text(f"{entry['file']}" + (f" ({reading.name})" if reading.name else ""), "bold"), soft_wrap=True)
    for line in words(reading):
        output.print(Text(f"  {line}"), soft_wrap=True)
    for sentence in reading.lacks:
        output.print(Text(f"  lacks: {sentence}"), soft_wrap=True)
    for one in reading.skipped:
        output.print(Text(f"  skipped: {_left_out(one)}", "yellow"), soft_wrap=True)
    for warning in reading.warnings:
        output.print(Text(f"  warning: {_words(warning)}", "yellow"), soft_wrap=True)
    if "exported" in entry:
        without = "; ".join(entry["exported"]["without"])
        line = f"  written: {entry['exported']['file']}" + (f", without {without}" if without else "")
        output.print(Text(line), soft_wrap=True)
    if "uploaded" in entry:
        row = entry["uploaded"]
        state = "was there already" if row["duplicate"] else "uploaded"
        output.print(Text(f"  {state}: execution {row['execution']} of workload {row['workload']}"), soft_wrap=True)


def _left_out(skipped: Skipped) -> str:
    """Return a text such as ``2 lines (12, 90): runtime: must be …``."""
    lines = ", ".join(map(str, skipped.lines)) + (", …" if skipped.count > len(skipped.lines) else "")
    return f"{count_text(skipped.count, 'line')} ({lines}): {': '.join(filter(None, (skipped.field, skipped.reason)))}"


def _words(issue: FieldIssue) -> str:
    """Return a text such as ``line 12, runtime: must be … (-5)``."""
    pointer = issue.pointer
    if pointer.startswith("/lines/"):
        pointer = "line " + pointer.removeprefix("/lines/").replace("/", ", ")
    shown = "" if issue.value is None else f" ({_issue(issue)['value']})"
    return f"{pointer}: {issue.message}{shown}" if pointer else f"{issue.message}{shown}"


# Summary of a trace as text.


def words(reading: Reading) -> Iterator[str]:
    """Yield lines of text on number of tasks, sizes, duration and machines."""
    result = summary(reading.trace)
    noun = "task" if result.workflows else "job"
    users = f" of {count_text(result.users, 'user')}" if result.users else ""
    dropped = reading.dropped + sum(one.count for one in reading.skipped)
    left_out = f"; {dropped:,} left out" if dropped else ""
    yield f"{count_text(result.tasks, noun)}{users}{left_out}"
    trace = reading.trace
    since = ""
    if trace.origin and trace.tasks and abs(trace.origin + trace.submit[-1]) < 2e11:
        first = datetime.fromtimestamp(trace.origin + float(trace.submit[0]), UTC)
        since = f" from {first:%Y-%m-%d %H:%M:%S} UTC"
    yield (
        f"submitted   over {result.span_seconds / 86_400:,.1f} days{since}"
        if result.span_seconds
        else "submitted   at once"
    )
    if result.run_time_seconds is not None:
        yield f"run time    {_spread(result.run_time_seconds, ' s')}"
    if result.processors is not None:
        yield f"processors  {_spread(result.processors, '')}"
    if result.edges:
        yield f"edges       {result.edges:,} with {result.edge_bytes / 1e9:,.3f} GB; critical path {_seconds(result)}"
    yield from _load(result, reading)


def _spread(spread: Spread, unit: str) -> str:
    parts = {"median": spread.median, "mean": spread.mean, "largest": spread.largest}
    return ", ".join(f"{name} {number(value, 6)}{unit}" for name, value in parts.items())


def _seconds(reading: TraceRead) -> str:
    return f"{reading.critical_path_seconds or 0.0:,.1f} s of {reading.processor_seconds:,.1f} processor seconds"


def _load(trace: TraceRead, reading: Reading) -> Iterator[str]:
    """Yield a line on the load of the recorded machines, if they are known."""
    total = sum(reading.machines)
    if not total:
        return
    machines = f"{count_text(len(reading.machines), 'machine')} with {count_text(total, 'processor')}"
    load = f"; load {trace.processor_seconds / (trace.span_seconds * total):.1%}" if trace.span_seconds else ""
    yield f"recorded on {machines}{load}"
