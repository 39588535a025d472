"""A document in WfFormat, reduced while it is read to what scheduling needs; from here on versions look the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.json_walk import Found, token, walk
from app.kinds.workflow.formats.reading import LISTED, refuse
from app.kinds.workflow.formats.source import Source, pieces

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
    """What is needed of an object; the rest of it is left alone. Numbers are numbers, not words."""

    model_config = ConfigDict(strict=True, extra="ignore")


AnyPart = TypeVar("AnyPart", bound=_Part)


class _FlatFile(_Part):
    name: Text
    path: str = ""
    link: Text
    size: Annotated[Amount, Field(alias="sizeInBytes")]


class Task(_Part):
    """A task, of the specification, of the execution, or of both."""

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
        """What it is called."""
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
    """One workflow.

    Attributes:
        tasks: with what was measured where the file tells both in one place (1.4).
        executed: what was measured, where it stands apart (1.5).
        sizes: bytes of each file.
        machines: processors of each machine that tells them.
        place: pointer to the list of tasks.
        issues: what was wrong with single parts, in their order.
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
        """Whether it has the form of 1.4."""
        return self.place == "/workflow/tasks"

    @property
    def execution_place(self) -> str:
        """Pointer to what tells of the execution."""
        return WORKFLOW if self.flat else EXECUTION

    def pointer(self, task: int, name: str) -> str:
        """Pointer to a field of a task; those that are measured stand apart in 1.5."""
        if not self.flat and name in ("runtimeInSeconds", "memoryInBytes", "coreCount"):
            identifier = self.tasks[task].identifier
            at = next((i for i, each in enumerate(self.executed) if each.id == identifier), None)
            return f"{EXECUTION}/tasks/{task if at is None else at}/{name}"
        name = "cores" if name == "coreCount" else name
        return f"{self.place}/{task}{token(name) if name else ''}"

    def measured(self, index: Mapping[str, int] | None) -> list[Task]:
        """What was measured of each task, in their order; with an index, also checked.

        Raises:
            InvalidInput: it tells of a task that there is not, or twice of one.
        """
        if self.flat:
            return self.tasks
        known = index if index is not None else {task.identifier: i for i, task in enumerate(self.tasks)}
        found: list[Task | None] = [None] * len(self.tasks)
        issues = []
        for number, each in enumerate(self.executed):
            at = known.get(each.identifier)
            if at is None or found[at] is not None:
                message = "must be the id of a task of the specification" if at is None else "must be unique"
                issues.append(FieldIssue(f"{EXECUTION}/tasks/{number}/id", message, each.id))
            else:
                found[at] = each
        refuse(issues)
        return [each or Task() for each in found]


def read_document(source: Source) -> Document:
    """A document out of its JSON.

    Raises:
        InvalidInput: it is not JSON, not of a version that is known, or has parts that are not what they should be.
        OSError: the file can't be read.
    """
    document = Document()
    for found in walk(pieces(source), INTO):
        _take(document, found)
        if len(document.issues) >= LISTED:
            break
    refuse(document.issues)
    _check_version(document)
    return document


def _check_version(document: Document) -> None:
    known = SPLIT if document.executed or not document.flat else FLAT
    if document.version not in (*FLAT, *SPLIT):
        message = f"must be one of {', '.join((*FLAT, *SPLIT))}"
        refuse([FieldIssue("/schemaVersion", message, document.version)])
    if document.tasks and document.version not in known:
        message = f"must be {' or '.join(known)} where the tasks stand in {document.place}"
        refuse([FieldIssue("/schemaVersion", message, document.version)])


def _take(document: Document, found: Found) -> None:
    """Keep what is needed of one value."""
    parent, _, last = found.pointer.rpartition("/")
    if parent in (f"{SPECIFICATION}/tasks", "/workflow/tasks"):
        document.place = parent
        _take_task(document, found)
    elif parent == f"{EXECUTION}/tasks":
        if (executed := _parsed(_ExecutedTask, document, found)) is not None:
            document.executed.append(executed)
    elif parent == f"{SPECIFICATION}/files":
        if (file := _parsed(_File, document, found)) is not None:
            _take_size(document, file.id, file.size, f"{found.pointer}/sizeInBytes")
    elif parent in (f"{EXECUTION}/machines", "/workflow/machines"):
        machine = _parsed(_Machine, document, found)
        if machine is not None and (cores := machine.cpu.cores or machine.cpu.count):
            document.machines += (int(cores),)
    elif found.pointer in INTO:
        document.issues.append(FieldIssue(found.pointer, "must hold a workflow of WfFormat", _short(found.value)))
    elif (parent, last) in _SCALARS:
        _take_scalar(document, found, *_SCALARS[parent, last])


_SCALARS: dict[tuple[str, str], tuple[str, TypeAdapter[Any]]] = {
    ("", "name"): ("name", TypeAdapter(str)),
    ("", "schemaVersion"): ("version", TypeAdapter(str)),
    **{(at, "makespanInSeconds"): ("makespan", TypeAdapter(Amount)) for at in (WORKFLOW, EXECUTION)},
    **{(at, "executedAt"): ("executed_at", TypeAdapter(str)) for at in (WORKFLOW, EXECUTION)},
}


def _take_scalar(document: Document, found: Found, name: str, kind: TypeAdapter[Any]) -> None:
    try:
        setattr(document, name, kind.validate_python(found.value))
    except ValidationError as error:
        document.issues += _issues(error, found.pointer)


def _take_task(document: Document, found: Found) -> None:
    if not document.flat:
        if (task := _parsed(_SpecifiedTask, document, found)) is not None:
            document.tasks.append(task)
        return
    flat = _parsed(_FlatTask, document, found)
    if flat is None:
        return
    for number, file in enumerate(flat.files):
        pointer = f"{found.pointer}/files/{number}"
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


def _parsed(model: type[AnyPart], document: Document, found: Found) -> AnyPart | None:
    try:
        return model.model_validate(found.value)
    except ValidationError as error:
        document.issues += _issues(error, found.pointer)
        return None


def _issues(error: ValidationError, pointer: str) -> list[FieldIssue]:
    return [
        FieldIssue(pointer + "".join(map(token, each["loc"])), each["msg"], _short(each["input"]))
        for each in error.errors(include_url=False)
    ]


def _short(value: Any) -> Any:
    """A value that is worth showing."""
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__
