"""Reader of WfFormat, the workflow format of WfCommons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.charts.text import count_text
from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.json_walk import PointerValue, token, walk
from app.kinds.workflow.formats.reading import (
    LISTED,
    Edges,
    Reading,
    Source,
    Where,
    cycle_issue,
    doubtful_units,
    pieces,
    refuse,
    share_lacking,
)
from app.kinds.workflow.trace import Trace

# Document in WfFormat, reduced while reading to what scheduling needs; the same for all versions.


FLAT, SPLIT = ("1.4",), ("1.5", "1.6")
WORKFLOW, SPECIFICATION, EXECUTION = "/workflow", "/workflow/specification", "/workflow/execution"
INTO = frozenset(
    ["", WORKFLOW, SPECIFICATION, EXECUTION, "/workflow/tasks", "/workflow/machines"]
    + [f"{SPECIFICATION}/{part}" for part in ("tasks", "files")]
    + [f"{EXECUTION}/{part}" for part in ("tasks", "machines")]
)
Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Count = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]


class _Part(BaseModel):
    """Base of models of a document's objects, with the fields that are read; other fields are ignored, and text in
    place of a number is an error."""

    model_config = ConfigDict(strict=True, extra="ignore")


AnyPart = TypeVar("AnyPart", bound=_Part)


class _FlatFile(_Part):
    name: Text
    path: str = ""
    link: Text
    size: Annotated[Amount, Field(alias="sizeInBytes")]


class Task(_Part):
    """A task of the specification, of the execution, or of both."""

    id: Text | None = None
    name: str = ""
    parents: list[str] = []
    children: list[str] = []
    inputs: Annotated[list[str], Field(alias="inputFiles")] = []
    outputs: Annotated[list[str], Field(alias="outputFiles")] = []
    runtime: Annotated[Amount | None, Field(alias="runtimeInSeconds")] = None
    processors: Annotated[Count | None, Field(alias="coreCount")] = None
    memory: Annotated[Amount | None, Field(alias="memoryInBytes")] = None

    @property
    def identifier(self) -> str:
        """Id of the task, else its name."""
        return self.id or self.name


class _FlatTask(Task):
    name: Text
    processors: Annotated[Count | None, Field(alias="cores")] = None
    files: list[_FlatFile] = []


class _SpecifiedTask(Task):
    id: Text


class _ExecutedTask(Task):
    id: Text
    runtime: Annotated[Amount, Field(alias="runtimeInSeconds")]


class _File(_Part):
    id: Text
    size: Annotated[Amount, Field(alias="sizeInBytes")]


class _Cpu(_Part):
    count: Count | None = None
    cores: Annotated[Count | None, Field(alias="coreCount")] = None


class _Machine(_Part):
    cpu: _Cpu = _Cpu()


@dataclass
class Document:
    """One workflow as read from a document of any version.

    Attributes:
        name: name given in the file.
        version: version of the schema; None: not given.
        makespan: recorded duration in seconds; None: not given.
        executed_at: recorded date; None: not given.
        tasks: tasks, with measurements if the file has both together (1.4).
        executed: measurements of tasks, if separate (1.5).
        sizes: bytes of each file, by name.
        machines: processors of each machine, if given.
        place: JSON pointer to the list of tasks.
        issues: issues of single parts, in order.
    """

    name: str = ""
    version: str | None = None
    makespan: float | None = None
    executed_at: str | None = None
    tasks: list[Task] = field(default_factory=list)
    executed: list[Task] = field(default_factory=list)
    sizes: dict[str, float] = field(default_factory=dict)
    machines: tuple[int, ...] = ()
    place: str = f"{SPECIFICATION}/tasks"
    issues: list[FieldIssue] = field(default_factory=list)

    @property
    def flat(self) -> bool:
        """Whether the tasks stand directly under the workflow, with their measurements, as in WfFormat 1.4."""
        return self.place == "/workflow/tasks"

    @property
    def execution_place(self) -> str:
        """JSON pointer to the object with data of the execution."""
        return WORKFLOW if self.flat else EXECUTION

    def pointer(self, task: int, name: str) -> str:
        """Return the JSON pointer to a field of a task by its position; measured fields stand elsewhere in 1.5."""
        if not self.flat and name in ("runtimeInSeconds", "memoryInBytes", "coreCount"):
            identifier = self.tasks[task].identifier
            at = next((i for i, each in enumerate(self.executed) if each.id == identifier), None)
            return f"{EXECUTION}/tasks/{task if at is None else at}/{name}"
        name = "cores" if name == "coreCount" else name
        return f"{self.place}/{task}{token(name) if name else ''}"

    def measured(self, index: Mapping[str, int] | None) -> list[Task]:
        """Return the measurements of each task, in the order of ``tasks``; empty ones for tasks without. ``index``:
        position of each task by identifier; None: by the tasks' own identifiers.

        Raises:
            InvalidInput: measurements of an unknown task, or two of one task.
        """
        if self.flat:
            return self.tasks
        known = index if index is not None else {task.identifier: i for i, task in enumerate(self.tasks)}
        tasks: list[Task | None] = [None] * len(self.tasks)
        issues = []
        for number, each in enumerate(self.executed):
            at = known.get(each.identifier)
            if at is None or tasks[at] is not None:
                message = "must be the id of a task of the specification" if at is None else "must be unique"
                issues.append(FieldIssue(f"{EXECUTION}/tasks/{number}/id", message, each.id))
            else:
                tasks[at] = each
        refuse(issues)
        return [each or Task() for each in tasks]


def read_document(source: Source) -> Document:
    """Parse a document in WfFormat.

    Raises:
        InvalidInput: the document is not JSON, has an unknown version, or invalid parts.
        OSError: the file can't be read.
    """
    document = Document()
    for node in walk(pieces(source), INTO):
        _take(document, node)
        if len(document.issues) >= LISTED:
            break
    refuse(document.issues)
    known = SPLIT if document.executed or not document.flat else FLAT
    if document.version not in (*FLAT, *SPLIT):
        message = f"must be one of {', '.join((*FLAT, *SPLIT))}"
        refuse([FieldIssue("/schemaVersion", message, document.version)])
    if document.tasks and document.version not in known:
        message = f"must be {' or '.join(known)} where the tasks stand in {document.place}"
        refuse([FieldIssue("/schemaVersion", message, document.version)])
    return document


def _take(document: Document, part: PointerValue) -> None:
    """Add a parsed value to ``document`` if it is needed; its errors go to ``document.issues``."""
    parent, _, last = part.pointer.rpartition("/")
    if parent in (f"{SPECIFICATION}/tasks", "/workflow/tasks"):
        document.place = parent
        _take_task(document, part)
    elif parent == f"{EXECUTION}/tasks":
        if (executed := _parse(_ExecutedTask, document, part)) is not None:
            document.executed.append(executed)
    elif parent == f"{SPECIFICATION}/files":
        if (file := _parse(_File, document, part)) is not None:
            _take_size(document, file.id, file.size, f"{part.pointer}/sizeInBytes")
    elif parent in (f"{EXECUTION}/machines", "/workflow/machines"):
        machine = _parse(_Machine, document, part)
        if machine is not None and (cores := machine.cpu.cores or machine.cpu.count):
            document.machines += (int(cores),)
    elif part.pointer in INTO:
        document.issues.append(FieldIssue(part.pointer, "must hold a workflow of WfFormat", _short(part.value)))
    elif (parent, last) in _SCALARS:
        _take_scalar(document, part, *_SCALARS[parent, last])


_SCALARS: dict[tuple[str, str], tuple[str, TypeAdapter[Any]]] = {
    ("", "name"): ("name", TypeAdapter(str)),
    ("", "schemaVersion"): ("version", TypeAdapter(str)),
    **{(at, "makespanInSeconds"): ("makespan", TypeAdapter(Amount)) for at in (WORKFLOW, EXECUTION)},
    **{(at, "executedAt"): ("executed_at", TypeAdapter(str)) for at in (WORKFLOW, EXECUTION)},
}


def _take_scalar(document: Document, pointer_value: PointerValue, name: str, kind: TypeAdapter[Any]) -> None:
    try:
        setattr(document, name, kind.validate_python(pointer_value.value))
    except ValidationError as error:
        document.issues += _issues(error, pointer_value.pointer)


def _take_task(document: Document, pointer_value: PointerValue) -> None:
    if not document.flat:
        if (task := _parse(_SpecifiedTask, document, pointer_value)) is not None:
            document.tasks.append(task)
        return
    flat = _parse(_FlatTask, document, pointer_value)
    if flat is None:
        return
    for number, file in enumerate(flat.files):
        pointer = f"{pointer_value.pointer}/files/{number}"
        _take_size(document, file.path + file.name, file.size, f"{pointer}/sizeInBytes")
        if file.link not in ("input", "output"):
            document.issues.append(FieldIssue(f"{pointer}/link", "must be input or output", file.link))
        (flat.inputs if file.link == "input" else flat.outputs).append(file.path + file.name)
    flat.files = []
    document.tasks.append(flat)


def _take_size(document: Document, name: str, size: float, pointer: str) -> None:
    known = document.sizes.setdefault(name, size)
    if known != size:
        message = f"file {name!r} has been given with {known:,.0f} bytes already"
        document.issues.append(FieldIssue(pointer, message, size))


def _parse(model: type[AnyPart], document: Document, pointer_value: PointerValue) -> AnyPart | None:
    try:
        return model.model_validate(pointer_value.value)
    except ValidationError as error:
        document.issues += _issues(error, pointer_value.pointer)
        return None


def _issues(error: ValidationError, pointer: str) -> list[FieldIssue]:
    return [
        FieldIssue(pointer + "".join(map(token, each["loc"])), each["msg"], _short(each["input"]))
        for each in error.errors(include_url=False)
    ]


def _short(value: Any) -> Any:
    """Return ``value``, or the name of its type if it is a container, for error messages."""
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__


# WfFormat, the JSON of WfCommons: one workflow with tasks, files, and measurements of an execution.
#
# Coleman et al., *WfCommons: A Framework for Enabling Scientific Workflow Research and Development*, FGCS 128 (2022);
# versions 1.4 (one list of tasks), 1.5 and 1.6 (a specification and an execution).


MOST_SHARED = 10_000_000
"""Most pairs of file and edge: few bytes can describe very many, by a file that all tasks write and read."""
FIELDS = {
    "runtime": "runtimeInSeconds",
    "memory": "memoryInBytes",
    "processors": "coreCount",
    "parents": "parents",
}


def read_wfformat(source: Source) -> Reading:
    """Read a workflow, plain or gzip. All tasks are submitted at time 0 in file order. Processors are ``coreCount``
    rounded up, 1 if missing; an edge carries the bytes of files that the parent writes and the child reads. Edges may
    be given at either end; if no task has parents or children, they follow from writers and readers of files.

    Raises:
        InvalidInput: with JSON pointers: unreadable values, duplicate identifiers, unknown parents, children or tasks,
            negative run times or sizes, or a cycle.
        OSError: the file can't be read.
    """
    document = read_document(source)
    index = _positions_by_id(document)
    warnings: list[FieldIssue] = []
    edges = _edges(document, index, warnings)
    names = tuple(task.identifier for task in document.tasks)

    def where(task: int, field: str) -> str:
        return document.pointer(task, FIELDS.get(field, ""))

    refuse(cycle_issue(names, edges, where))
    trace = _trace(document, names, index, edges, warnings)
    warnings += [*doubtful_units(trace, where), *_against_makespan(trace, document, where)]
    warnings += _too_large(trace, document.machines, where)
    return Reading(trace, where, _lacks(trace, document), tuple(warnings), document.name, document.machines)


def _positions_by_id(document: Document) -> dict[str, int]:
    """Return the position of every task by id, and by name if that is unique. Raises InvalidInput if an id is given
    twice, or there is no task."""
    if not document.tasks:
        refuse([FieldIssue(document.place, "must hold at least one task", None)])
    index: dict[str, int] = {}
    issues = []
    for task, entry in enumerate(document.tasks):
        first = index.setdefault(entry.identifier, task)
        if first != task:
            message = f"must be unique; {document.pointer(first, '')} has it already"
            field = "name" if entry.id is None else "id"
            issues.append(FieldIssue(document.pointer(task, field), message, entry.identifier))
    refuse(issues)
    by_name: dict[str, list[int]] = {}
    for task, entry in enumerate(document.tasks):
        by_name.setdefault(entry.name, []).append(task)
    return {name: tasks[0] for name, tasks in by_name.items() if len(tasks) == 1} | index


def _edges(document: Document, index: dict[str, int], warnings: list[FieldIssue]) -> Edges:
    """Return the parents of each task, each once, in order. Raises InvalidInput if a parent or child is unknown."""
    parents: list[dict[int, None]] = [{} for _ in document.tasks]
    issues = []
    for task, entry in enumerate(document.tasks):
        for end, names in (("parents", entry.parents), ("children", entry.children)):
            for place, name in enumerate(names):
                other = index.get(name)
                if other is None:
                    pointer = f"{document.pointer(task, end)}/{place}"
                    issues.append(FieldIssue(pointer, "must be the id of a task", name))
                elif end == "parents":
                    parents[task][other] = None
                else:
                    parents[other][task] = None
        if len(issues) >= LISTED:
            break
    refuse(issues)
    if not any(parents):
        parents = _parents_by_files(document, warnings)
    start = np.concatenate([[0], np.cumsum([len(each) for each in parents])]).astype(np.int64)
    return Edges(start, np.array([parent for each in parents for parent in each], np.int64))


def _parents_by_files(document: Document, warnings: list[FieldIssue]) -> list[dict[int, None]]:
    writers: dict[str, list[int]] = {}
    for number, task in enumerate(document.tasks):
        for file in dict.fromkeys(task.outputs):
            writers.setdefault(file, []).append(number)
    total = sum(len(writers.get(file, ())) for task in document.tasks for file in task.inputs)
    if total > MOST_SHARED:
        message = f"files join tasks {total:,} times, from who writes to who reads: must be at most {MOST_SHARED:,}"
        refuse([FieldIssue(document.place, message, None)])
    parents: list[dict[int, None]] = [
        {writer: None for file in task.inputs for writer in writers.get(file, ()) if writer != number}
        for number, task in enumerate(document.tasks)
    ]
    if total := sum(map(len, parents)):
        message = (
            f"no task names parents or children: {count_text(total, 'edge')} taken from who writes and reads files"
        )
        warnings.append(FieldIssue(document.place, message, None))
    return parents


def _trace(
    document: Document, names: tuple[str, ...], index: dict[str, int], edges: Edges, warnings: list[FieldIssue]
) -> Trace:
    count = len(names)
    measured = document.measured(index)

    def column(pick: Callable[[Task], float | None]) -> NDArray[np.float64]:
        return np.array([pick(task) for task in measured], np.float64)

    processors = np.ceil(column(lambda task: task.processors))
    return Trace(
        names=names,
        submit=np.zeros(count),
        runtime=column(lambda task: task.runtime),
        estimate=np.full(count, np.nan),
        processors=np.where(np.isnan(processors), 1, processors).astype(np.int64),
        memory=column(lambda task: task.memory),
        user=np.full(count, -1),
        deadline=np.full(count, np.nan),
        group=np.zeros(count, np.int64),
        parent_start=edges.start,
        parents=edges.parents,
        data=_bytes_along(document, edges),
        origin=_origin(document, warnings),
    )


def _bytes_along(document: Document, edges: Edges) -> NDArray[np.float64]:
    """Return the bytes along each of E edges, [E]: those of files that the parent writes and the child reads. Raises
    InvalidInput if there are more than ``MOST_SHARED`` of these files."""
    written = [frozenset(task.outputs) for task in document.tasks]
    read = [frozenset(task.inputs) for task in document.tasks]
    child = np.repeat(np.arange(len(written)), np.diff(edges.start))
    counts = np.array([list(map(len, written)), list(map(len, read))])
    shared = int(np.minimum(counts[0, edges.parents], counts[1, child]).sum())
    if shared > MOST_SHARED:
        message = f"up to {shared:,} files go along edges: must be at most {MOST_SHARED:,}"
        refuse([FieldIssue(document.place, message, None)])
    sizes = document.sizes
    return np.array(
        [
            sum(sizes.get(file, 0.0) for file in sorted(written[parent] & read[task]))
            for parent, task in zip(edges.parents.tolist(), child.tolist(), strict=True)
        ],
        np.float64,
    )


def _origin(document: Document, warnings: list[FieldIssue]) -> float:
    """Return the time of execution, seconds since 1970 (UTC unless it has a time zone); 0 if unknown, or with a
    warning."""
    executed_at = document.executed_at
    if executed_at is None:
        return 0.0
    try:
        when = datetime.fromisoformat(executed_at)
    except ValueError:
        pointer = f"{document.execution_place}{token('executedAt')}"
        warnings.append(FieldIssue(pointer, "is not a date and time of ISO 8601: it is ignored", executed_at))
        return 0.0
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _against_makespan(trace: Trace, document: Document, where: Where) -> list[FieldIssue]:
    """Return a warning if a task ran longer than twice the recorded makespan."""
    makespan = document.makespan
    if makespan is None or makespan <= 0 or not (trace.runtime > 2 * makespan).any():
        return []
    longest = int(np.nanargmax(trace.runtime))
    message = f"is longer than the recorded makespan of {makespan:,.0f} s: are run times in milliseconds?"
    return [FieldIssue(where(longest, "runtime"), message, float(trace.runtime[longest]))]


def _too_large(trace: Trace, machines: tuple[int, ...], where: Where) -> list[FieldIssue]:
    over = np.flatnonzero(trace.processors > max(machines)) if machines else np.zeros(0, np.int64)
    if not len(over):
        return []
    largest = f"the {count_text(max(machines), 'core')} of the largest machine of the file"
    message = f"{count_text(len(over), 'task')} larger than {largest}; this is the first"
    return [FieldIssue(where(int(over[0]), "processors"), message, int(trace.processors[over[0]]))]


def _lacks(trace: Trace, document: Document) -> tuple[str, ...]:
    tasks = trace.tasks
    measured = document.measured(None)
    silent = int((trace.data == 0).sum())
    edges = len(trace.data)
    which = "no edge has" if silent == edges else f"{count_text(silent, 'edge')} of {edges:,} without"
    unknown = {file for task in document.tasks for file in (*task.inputs, *task.outputs)} - document.sizes.keys()
    return (
        *share_lacking(int(np.isnan(trace.runtime).sum()), tasks, "task", "a run time", "they can't be simulated"),
        *share_lacking(tasks, tasks, "task", "an estimate", "exact run times are planned with"),
        *share_lacking(
            sum(t.processors is None for t in measured), tasks, "task", "a core count", "they take one processor"
        ),
        *share_lacking(int(np.isnan(trace.memory).sum()), tasks, "task", "memory", "memory does not limit them"),
        *((f"{which} data: transfers along it take no time",) if silent else ()),
        *((f"{count_text(len(unknown), 'file')} without a size: taken as empty",) if unknown else ()),
        "no task has a user or a submit time: all are submitted at once",
    )
