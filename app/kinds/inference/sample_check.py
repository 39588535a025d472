"""What an execution of kind ``inference`` comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.kinds.contract.inputs import FieldIssue, Sample, name_issue
from app.kinds.contract.samples import (
    LISTED,
    MICRO,
    NOTHING,
    TIME,
    Rows,
    known,
    named,
    numbers,
    refuse,
    refused,
    shown,
    times,
)
from app.kinds.inference.layout import Layout
from app.kinds.inference.sample_content import (
    LARGEST,
    LATEST,
    MOST_BATCHES,
    MOST_REQUESTS,
    SECONDS,
    Floats,
    LogWriter,
    Requests,
    batches_of,
    packed,
    requests_of,
)

# What an execution of kind ``inference`` comes to.


MOST_USERS = 256


def summary(data: bytes) -> dict[str, Any]:
    """What lists tell of stored bytes, JSON: positions of users and variants are of the layout; one pass, bounded."""
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


# Rows of measured batches and of requests against the workload's layout, many at a time.


REQUEST, BATCHES = ("time", "user", "size"), ("variant", "batch", "server", "cores", "seconds")
COLUMNS = (*REQUEST, *BATCHES)
UNNAMED = "samples-"
ABOVE_0 = f"must be greater than 0, at most {LARGEST:g}"
FORMS = "must say time (user, size) of a request, or variant, batch, server, cores and seconds of a measured batch"


class Collector:
    """Collects what an execution says; holds its requests compressed.

    Args:
        layout: of the workload.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._users = {name: i for i, name in enumerate(layout.users)}
        self._variants = {name: i for i, name in enumerate(layout.variants)}
        self._servers = {name: i for i, name in enumerate(layout.servers)}
        self._cores = np.array([server.cores for server in layout.spec.servers])
        self._log = LogWriter()
        self._batches: list[Floats] = []

    def take(self, rows: Rows) -> None:
        """Some more rows, in order.

        Raises:
            InvalidInput: what is wrong with the first of those that are.
        """
        if "seconds" not in rows.columns:
            self._take_requests(rows)
        elif "time" not in rows.columns:
            self._take_batches(rows)
        else:
            timed = [value not in NOTHING for value in rows.columns["time"]]
            refuse(_mixed(rows, timed))
            self._take_requests(rows.take([i for i, one in enumerate(timed) if one]))
            self._take_batches(rows.take([i for i, one in enumerate(timed) if not one]))

    def sample(self, name: str | None) -> Sample:
        """See ``app.kinds.contract.row_reading.Collector``."""
        if not self.count:
            raise refused([FieldIssue("", f"holds nothing: each row {FORMS}", None)])
        issue = name_issue(name) if name else None
        if issue is not None:
            raise refused([issue])
        data, digest = packed(self._table(), self._log)
        return Sample(name or UNNAMED + digest[:12], 1, data, self.count, digest, summary(data))

    @property
    def count(self) -> int:
        """Requests and batches."""
        return self._log.count + sum(map(len, self._batches))

    def _table(self) -> Floats:
        return np.concatenate(self._batches) if self._batches else np.zeros((0, len(BATCHES)))

    def _take_requests(self, rows: Rows) -> None:
        if not rows.rows:
            return
        time = times(rows.given("time"))
        users, size = rows.given("user"), numbers(rows.given("size"))
        user = named(users, self._users)
        before = np.concatenate([[self._log.last], time[:-1]])
        silent = rows.silent("size")
        refuse(
            [
                *rows.issues("time", (time < 0) | (time > LATEST * MICRO), TIME),
                *rows.issues("time", (time >= 0) & (time < before), "must not be less than the time before it"),
                *rows.issues("user", user < 0, known("user", self._layout.users)),
                *rows.issues("size", ~((size >= 0) & (size <= LARGEST) | silent), f"must be 0 to {LARGEST:g}"),
            ]
        )
        if self._log.count + rows.rows > MOST_REQUESTS:
            message = f"an execution holds at most {MOST_REQUESTS:,} requests: upload the log in parts"
            raise refused([FieldIssue(rows.where(MOST_REQUESTS - self._log.count), message, None)])
        self._log.add(Requests(time, user.astype(np.uint8), size))

    def _take_batches(self, rows: Rows) -> None:
        if not rows.rows:
            return
        names = rows.given("variant"), rows.given("server")
        variant, server = named(names[0], self._variants), named(names[1], self._servers)
        batch, seconds = numbers(rows.given("batch")), numbers(rows.given("seconds"))
        silent = rows.silent("cores")
        cores = np.where(silent, self._cores[server], numbers(rows.given("cores")))
        most = int(self._layout.batches[-1])
        whole = (batch >= 1) & (batch <= most) & (batch == np.rint(batch))
        refuse(
            [
                *rows.issues("variant", variant < 0, known("variant", self._layout.variants)),
                *rows.issues("server", server < 0, known("server class", self._layout.servers)),
                *rows.issues("batch", ~whole, f"must be a whole number, 1 to {most}, the largest batch size"),
                *rows.issues("cores", ~((cores > 0) & (cores <= LARGEST) | silent), ABOVE_0),
                *rows.issues("seconds", ~((seconds > 0) & (seconds <= LARGEST)), ABOVE_0),
            ]
        )
        if self.count + rows.rows - self._log.count > MOST_BATCHES:
            raise refused([FieldIssue(rows.where(0), f"an execution holds at most {MOST_BATCHES:,} batches", None)])
        self._batches.append(np.stack([variant, batch, server, cores, seconds], axis=1).astype(np.float64))


def _mixed(rows: Rows, timed: Sequence[bool]) -> list[FieldIssue]:
    """Rows that say something of both forms."""
    found = []
    for name, values in rows.columns.items():
        other = name in BATCHES
        places = [i for i, one in enumerate(timed) if one == other and values[i] not in NOTHING][:LISTED]
        found += [FieldIssue(f"{rows.where(i)}/{name}", FORMS, shown(values[i])) for i in places]
    return found
