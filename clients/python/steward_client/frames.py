"""Upload of samples from a data frame of pandas or polars, as CSV in pieces; imports neither library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from .answers import document
from .display import choose_service
from .errors import ClientError, StewardError
from .live import Service, open_http
from .retry import Retry

PIECE_ROWS = 4_096
MOST_SHOWN = 20
HEAD_LINES = 1
UNPROCESSABLE = 422
LINES = "lines"


class Wrong(NamedTuple):
    """The first error in an execution.

    Attributes:
        row: position of the row in the frame, counting from 0.
        column: column of the frame; or the service's name, if it is none.
        reason: what is accepted.
        value: the invalid value.
    """

    row: int
    column: str
    reason: str
    value: Any

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column!r}: {self.reason} (got {self.value!r})"


class Uploaded(NamedTuple):
    """Result of an upload, in numbers of executions.

    Attributes:
        accepted: executions stored.
        duplicate: executions that were stored before with the same content.
        rejected: invalid executions, of which nothing is stored.
        iterations: number of rows of the accepted executions.
        wrong: first error of each rejected execution; at most 1,000.
    """

    accepted: int
    duplicate: int
    rejected: int
    iterations: int
    wrong: Sequence[Wrong]


class RejectedRows(ClientError, ValueError):
    """Executions of a frame were rejected. The accepted ones are stored; uploading them again has no effect.

    Attributes:
        uploaded: result of the upload; its ``wrong`` lists the errors.
    """

    def __init__(self, uploaded: Uploaded) -> None:
        self.uploaded = uploaded
        text = "; ".join(map(str, uploaded.wrong[:MOST_SHOWN]))
        super().__init__(f"{uploaded.rejected} executions are rejected, {uploaded.accepted} accepted: {text}")


def upload(
    workload: str,
    frame: Any,
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
) -> Uploaded:
    """Upload a frame's rows as samples of a workload; executions that are already stored count as duplicates.

    ::

        frame = pandas.read_csv("samples.csv")
        print(steward.upload("resnet18", frame).accepted)

    For kind ``iterative`` a row is an iteration or a segment of one, with the columns ``execution``, ``iteration``,
    ``allocation.<resource>``, ``metric.<name>`` and ``feature.<name>``; the rows of an execution must be contiguous.
    The frame is converted and sent 4,096 rows at a time.

    Args:
        workload: name of a registered workload.
        frame: a ``DataFrame`` of pandas or polars.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        url: the service's address, instead of ``client``.
        retry: how the upload is repeated while the service is unreachable.

    Raises:
        TypeError: ``frame`` is no such frame.
        RejectedRows: executions were rejected; the message names row and column of each.
        StewardError: the service refused the whole upload: a column is missing or unknown.
        Unreachable: the service didn't respond in time.
    """
    write, columns = _writer(frame), [str(name) for name in frame.columns]
    path, headers = f"/workloads/{workload}/samples", {"content-type": "text/csv"}
    body = partial(_pieces, write, len(frame))
    try:
        with open_http(choose_service(client, url)) as http:
            uploaded = (retry or Retry()).call(
                http,
                "POST",
                path,
                lambda answer: _parse_upload(document(answer), columns),
                headers=headers,
                content=body,
            )
    except StewardError as error:
        raise _as_rejected_rows(error, columns) from error
    if uploaded.rejected:
        raise RejectedRows(uploaded)
    return uploaded


async def upload_async(
    workload: str,
    frame: Any,
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
) -> Uploaded:
    """Upload a frame's rows as samples of a workload in a thread; arguments as in ``upload``.

    Raises TypeError for another frame, RejectedRows if executions are rejected, StewardError if the service refuses the
    upload, and Unreachable if it doesn't respond in time. The frame must not be changed meanwhile."""
    return await asyncio.to_thread(upload, workload, frame, client, url=url, retry=retry)


def _writer(frame: Any) -> Callable[[int, int], str]:
    """A function that converts rows [begin, end) to CSV, row 0 with a header; raises TypeError for another frame."""
    if hasattr(frame, "write_csv") and hasattr(frame, "slice"):  # polars
        return lambda begin, end: str(frame.slice(begin, end - begin).write_csv(include_header=begin == 0))
    if hasattr(frame, "to_csv") and hasattr(frame, "iloc"):  # pandas
        return lambda begin, end: str(frame.iloc[begin:end].to_csv(index=False, header=begin == 0, lineterminator="\n"))
    raise TypeError(f"a frame must be a DataFrame of pandas or polars, not {type(frame).__qualname__}")


def _pieces(write: Callable[[int, int], str], rows: int) -> Iterator[bytes]:
    for begin in range(0, max(rows, 1), PIECE_ROWS):
        yield write(begin, min(begin + PIECE_ROWS, rows)).encode()


def _parse_upload(answer: Mapping[str, Any], columns: Sequence[str]) -> Uploaded:
    wrong = [
        Wrong(one["line"] - HEAD_LINES - 1, _column(one["field"], columns), one["reason"], one.get("value"))
        for one in answer["rejections"]
    ]
    return Uploaded(answer["accepted"], answer["duplicate"], answer["rejected"], answer["iterations"], wrong)


def _as_rejected_rows(error: StewardError, columns: Sequence[str]) -> Exception:
    """RejectedRows for a refusal that names lines of the upload; any other refusal unchanged."""
    wrong = [
        Wrong(int(line) - HEAD_LINES - 1, _column(field, columns), one.get("message", ""), one.get("value"))
        for one in error.errors
        for _, part, line, field in [f"{one.get('pointer', '')}///".split("/", 3)]
        if part == LINES and line.isdecimal()
    ]
    if error.status != UNPROCESSABLE or not wrong:
        return error
    return RejectedRows(Uploaded(0, 0, len(wrong), 0, wrong))


def _column(pointer: str, columns: Sequence[str]) -> str:
    """The frame's column for a pointer into a report: ``/metrics/loss`` is ``metric.loss``; else the pointer."""
    part, _, name = pointer.strip("/").partition("/")
    for column in columns:
        prefix, dot, rest = column.partition(".")
        if column == part or (dot and rest == name and part.startswith(prefix)):
            return column
    return pointer
