"""Samples from a data frame of pandas or polars, sent as CSV in pieces; neither library is imported here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from .answers import document
from .errors import ClientError, StewardError
from .live import Service, connected
from .retry import Retry

PIECE_ROWS = 4_096
MOST_TOLD = 20
HEAD_LINES = 1
UNPROCESSABLE = 422
LINES = "lines"


class Wrong(NamedTuple):
    """The first error in an execution.

    Attributes:
        row: its position in the frame, counting from 0.
        column: of the frame, or the service's name for the place if it is no column.
        reason: what would be accepted.
        value: what is there.
    """

    row: int
    column: str
    reason: str
    value: Any

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column!r}: {self.reason} (got {self.value!r})"


class Uploaded(NamedTuple):
    """The result of an upload, in executions.

    Attributes:
        accepted: stored.
        duplicate: stored before, with the same content.
        rejected: invalid; nothing of them is stored.
        iterations: rows of the accepted ones.
        wrong: the error in each rejected one; the first 1,000.
    """

    accepted: int
    duplicate: int
    rejected: int
    iterations: int
    wrong: Sequence[Wrong]


class RejectedRows(ClientError, ValueError):
    """Executions of a frame were rejected. The accepted ones are stored; sending them again does no harm.

    Attributes:
        uploaded: the result for all; its ``wrong`` says what to correct.
    """

    def __init__(self, uploaded: Uploaded) -> None:
        self.uploaded = uploaded
        told = "; ".join(map(str, uploaded.wrong[:MOST_TOLD]))
        super().__init__(f"{uploaded.rejected} executions are rejected, {uploaded.accepted} accepted: {told}")


def upload(
    workload: str,
    frame: Any,
    client: Service = None,
    *,
    retry: Retry | None = None,
) -> Uploaded:
    """Upload a frame's rows as samples of a workload; executions that are already stored count as duplicates.

    For kind ``iterative`` a row is an iteration, with the columns ``execution``, ``iteration``,
    ``allocation.<resource>``, ``metric.<name>`` and ``feature.<name>``; the rows of an execution must be contiguous.
    The frame is written and sent ``PIECE_ROWS`` rows at a time.

    Args:
        workload: name of a registered workload.
        frame: a ``DataFrame`` of pandas or polars.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        retry: how long it is repeated.

    Raises:
        TypeError: it is not such a frame.
        RejectedRows: some executions were rejected; row and column of each are named.
        StewardError: the service refused all of it: a column is missing, or unknown.
        Unreachable: the service did not answer in time.
    """
    write, columns = _writer(frame), [str(name) for name in frame.columns]
    path, headers = f"/workloads/{workload}/samples", {"content-type": "text/csv"}
    body = partial(_pieces, write, len(frame))
    try:
        with connected(client) as http:
            uploaded = (retry or Retry()).call(
                http, "POST", path, lambda answer: _read(document(answer), columns), headers=headers, content=body
            )
    except StewardError as error:
        raise _named(error, columns) from error
    if uploaded.rejected:
        raise RejectedRows(uploaded)
    return uploaded


async def upload_async(
    workload: str,
    frame: Any,
    client: Service = None,
    *,
    retry: Retry | None = None,
) -> Uploaded:
    """As ``upload``, in a thread: the event loop continues meanwhile, and must not change the frame."""
    return await asyncio.to_thread(upload, workload, frame, client, retry=retry)


def _writer(frame: Any) -> Callable[[int, int], str]:
    """Writes rows from one number to another as CSV; the first with the header."""
    if hasattr(frame, "write_csv") and hasattr(frame, "slice"):  # polars
        return lambda begin, end: str(frame.slice(begin, end - begin).write_csv(include_header=begin == 0))
    if hasattr(frame, "to_csv") and hasattr(frame, "iloc"):  # pandas
        return lambda begin, end: str(frame.iloc[begin:end].to_csv(index=False, header=begin == 0, lineterminator="\n"))
    raise TypeError(f"a frame must be a DataFrame of pandas or polars, not {type(frame).__qualname__}")


def _pieces(write: Callable[[int, int], str], rows: int) -> Iterator[bytes]:
    for begin in range(0, max(rows, 1), PIECE_ROWS):
        yield write(begin, min(begin + PIECE_ROWS, rows)).encode()


def _read(answer: Mapping[str, Any], columns: Sequence[str]) -> Uploaded:
    wrong = [
        Wrong(one["line"] - HEAD_LINES - 1, _column(one["field"], columns), one["reason"], one.get("value"))
        for one in answer["rejections"]
    ]
    return Uploaded(answer["accepted"], answer["duplicate"], answer["rejected"], answer["iterations"], wrong)


def _named(error: StewardError, columns: Sequence[str]) -> Exception:
    """A refusal of all rows by row and column; another as it is."""
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
    """The column that a pointer into a report means: ``/metrics/loss`` is ``metric.loss``."""
    part, _, name = pointer.strip("/").partition("/")
    for column in columns:
        prefix, dot, rest = column.partition(".")
        if column == part or (dot and rest == name and part.startswith(prefix)):
            return column
    return pointer
