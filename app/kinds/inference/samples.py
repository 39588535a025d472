"""Samples of kind `inference`: an execution holds measured batches, a log of requests, or both."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from safetensors import numpy as safetensors_numpy

from app.kinds.columns import LATEST, MICRO, Floats, Form, Values, choice, number, time
from app.kinds.contract.inputs import Sample
from app.kinds.contract.samples import ExecutionBase, Export, Format
from app.kinds.inference.layout import Layout
from app.kinds.records import Collector, RowCodec, Rows, by_name, row_exports, row_formats
from app.kinds.tensors import read_header, write_tensors

LARGEST = 1e9
"""Largest size of a request, number of cores, and seconds; reports have the same bound, so that each run can become a
sample."""
BATCH_COLUMNS = ("variant", "batch", "server", "cores", "seconds")
MOST_REQUESTS, MOST_BATCHES, MOST_USERS = 20_000_000, 1_000_000, 256


# Columns of the tables.


def forms(layout: Layout | None) -> tuple[Form, Form]:
    """Return the forms of rows for requests and measured batches; ``layout`` None: of any workload, for documents."""
    users, variants, servers = (layout.users, layout.variants, layout.servers) if layout else ((), (), ())
    largest = float(layout.batches[-1]) if layout else LARGEST
    positive: Any = {"minimum": 0, "maximum": LARGEST, "above": True}
    requests = (
        time("time", required=True),
        choice("user", "user", users, "Optional if the workload has only one user."),
        number("size", minimum=0, maximum=LARGEST),
    )
    batches = (
        choice("variant", "variant", variants, required=True),
        number("batch", required=True, minimum=1, maximum=largest, whole=True, note=", the largest batch size"),
        choice("server", "server class", servers, "Server class; optional if the workload has only one."),
        number("cores", "Default: the cores of the server class.", **positive),
        number("seconds", required=True, **positive),
    )
    return (
        Form("requests", "a request", "time", requests, most=MOST_REQUESTS),
        Form("batches", "a measured batch", "seconds", batches, most=MOST_BATCHES, rest=True),
    )


class LogCollector(Collector):
    """Collects measured batches and, in compressed form, requests of one execution."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(forms(layout))
        self._cores = np.array([server.cores for server in layout.spec.servers])
        self._log = LogWriter()
        self._batches = [np.zeros((0, len(BATCH_COLUMNS)))]

    def keep(self, form: str, values: dict[str, Values], rows: Rows) -> None:
        """Store n rows of the form named ``form``, whose ``values`` by column, [n] each, are validated."""
        if form == "requests":
            self._log.add(Requests(values["time"], values["user"].astype(np.uint8), values["size"]))
            return
        cores = np.where(rows.missing("cores"), self._cores[values["server"]], values["cores"])
        columns = [(values | {"cores": cores})[name] for name in BATCH_COLUMNS]
        self._batches.append(np.stack(columns, axis=1).astype(np.float64))

    def pack(self) -> tuple[bytes, str, Mapping[str, Any]]:
        """Return the bytes to store, the hexadecimal SHA-256 digest of the content, and the summary for lists."""
        batches = np.concatenate(self._batches).astype("<f8")
        columns, digest = self._log.finish()
        table = {"batches": batches} if len(batches) else {}
        data = write_tensors({**table, **columns}, {"format": FORMAT, "requests": str(self._log.count)})
        return data, hashlib.sha256(batches.tobytes() + digest).hexdigest(), summary(data)


# Storage of an execution: measured batches, a log of requests, or both.
#
# A log is stored as gzip of microseconds between requests, positions of users and sizes, so that writing and reading
# need bounded memory for any length.


Bytes = NDArray[np.uint8]
FORMAT = "inference-samples-1"
STEP = 1 << 16
"""Most requests yielded at once."""
GZIP, LEVEL = 16 + zlib.MAX_WBITS, 6
VARIANT, BATCH, SERVER, CORES, SECONDS = range(len(BATCH_COLUMNS))
"""Columns of ``Content.batches``."""


class Requests(NamedTuple):
    """A log of n requests, by time.

    Attributes:
        time: arrival, microseconds since 1970 UTC or another origin, [n].
        user: position of the user, [n].
        size: size of the request in a unit of the user's choice; NaN: unknown, [n].
    """

    time: NDArray[np.int64]
    user: Bytes
    size: Floats


class Content(NamedTuple):
    """Content of an execution.

    Attributes:
        batches: m measured batches, [m, 5]: variant (position), batch size, server class (position), cores, seconds.
        requests: the log, of length 0 if there is none.
    """

    batches: Floats
    requests: Requests


class LogWriter:
    """Compresses a log that is given in pieces.

    Attributes:
        count: number of requests so far.
        last: time of the last request in microseconds; 0 before the first.
    """

    def __init__(self) -> None:
        self.count, self.last, self._sized = 0, 0, False
        self._columns = [_Column(), _Column(), _Column()]

    def add(self, piece: Requests) -> None:
        """Append the requests ``piece``, in order and none earlier than ``last``."""
        if not len(piece.time):
            return
        gaps = np.diff(piece.time, prepend=self.last)
        for column, values in zip(
            self._columns, (gaps.astype("<i8"), piece.user, piece.size.astype("<f8")), strict=True
        ):
            column.add(values.tobytes())
        self.count += len(piece.time)
        self.last = int(piece.time[-1])
        self._sized |= bool((~np.isnan(piece.size)).any())

    def finish(self) -> tuple[dict[str, Bytes], bytes]:
        """Return the compressed columns by name (none without requests), and a digest of the content; call it once."""
        names = ("time", "user", "size")[: 2 + self._sized] if self.count else ()
        columns = dict(zip(names, self._columns, strict=False))
        digest = b"".join(column.digest.digest() for column in columns.values())
        return {name: np.frombuffer(column.finish(), np.uint8) for name, column in columns.items()}, digest


class _Column:
    def __init__(self) -> None:
        self._compressor, self._out = zlib.compressobj(LEVEL, wbits=GZIP), io.BytesIO()
        self.digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.digest.update(data)
        self._out.write(self._compressor.compress(data))

    def finish(self) -> bytes:
        self._out.write(self._compressor.flush())
        return self._out.getvalue()


def unpack(data: bytes) -> Content:
    """Return the content of an execution's stored bytes, all in memory; raises ValueError without a header, and errors
    of safetensors or gzip if the bytes are damaged."""
    pieces = [Requests(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0)), *requests_of(data)]
    requests = Requests(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    return Content(batches_of(data), requests)


def batches_of(data: bytes) -> Floats:
    """Return the m measured batches in stored bytes, [m, 5], with the columns of ``Content.batches``."""
    return np.asarray(safetensors_numpy.load(data).get("batches", np.zeros((0, 5))), np.float64)


def requests_of(data: bytes) -> Iterator[Requests]:
    """Yield the requests in stored bytes, at most ``STEP`` at a time; raises ValueError if they lack a header."""
    left, last = int(read_header(data)["requests"]), np.int64(0)
    arrays = safetensors_numpy.load(data)
    streams = {name: gzip.GzipFile(fileobj=io.BytesIO(arrays[name].tobytes())) for name in arrays if name != "batches"}
    while left:
        count = min(STEP, left)
        time = last + np.cumsum(np.frombuffer(streams["time"].read(8 * count), "<i8"), dtype=np.int64)
        user = np.frombuffer(streams["user"].read(count), np.uint8)
        size = np.frombuffer(streams["size"].read(8 * count), "<f8") if "size" in streams else np.full(count, np.nan)
        yield Requests(time, user, size)
        left, last = left - count, time[-1]


def summary(data: bytes) -> dict[str, Any]:
    """Return the summary in lists of an execution's stored bytes, as JSON, with users by position; takes one pass in
    bounded memory.

    Fields: ``seconds``, ``requests`` and ``batches`` (None: the execution has none)."""
    batches = batches_of(data)
    counts, first, last, sizes = np.zeros(MOST_USERS, np.int64), None, 0, []
    for piece in requests_of(data):
        counts += np.bincount(piece.user, minlength=MOST_USERS)
        first = int(piece.time[0]) if first is None else first
        last = int(piece.time[-1])
        sizes.append((float(np.nansum(piece.size)), int((~np.isnan(piece.size)).sum())))
    span = (last - first) / MICRO if first is not None else 0.0
    total, sized = np.sum(sizes, axis=0) if sizes else (0.0, 0)
    seconds = float(batches[:, SECONDS].sum())
    log = {
        "count": int(counts.sum()),
        "of_users": np.trim_zeros(counts, "b").tolist(),
        "start": (first or 0) / MICRO,
        "span_seconds": span,
        "mean_size": float(total / sized) if sized else None,
    }
    measured = {"count": len(batches), "seconds": seconds}
    return {
        "seconds": seconds + span,
        "requests": log if log["count"] else None,
        "batches": measured if len(batches) else None,
    }


# Samples from a run's reports; entries that a sample can't hold are left out, so that each run can become one.


NAMES = ("variant", "batch", "seconds")
Event = Mapping[str, Any]


def run_batches(layout: Layout, reports: Sequence[Event]) -> dict[str, list[Any]]:
    """Return columns ``variant``, ``batch``, ``server`` (a class) and ``seconds``, one row per measured batch.

    A batch is measured if its end reports all of these, or if its start was reported and the variant was loaded before.
    """
    results = [one for server, events in _by_server(reports).items() for one in _complete_batches(server, events)]
    batches = [one for one in results if _fits_layout(layout, one)][:MOST_BATCHES]
    return {name: [one[name] for one in batches] for name in ("server", *NAMES)}


def _fits_layout(layout: Layout, one: Event) -> bool:
    known = one["variant"] in layout.variants and one["server"] in layout.servers
    return known and 1 <= one["batch"] <= layout.batches[-1] and 0 < one["seconds"] <= LARGEST


def _by_server(reports: Sequence[Event]) -> dict[str, list[Event]]:
    """Return the starts and ends of batches by server, in order of time; ends precede starts of the same time."""
    events: dict[str, list[Event]] = {}
    for part in ("finished", "started"):
        for report in reports:
            for one in report.get(part) or ():
                events.setdefault(one["server"], []).append(one)
    return {server: sorted(rows, key=lambda one: float(one["at"])) for server, rows in events.items()}


def _complete_batches(server: str, events: Sequence[Event]) -> Iterator[Event]:
    where, loaded, open_ = server.rpartition("-")[0], None, None
    for one in events:
        if "user" in one:  # a start
            loaded, open_ = (open_["variant"] if open_ else loaded), one
            continue
        if all(one.get(name) is not None for name in NAMES):
            yield {"server": where, **{name: one[name] for name in NAMES}}
        elif open_ is not None and open_["variant"] == loaded and one["at"] > open_["at"]:
            seconds = one["at"] - open_["at"]
            yield {"server": where, "variant": loaded, "batch": open_["batch"], "seconds": seconds}
        loaded, open_ = (open_["variant"] if open_ else one.get("variant", loaded)), None


# Schemas of samples in the API.


class RequestsRead(BaseModel):
    """Summary of a request log."""

    count: int
    of_users: dict[str, int] = Field(description="Number of requests by user.")
    start: float = Field(description="Time of the first: seconds since 1970 UTC, or since the log's own origin.")
    span_seconds: float = Field(description="From first to last.")
    mean_size: float | None = Field(description="Null if sizes are unknown.")


class BatchesRead(BaseModel):
    """Summary of measured batches."""

    count: int
    seconds: float = Field(description="Sum of their durations.")


class InferenceExecution(ExecutionBase):
    """A stored execution; `iterations` counts requests and batches, `seconds` sums batches and the span of requests."""

    kind: Literal["inference"]
    requests: RequestsRead | None = Field(default=None, description="Its request log, if any.")
    batches: BatchesRead | None = Field(default=None, description="Its measured batches, if any.")


class InferenceSamples(RowCodec):
    """Codec of executions of kind ``inference``, stored as safetensors."""

    formats: ClassVar[Mapping[str, Format]] = row_formats(
        "inference", forms(None), LogCollector, "time,user,size\n1700000000.25,mobile,1\n1700000000.31,web,4\n"
    )
    exports: ClassVar[Mapping[str, Export]] = row_exports(forms(None))
    execution: ClassVar[type[ExecutionBase]] = InferenceExecution

    def unpack(self, data: bytes) -> Content:
        """Return the batches and requests of an execution from its stored bytes."""
        return unpack(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Return the summary in lists of an execution's stored bytes, as JSON, with users by position."""
        return summary(data)

    def summary_fields(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``summary`` with names of users in place of positions."""
        log = summary.get("requests")
        named = {"requests": {**log, "of_users": by_name(self.layout.users, log["of_users"])}} if log else {}
        return {**summary, **named}

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """Convert the requests and measured batches of a run's reports to a sample; None if there are none."""
        collector = LogCollector(self.layout)
        # Columns ``time`` (seconds) and ``user`` (name), one row per arrived request, by time
        results = [one for report in reports for one in report.get("arrived") or ()]
        requests = [one for one in results if one["user"] in self.layout.user_index and 0 <= one["at"] <= LATEST]
        requests.sort(key=lambda one: float(one["at"]))
        collector.add(
            "requests",
            Rows(
                {
                    "time": [one["at"] for one in requests[:MOST_REQUESTS]],
                    "user": [one["user"] for one in requests[:MOST_REQUESTS]],
                },
                "/arrived/{}".format,
            ),
        )
        collector.add("batches", Rows(run_batches(self.layout, reports), "/finished/{}".format))
        return collector.sample(run) if collector.count else None

    def rows(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield requests, then batches, as JSON objects, without unknown sizes."""
        users, variants, servers = self.layout.users, self.layout.variants, self.layout.servers
        for piece in requests_of(data):
            for moment, user, size in zip(*(column.tolist() for column in piece), strict=True):
                sized = {} if np.isnan(size) else {"size": size}
                yield {"time": moment / MICRO, "user": users[user], **sized}
        for variant, batch, server, cores, seconds in batches_of(data).tolist():
            names = {"variant": variants[int(variant)], "batch": int(batch), "server": servers[int(server)]}
            yield {**names, "cores": cores, "seconds": seconds}
