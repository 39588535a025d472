"""Reader of Slurm's accounts: the output of ``sacct --parsable2``, with its line of names.

Each line becomes one of a batch log in Standard Workload Format, so that both are checked alike and messages name the
line of the file. Lines of steps, and of parts of a job that was requeued or resized, are left out, as are jobs that
have not ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from app.charts.text import exact
from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.reading import Reading, Source, blocks, refuse
from app.kinds.workflow.formats.swf import WIDTH, read_swf

ENDS, CPUS = ("End", "Elapsed", "ElapsedRaw"), ("AllocCPUS", "NCPUS", "ReqCPUS")
NEEDED = (("JobID", "JobIDRaw"), ("Submit",), ("Start",), ENDS, CPUS)
"""Columns that a file must have, alternatives together."""
EXAMPLE = (
    "sacct --allusers --parsable2 "
    "--format=JobIDRaw,User,Submit,Start,End,AllocCPUS,ReqCPUS,NNodes,ReqMem,Timelimit,State"
)
NOTHING = {"", "None", "Unknown", "N/A", "INVALID"}
UNLIMITED = {"UNLIMITED", "Partition_Limit"}
STATUS = {"COMPLETED": 1, "CANCELLED": 5}
"""Status in a batch log; all other states in which a job has ended: 0, failed."""
NOT_ENDED = {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESIZING"}
DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)(?:\.\d+)?")
MEMORY = re.compile(r"(?P<amount>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)(?P<each>[cn]?)")
KIBIBYTES = {"K": 1.0, "": 1024.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}


def read_sacct(source: Source, *, clip: bool = False, sort: bool = True, skip_bad: bool = False) -> Reading:
    """Read a dump of ``sacct --parsable2``, plain or gzip. Processors are those requested, else allocated; estimates
    are time limits; memory is that requested. Times are as the machine wrote them, without a time zone.

    Args:
        source: path, or lines.
        clip, sort, skip_bad: cut run times to limits; sort by submission; leave out invalid lines (else errors).

    Raises:
        InvalidInput: the first line doesn't name the columns that are needed, or a line is invalid, or there is no job.
        OSError: the file can't be read.
    """
    head, *rows = b"\n".join(blocks(source)).decode("utf-8", "replace").removesuffix("\n").split("\n")
    names = head.rstrip("\r").split("|")
    lacking = [" or ".join(any_of) for any_of in NEEDED if not set(any_of) & set(names)]
    if lacking:
        refuse([FieldIssue("/lines/1", f"must name the columns {', '.join(lacking)}, as {EXAMPLE} does", head[:80])])
    split = [row.rstrip("\r").split("|") for row in rows]
    uneven = [
        FieldIssue(f"/lines/{number}", f"must have {len(names)} cells, as line 1, has {len(values)}", row[:80])
        for number, (row, values) in enumerate(zip(rows, split, strict=True), start=2)
        if len(values) != len(names) and row.strip()
    ]
    refuse([] if skip_bad else uneven)
    users: dict[str, int] = {}
    results = [_cells(dict(zip(names, values, strict=False)), users) if any(values) else None for values in split]
    begun = [cells[1] for cells in results if cells is not None and not isinstance(cells[1], str)]
    origin, bad = min(begun, default=0.0), {issue.pointer for issue in uneven}
    last = max((cells[0] for cells in results if cells is not None and not isinstance(cells[0], str)), default=0.0)
    lines = [f"; UnixStartTime: {origin:.0f}\n"]
    for number, cells in enumerate(results, start=2):
        if cells is None or f"/lines/{number}" in bad:
            lines.append("; left out\n" if cells is None else "uneven\n")
            continue
        job = cells[0] if cells[0] != -1 else max(last, 0.0) + number  # such as an array's task, 12_1
        submit = cells[1] if isinstance(cells[1], str) else cells[1] - origin
        texts = [cell if isinstance(cell, str) else exact(cell).replace(",", "") for cell in (job, submit, *cells[2:])]
        lines.append(" ".join(texts) + "\n")
    return read_swf(lines, clip=clip, sort=sort, skip_bad=skip_bad)


def _cells(row: Mapping[str, str], users: dict[str, int]) -> list[float | str] | None:
    """Return the cells of a row in a batch log, with its submission in seconds since 1970; texts: unreadable. None:
    the row is left out. A new user gets a number in ``users``."""
    job, state = row.get("JobIDRaw") or row.get("JobID", ""), row.get("State", "COMPLETED").split(" ")[0]
    if "." in job or state in NOT_ENDED or ("End" in row and _instant(row["End"]) is None):
        return None
    submit, start, end = (_instant(row.get(name, "")) for name in ("Submit", "Start", "End"))
    wait = run = -1.0
    if isinstance(submit, float) and isinstance(start, float):
        wait = start - submit
        elapsed = row.get("ElapsedRaw") or row.get("Elapsed", "")
        taken = float(elapsed) if elapsed.isdecimal() else _duration(elapsed)
        if taken < 0 and isinstance(end, float):
            taken = end - start
        run = taken
    cells: list[float | str] = [-1.0] * WIDTH
    allocated, requested, nodes = (_count(row.get(name, "")) for name in ("AllocCPUS", "ReqCPUS", "NNodes"))
    allocated = allocated if allocated > 0 else _count(row.get("NCPUS", ""))
    limit = row.get("TimelimitRaw", "")
    cells[:5] = [float(job) if job.isdecimal() else -1.0, -1.0 if submit is None else submit, wait, run, allocated]
    cells[7] = requested if requested > 0 else allocated
    cells[8] = 60 * float(limit) if limit.isdecimal() else _duration(row.get("Timelimit", ""))
    memory, processors = MEMORY.fullmatch(row.get("ReqMem", "")), max(float(cells[7]), 1.0)
    if memory is not None and float(memory["amount"]) > 0:
        # per processor, per node or, as since Slurm 21.08, of the whole job
        several = {"c": processors, "n": max(nodes, 1.0), "": 1.0}[memory["each"]]
        cells[9] = float(memory["amount"]) * KIBIBYTES[memory["unit"]] * several / processors
    cells[10] = STATUS.get(state, 0)
    user = row.get("User") or row.get("UID", "")
    cells[11] = users.setdefault(user, len(users) + 1) if user else -1.0
    return cells


def _instant(text: str) -> float | str | None:
    """Return seconds since 1970 of a time such as ``2026-11-30T04:09:32``; None: there is none; a text: unreadable."""
    if text in NOTHING:
        return None
    if text.isdecimal():
        return float(text)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return text.replace(" ", "_")


def _duration(text: str) -> float:
    """Return the seconds of ``1-02:03:04``, −1 for none or no limit."""
    match = None if text in UNLIMITED | NOTHING else DURATION.fullmatch(text)
    if match is None:
        return -1.0
    days, hours, minutes, seconds = (float(match[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _count(text: str) -> float:
    return float(text) if text.isdecimal() else -1.0
