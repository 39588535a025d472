"""Archive of the rows that retention deletes, as Parquet files: one file per batch, one table per noun.

Files lie under ``noun/workload id/``. A file's name is derived from its rows, so that a batch archived twice, after a
crash, gives one file. JSON columns are stored as text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from app.database.tables import Workload
from app.retention.batches import Batch

TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
    "bytes": pa.binary(),
}


class ParquetArchive:
    """Archive of deleted rows in a local folder, one zstd-compressed Parquet file per batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, workload: Workload, batch: Batch) -> None:
        """Write a batch to its Parquet file, and sync file and folder to disk before returning.

        An existing file of the same name, which holds the same rows, is replaced.

        Raises:
            OSError: the folder or the file cannot be written.
        """
        folder = self._folder / batch.noun / workload.id
        _make(folder)
        table = _table(workload, batch)
        final = folder / f"{_name(batch)}.parquet"
        partial = folder / f".{final.name}.{os.getpid()}"
        try:
            with partial.open("wb") as file:
                parquet.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(final)
        finally:
            partial.unlink(missing_ok=True)
        _flush(folder)


def _table(workload: Workload, batch: Batch) -> pa.Table:
    about = {"workload": workload.name, "kind": workload.kind, "tenant": workload.tenant}
    schema = pa.schema([pa.field(name, TYPES[kind]) for name, kind in batch.kinds.items()], metadata=about)
    columns = [_column((row.get(name) for row in batch.rows), kind) for name, kind in batch.kinds.items()]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: Iterable[Any], kind: str) -> pa.Array:
    if kind == "json":
        values = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return pa.array(list(values), TYPES[kind])


def _name(batch: Batch) -> str:
    """Return a batch's file name without suffix: its first row's time, if any, and a SHA-256 prefix of its keys."""
    known = [[row.get(name) for name in ("id", "run_id", "iteration", "job_id", "sequence")] for row in batch.rows]
    first = next((row[name] for row in batch.rows[:1] for name in ("created_at", "reported_at") if name in row), None)
    moment = "" if first is None else f"{first:%Y%m%dT%H%M%S}-"
    return moment + hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:16]


def _make(folder: Path) -> None:
    """Create a folder and missing parents, and sync each to disk, so that it outlasts a crash; raises OSError if that
    fails."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        _flush(one.parent)


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
