"""Samples of kind `cluster`: an execution holds measured steps, learning curves and submitted jobs, or some of
these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, Field
from safetensors import numpy as safetensors_numpy

from app.charts.text import exact
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.report import LARGEST, MOST_BESIDE, SHORTEST
from app.kinds.cluster.run_samples import run_rows
from app.kinds.columns import MICRO, Column, Form, Values, choice, name, names, number, time
from app.kinds.contract.inputs import LARGEST_NUMBER, FieldIssue, InvalidInput, Sample
from app.kinds.contract.samples import ExecutionBase, Export, Format
from app.kinds.records import (
    Collector,
    RowCodec,
    Rows,
    by_name,
    error_value,
    refuse,
    rejection,
    row_exports,
    row_formats,
)
from app.kinds.tensors import read_header, write_tensors

MOST_GPUS, MOST_ROWS, MOST_NAMES = 1_000_000, 1_000_000, 10_000


# Columns of the tables.


def forms(layout: Layout | None) -> tuple[Form, Form, Form]:
    """Return the forms of rows for measured steps, learning curves and submitted jobs. ``layout`` None: forms for the
    documentation, without names of node classes and queues."""
    classes, queues = ([one.name for one in layout.spec.nodes], layout.queues) if layout else ((), ())

    def gpus(text: str) -> Column:
        return number("gpus", text, required=True, minimum=1, maximum=MOST_GPUS, whole=True)

    positive: Any = {"minimum": 0, "maximum": LARGEST, "above": True}
    amount: Any = {"minimum": 0, "maximum": LARGEST_NUMBER}
    steps = (
        name("application", "applications", required=True),
        gpus(""),
        number(
            "nodes",
            "Number of nodes the GPUs are spread over; default: as few as they fill.",
            minimum=1,
            maximum=MOST_GPUS,
            whole=True,
        ),
        choice("node_class", "node class", classes, "Node class of the spec; optional if there is only one."),
        number("batch", "Samples per step, over all GPUs.", required=True, **positive),
        names("beside", "applications", MOST_BESIDE, "Applications of jobs that shared its nodes; empty: none."),
        number("seconds", "Duration of a step.", required=True, **positive),
        number("computing", "Part of the step spent computing gradients.", **positive),
    )
    curves = (
        name("job", "jobs", required=True),
        name("application", "applications", "Jobs of one application are expected to learn alike."),
        number(
            "iteration",
            "Epochs or updates completed, in the application's own unit.",
            required=True,
            minimum=0,
            maximum=LARGEST,
        ),
        number("loss", "Lower is better."),
        number("metric", "Higher is better."),
        number("batch", "Samples per update, over all GPUs.", **positive),
        number("noise_scale", "Gradient noise scale, in samples: variance over squared gradient.", **amount),
    )
    arrivals = (
        time("time", required=True),
        choice("queue", "queue", queues, "Default: the least urgent queue.", default=len(queues) - 1),
        name("application", "applications"),
        gpus("Number of GPUs requested."),
        number("data", "Data size, in one unit per application.", **amount),
        number("duration", "Seconds that it ran on those GPUs.", **amount),
        number(
            "samples",
            "Samples that it trained on until it finished, each counted at the statistical efficiency of its initial "
            "batch.",
            **amount,
        ),
        number("wait", "Seconds from its submission to its start; default: 0, where a duration is given.", **amount),
    )
    return (
        Form("steps", "a measured step", "seconds", steps),
        Form("curves", "a point of a learning curve", "iteration", curves, either=("loss", "metric")),
        Form("arrivals", "a submitted job", "time", arrivals),
    )


class LogCollector(Collector):
    """Collects rows of steps, curves and arrivals into the tables of ``Content``; ``layout``: of the workload."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(forms(layout))
        self._largest_node = max(one.gpus for one in layout.spec.nodes)
        self._tables: dict[str, list[Floats]] = {table: [np.zeros((0, width))] for table, width in WIDTHS.items()}
        self._curves = dict[int, tuple[float, float, float]]()

    def take(self, rows: Rows, form: str | None = None) -> None:
        """Add rows in order, of ``form`` or, if None, of forms detected by their columns. Raises InvalidInput if a row
        is invalid, or there are more than ``MOST_ROWS`` rows or ``MOST_NAMES`` names."""
        super().take(rows, form)
        amounts = {"rows": (self.count, MOST_ROWS)} | {
            what: (len(book), MOST_NAMES) for what, book in self.books.items()
        }
        for what, (count, most) in amounts.items():
            if count > most:
                message = f"an execution holds at most {most:,} {what}: upload it in parts"
                raise rejection([FieldIssue(rows.where(rows.rows - 1), message, None)])

    def add_sound(self, form: str, rows: Rows) -> None:
        """Add the valid rows of a form, and leave out invalid ones, which are found by halving the block."""
        try:
            self.add(form, rows)
        except InvalidInput:
            middle = rows.rows // 2
            for part in (range(middle), range(middle, rows.rows)) if middle else ():
                self.add_sound(form, rows.take(part))

    def rules(self, form: str, values: Mapping[str, Values], rows: Rows) -> list[FieldIssue]:
        """Return the issues that concern several columns of steps or curves; none for other forms."""
        if form == "steps":
            gpus, seconds, computing = values["gpus"], values["seconds"], values["computing"]
            fewest, nodes = np.ceil(gpus / self._largest_node), values["nodes"]
            too_few = f"must be at least gpus / {self._largest_node}: no node has more than {self._largest_node} GPUs"
            part = "must be more than 0, and at most seconds, of which it is a part"
            return [
                *rows.issues("nodes", nodes > gpus, "must be a whole number, 1 to gpus"),
                *rows.issues("nodes", nodes < fewest, too_few),
                *rows.issues(
                    "seconds",
                    (seconds > 0) & (seconds < SHORTEST),
                    f"must be at least {exact(SHORTEST)}, at most {exact(LARGEST)}",
                ),
                *rows.issues("computing", computing > seconds, part),
            ]
        if form == "curves":
            falls, rises = ~rows.missing("loss"), ~rows.missing("metric")
            return [
                *rows.issues("metric", rises & falls, "must not be given with a loss: a curve has one of them"),
                *rows.issues("loss", ~rises & ~falls, "must be a number, or a metric given"),
            ]
        return []

    def keep(self, form: str, values: dict[str, Values], rows: Rows) -> None:
        """Append rows to the table of their form.

        Raises:
            InvalidInput: a point of a curve doesn't ascend in iterations, or has another application or measure than
                before.
        """
        if form == "steps":
            fewest = np.ceil(values["gpus"] / self._largest_node)
            nodes = np.where(np.isnan(values["nodes"]), fewest, values["nodes"])
            columns = [(values | {"nodes": nodes})[one] for one in STEP_COLUMNS]
        elif form == "curves":
            rises = ~rows.missing("metric")
            value = np.where(rises, values["metric"], values["loss"])
            columns = [(values | {"value": value, "rises": rises})[one] for one in CURVE_COLUMNS]
        else:
            columns = [(values | {"time": values["time"] / MICRO})[one] for one in ARRIVAL_COLUMNS]
        table = np.column_stack(columns).astype(np.float64)
        if form == "curves":
            self._follow(rows, table)
        self._tables[form].append(table)

    def _follow(self, rows: Rows, table: Floats) -> None:
        """Raise InvalidInput if a row of ``table`` [n, C] doesn't ascend in iteration after its job's earlier rows, or
        differs in application or measure."""
        issues, last = list[FieldIssue](), dict[int, tuple[float, float, float]]()
        for row, (job, application, iteration, _, rises, *_) in enumerate(table.tolist()):
            before = last.get(int(job), self._curves.get(int(job)))
            last[int(job)] = application, iteration, rises
            if before is None:
                continue
            if iteration <= before[1]:
                issues.append(
                    FieldIssue(f"{rows.where(row)}/iteration", f"must be more than {exact(before[1])}", iteration)
                )
            if (application, rises) != (before[0], before[2]):
                wrong = "application" if application != before[0] else "metric" if rises else "loss"
                value = error_value(rows.column(wrong)[row])
                issues.append(
                    FieldIssue(f"{rows.where(row)}/{wrong}", "must be as in the rows of its job before", value)
                )
        refuse(issues)
        self._curves.update(last)

    def pack(self) -> tuple[bytes, str, Mapping[str, Any]]:
        """Return the stored bytes, their SHA-256 digest in hexadecimal, and their summary."""
        for parts in self._tables.values():
            parts[:] = [np.concatenate(parts)]  # frees the blocks
        content = Content(
            tuple(self.books["applications"]), tuple(self.books["jobs"]), *(self._tables[table][0] for table in WIDTHS)
        )
        data = pack(content)
        return data, hashlib.sha256(data).hexdigest(), summary(content)


FORMAT = "cluster-samples-1"
STEP_COLUMNS = ("application", "gpus", "nodes", "node_class", "batch", "seconds", "computing", "beside")
CURVE_COLUMNS = ("job", "application", "iteration", "value", "rises", "batch", "noise_scale")
ARRIVAL_COLUMNS = ("time", "queue", "application", "gpus", "data", "duration", "samples", "wait")
APPLICATION, GPUS, NODES, NODE_CLASS, BATCH, SECONDS, COMPUTING, BESIDE = range(8)
"""Columns of ``Content.steps``; ``BESIDE`` is the first of ``MOST_BESIDE``."""
JOB, OF_APPLICATION, ITERATION, VALUE, RISES, AT_BATCH, NOISE_SCALE = range(7)
"""Columns of ``Content.curves``."""
TIME, QUEUE, BY_APPLICATION, ASKED, DATA, DURATION, SAMPLES, WAIT = range(8)
"""Columns of ``Content.arrivals``."""
WIDTHS = {"steps": 8 + MOST_BESIDE - 1, "curves": 7, "arrivals": 8}


class Content(NamedTuple):
    """Tables of an execution; in columns of positions −1 means none, elsewhere NaN means unknown.

    Attributes:
        applications: names of the A applications, [A].
        jobs: names of the C jobs with curves, [C].
        steps: n measured steps, [n, 11]; columns: position of the application, GPUs, nodes, position of the node class,
            samples per step over all GPUs, seconds, seconds of computing, positions of up to 4 neighbouring
            applications.
        curves: m points of curves, by iteration within a job, [m, 7]; columns: positions of job and application,
            iteration, value, whether higher is better, samples per step over all GPUs, gradient noise scale in samples.
        arrivals: k submitted jobs, by time, [k, 8]; columns: seconds since 1970 UTC or another origin, positions of
            queue and application, GPUs requested, data size, seconds it ran, samples needed at the efficiency of its
            initial batch, seconds it waited.
    """

    applications: tuple[str, ...]
    jobs: tuple[str, ...]
    steps: Floats
    curves: Floats
    arrivals: Floats


def pack(content: Content) -> bytes:
    """Serialise tables for storage as safetensors; equal contents give equal bytes."""
    tables = {name: getattr(content, name).astype("<f8", copy=False) for name in WIDTHS}
    if np.isnan(content.arrivals[:, WAIT:]).all():  # stored as before there was this column: equal logs, equal bytes
        tables["arrivals"] = np.ascontiguousarray(tables["arrivals"][:, :WAIT])
    names = {"applications": json.dumps(content.applications), "jobs": json.dumps(content.jobs)}
    return write_tensors({name: table for name, table in tables.items() if len(table)}, {"format": FORMAT, **names})


def unpack(data: bytes) -> Content:
    """Deserialise stored bytes.

    Raises:
        SafetensorError, ValueError, KeyError: the bytes are damaged.
    """
    tables, header = safetensors_numpy.load(data), read_header(data)
    applications, jobs = (tuple(json.loads(header[name])) for name in ("applications", "jobs"))
    each = (np.asarray(tables.get(name, np.zeros((0, width))), np.float64) for name, width in WIDTHS.items())
    steps, curves, log = each
    waits = np.full((len(log), WIDTHS["arrivals"] - log.shape[1]), np.nan)
    return Content(applications, jobs, steps, curves, np.concatenate([log, waits], axis=1))


SHOWN = 100
"""Most applications that a summary names."""


def summary(content: Content) -> dict[str, Any]:
    """Return the summary of an execution for lists, as JSON; jobs are counted by position of the queue, times are
    seconds."""
    steps, arrivals = content.steps, content.arrivals
    seconds, span = float(steps[:, SECONDS].sum()), float(np.ptp(arrivals[:, TIME])) if len(arrivals) else 0.0
    return {
        "seconds": seconds + span,
        "applications": list(content.applications[:SHOWN]),
        "steps": {"count": len(steps), "seconds": seconds} if len(steps) else None,
        "curves": {"jobs": len(content.jobs), "points": len(content.curves)} if len(content.curves) else None,
        "arrivals": _arrivals(arrivals, span) if len(arrivals) else None,
    }


def _arrivals(arrivals: np.ndarray[Any, np.dtype[np.float64]], span: float) -> dict[str, Any]:
    ran = arrivals[:, DURATION]
    ran = ran[~np.isnan(ran)]
    return {
        "count": len(arrivals),
        "of_queues": np.bincount(arrivals[:, QUEUE].astype(np.int64)).tolist(),
        "start": float(arrivals[0, TIME]),
        "span_seconds": span,
        "mean_gpus": float(arrivals[:, ASKED].mean()),
        "mean_duration": float(ran.mean()) if len(ran) else None,
    }


# Schemas of samples in the API.


class StepsRead(BaseModel):
    """Number of measured steps, and the sum of their seconds."""

    count: int
    seconds: float = Field(description="Sum of their durations.")


class CurvesRead(BaseModel):
    """Numbers of learning curves and of their points."""

    jobs: int
    points: int


class ArrivalsRead(BaseModel):
    """Summary of a job log: numbers of jobs, times and durations in seconds, GPUs."""

    count: int
    of_queues: dict[str, int] = Field(description="Number of jobs by queue.")
    start: float = Field(description="Time of the first: seconds since 1970 UTC, or since the log's own origin.")
    span_seconds: float = Field(description="From first to last.")
    mean_gpus: float = Field(description="Mean number of GPUs requested.")
    mean_duration: float | None = Field(description="Null if no duration is known.")


class ClusterExecution(ExecutionBase):
    """A stored execution; `iterations` counts its rows, `seconds` sums steps and the span of its job log."""

    kind: Literal["cluster"]
    applications: list[str] = Field(description="Applications it contains, at most the first 100.")
    steps: StepsRead | None = Field(default=None, description="Its measured steps, if any.")
    curves: CurvesRead | None = Field(default=None, description="Its learning curves, if any.")
    arrivals: ArrivalsRead | None = Field(default=None, description="Its job log, if any.")


class ClusterSamples(RowCodec):
    """Reads, stores and exports executions of kind ``cluster``, as safetensors."""

    formats: ClassVar[Mapping[str, Format]] = row_formats(
        "cluster",
        forms(None),
        LogCollector,
        "application,gpus,nodes,batch,seconds\nresnet50,4,1,512,0.41\nresnet50,8,2,512,0.27\n",
    )
    exports: ClassVar[Mapping[str, Export]] = row_exports(forms(None))
    execution: ClassVar[type[ExecutionBase]] = ClusterExecution

    def unpack(self, data: bytes) -> Content:
        """Deserialise steps, curves and arrivals; raise SafetensorError, ValueError or KeyError for damaged
        ``data``."""
        return unpack(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Return figures of a stored execution for lists, as JSON.

        ``seconds`` (of all steps, plus the span of the job log), ``applications`` (the first 100 names), and ``steps``,
        ``curves`` and ``arrivals`` (their counts and figures, None without rows); but ``of_queues`` is a list of
        numbers of jobs by the queue's position in the spec, which ``summary_fields`` turns into names.

        Raises:
            SafetensorError, ValueError, KeyError: ``data`` is damaged.
        """
        return summary(unpack(data))

    def summary_fields(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``summary`` with names of queues in place of their positions."""
        log = summary.get("arrivals")
        named = {"arrivals": {**log, "of_queues": by_name(self.layout.queues, log["of_queues"])}} if log else {}
        return {"applications": [], **summary, **named}

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """Return the sample of a run's reports, without invalid rows; None if no row is valid. Only the last
        ``MOST_ROWS`` rows per form are kept."""
        collector = LogCollector(self.layout)
        for form, rows in run_rows(self.layout.spec, reports).items():
            columns = {one: [row.get(one) for row in rows[-MOST_ROWS:]] for one in collector.forms[form].names}
            collector.add_sound(form, Rows(columns, str))
        return collector.sample(run) if collector.count else None

    def rows(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield steps, points of curves and arrivals as JSON objects, in this order, without unknown values. Raises
        SafetensorError, ValueError or KeyError if ``data`` is damaged."""
        content, queues = self.unpack(data), self.layout.queues
        classes, applications = [one.name for one in self.layout.spec.nodes], [*content.applications, None]
        for application, gpus, nodes, kind, batch, seconds, computing, *beside in content.steps.tolist():
            others = [applications[int(one)] for one in beside if one >= 0]
            counts = {"gpus": int(gpus), "nodes": int(nodes), "node_class": classes[int(kind)], "batch": batch}
            took = {"beside": others or None, "seconds": seconds, "computing": computing}
            yield _without_missing({"application": applications[int(application)], **counts, **took})
        for job, application, iteration, value, rises, batch, noise in content.curves.tolist():
            named = {"job": content.jobs[int(job)], "application": applications[int(application)]}
            measured = {"iteration": iteration, "metric" if rises else "loss": value}
            yield _without_missing({**named, **measured, "batch": batch, "noise_scale": noise})
        for moment, queue, application, gpus, *known in content.arrivals.tolist():
            named = {"time": moment, "queue": queues[int(queue)], "application": applications[int(application)]}
            fields = dict(zip(ARRIVAL_COLUMNS[DATA:], known, strict=True))
            yield _without_missing({**named, "gpus": int(gpus), **fields})


def _without_missing(row: dict[str, Any]) -> dict[str, Any]:
    return {column: value for column, value in row.items() if value is not None and value == value}
