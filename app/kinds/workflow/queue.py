"""Nodes of a workload, state of a run's queue, logs of runs, and schemas of reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from app.charts.text import exact
from app.kinds.contract.inputs import FieldIssue
from app.kinds.fields import Finite, Moment, NonNegative, Part, Positive
from app.kinds.workflow import plans
from app.kinds.workflow.plans import QueuePlan
from app.kinds.workflow.run_times import PastTask, blank
from app.kinds.workflow.spec import MAXIMUM_NODES, NodeType, Spec
from app.kinds.workflow.trace import Trace

# Nodes of a spec as arrays, with their names.


MEGA, GIGA, HOUR = 1e6, 1e9, 3600.0


class Nodes(NamedTuple):
    """M nodes, those of a type next to each other, named by type and number from 0.

    Attributes:
        kind: index of the type, [M].
        processors: number of processors, [M].
        speed: a task of t seconds at speed 1 takes t / speed, [M].
        price: price per second of rented time, [M].
        billing: billing period in seconds; rented time is rounded up to multiples of it, [M].
        startup: seconds from order to first task, [M].
        memory: memory in bytes; infinite: unlimited, [M].
        bandwidth: bytes per second to and from other nodes; infinite: transfers take no time, [M].
        permanent: whether the node is rented permanently (part of its type's minimum), [M].
    """

    kind: NDArray[np.int64]
    processors: NDArray[np.int64]
    speed: NDArray[np.float64]
    price: NDArray[np.float64]
    billing: NDArray[np.float64]
    startup: NDArray[np.float64]
    memory: NDArray[np.float64]
    bandwidth: NDArray[np.float64]
    permanent: NDArray[np.bool_]


def nodes_of(types: tuple[NodeType, ...]) -> Nodes:
    """Return all M nodes of ``types`` that may be rented at once, as arrays."""
    counts = [node.maximum for node in types]

    def each(values: list[float]) -> NDArray[np.float64]:
        return np.repeat(np.array(values, np.float64), counts)

    return Nodes(
        kind=np.repeat(np.arange(len(types)), counts),
        processors=np.repeat(np.array([node.processors for node in types], np.int64), counts),
        speed=each([node.speed for node in types]),
        price=each([node.price_per_hour / HOUR for node in types]),
        billing=each([node.billing_seconds for node in types]),
        startup=each([node.startup_seconds for node in types]),
        memory=each([np.inf if node.memory_gb is None else node.memory_gb * GIGA for node in types]),
        bandwidth=each([np.inf if node.bandwidth_mbps is None else node.bandwidth_mbps * MEGA for node in types]),
        permanent=np.concatenate([np.arange(node.maximum) < node.minimum for node in types]),
    )


class Layout:
    """A workload's spec as arrays.

    Attributes:
        spec: the spec.
        nodes: all M nodes that may be rented.
        names: names of these nodes, [M].
        weights: weights of the objective's terms, in the order of ``TERMS``, [6].
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.nodes = nodes_of(spec.nodes)
        self.names = tuple(f"{node.name}-{i}" for node in spec.nodes for i in range(node.maximum))
        self.weights = np.array(list(spec.weights.model_dump().values()))

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Position of each node by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def known_nodes(self) -> str:
        """Text for error messages about an unknown node, which lists the valid names."""
        ranges = [
            f"{node.name}-0" if node.maximum == 1 else f"{node.name}-0 to {node.name}-{node.maximum - 1}"
            for node in self.spec.nodes
        ]
        return f"unknown node; known: {', '.join(ranges)}"

    @cached_property
    def permanent_nodes(self) -> list[int]:
        """Positions of permanently rented nodes."""
        return [int(node) for node in np.flatnonzero(self.nodes.permanent)]

    @cached_property
    def first(self) -> list[int]:
        """Position of the first node of each type and, as last entry, the number of nodes."""
        return [0, *np.cumsum([node.maximum for node in self.spec.nodes]).tolist()]

    @cached_property
    def _shapes(self) -> list[tuple[int, float]]:
        return [(n.processors, np.inf if n.memory_gb is None else n.memory_gb * GIGA) for n in self.spec.nodes]

    def misfit(self, processors: int, memory: float) -> FieldIssue | None:
        """Return an issue if a task with ``processors`` and ``memory`` (bytes) fits no node; None if it fits one."""
        if any(processors <= most and memory <= size for most, size in self._shapes):
            return None
        largest = max(most for most, _ in self._shapes)
        if processors > largest:
            return FieldIssue("processors", f"must be at most {largest:,}, those of the largest node", processors)
        room = max(size for most, size in self._shapes if processors <= most) / GIGA
        accepted = f"must be at most {exact(room)}, the memory of the largest node with {processors} processors"
        return FieldIssue("memory_gb", accepted, memory / GIGA)


def pool(processors: int) -> Nodes:
    """Return arrays of a single permanent node with ``processors`` processors, on which batch logs are simulated."""
    return nodes_of((NodeType(name="pool", processors=processors, minimum=1, maximum=1),))


# State of a run: its queue as reported. Immutable.


Floats = NDArray[np.float64]
Inputs = tuple[tuple[str, float], ...]

WAITING = -1
STARTING, UP, FAILED = range(3)
NODE_STATES = {"starting": STARTING, "up": UP, "failed": FAILED}
MOST_USERS = 2_000
MOST_PAST = 128  # submissions from which those to come are sampled


class Queue:
    """N waiting or running tasks, in the order of their first report.

    Attributes:
        names: names of the tasks, [N].
        submit, estimate, deadline, start: seconds, [N]; NaN: unknown, or ``start`` of a waiting task.
        memory: bytes; 0: unknown, [N].
        processors: number of processors, [N].
        node: index of the node it runs on, ``WAITING`` if none, [N].
        users, groups: names of user and workflow; empty: unknown, [N].
        inputs: name of each parent, and bytes read from it, [N].
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self.names: list[str] = columns["names"]
        self.submit = np.array(columns["submit"], np.float64)
        self.estimate = np.array(columns["estimate"], np.float64)
        self.deadline = np.array(columns["deadline"], np.float64)
        self.start = np.array(columns["start"], np.float64)
        self.memory = np.array(columns["memory"], np.float64)
        self.processors = np.array(columns["processors"], np.int64)
        self.node = np.array(columns["node"], np.int64)
        self.users: list[str] = columns["users"]
        self.groups: list[str] = columns["groups"]
        self.inputs: list[Inputs] = columns["inputs"]

    def __len__(self) -> int:
        """Number N of waiting and running tasks."""
        return len(self.names)

    @cached_property
    def row(self) -> dict[str, int]:
        """Row of each task by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def linked(self) -> bool:
        """Whether any task has a parent."""
        return any(self.inputs)

    def columns(self) -> dict[str, Any]:
        """Return the columns by name, as plain lists."""
        return {
            name: value if isinstance(value, list) else value.tolist()
            for name in COLUMNS
            for value in [getattr(self, name)]
        }


COLUMNS = (
    "names",
    "submit",
    "estimate",
    "deadline",
    "start",
    "memory",
    "processors",
    "node",
    "users",
    "groups",
    "inputs",
)


class Reservations(NamedTuple):
    """Reservations of waiting tasks, and the state they were made in, to detect when they may move forward.

    Attributes:
        done: number of tasks of the run that had finished.
        free: processors that the decision left free.
        starts: reserved start by task name, in seconds of the reports' clock.
    """

    done: int
    free: int
    starts: dict[str, float]


NOTHING_RESERVED = Reservations(0, 0, {})


class Submitted(NamedTuple):
    """A submission: time in seconds, processors, estimate in seconds (NaN: none) and user (empty: unknown)."""

    at: float
    processors: int
    estimate: float
    user: str


class State(NamedTuple):
    """A run between two reports. Times are seconds of the reports' clock.

    Attributes:
        now: time of the last report; −1 before the first.
        before: time of the report before it; −1: none.
        queue: waiting and running tasks.
        ended: node index and workflow of finished tasks that others may still depend on, by name.
        nodes: status and the time since which it holds, for each node that isn't off, by index.
        head: name of the committed task (no other may delay it), its earliest start, and processors that it leaves free
            then; empty: none.
        history: last tasks of each user, at most ``run_times.LAST``, newest last.
        done: number of finished tasks.
        weight, covariance: state of the regression of run times (``run_times.Regression``).
        plan: plan of a workflow; None: none was made.
        reserved: reservations of waiting tasks.
        submitted: last tasks submitted, at most ``MOST_PAST``, in the order in which they were reported.
    """

    now: float
    before: float
    queue: Queue
    ended: dict[str, tuple[int, str]]
    nodes: dict[int, tuple[int, float]]
    head: tuple[str, float, int] | tuple[()]
    history: dict[str, tuple[PastTask, ...]]
    done: int
    weight: Floats
    covariance: Floats
    plan: QueuePlan | None = None
    reserved: Reservations = NOTHING_RESERVED
    submitted: tuple[Submitted, ...] = ()


def begin(layout: Layout) -> State:
    """Return the state of a run before its first report: no tasks, and permanent nodes up."""
    empty = Queue({name: [] for name in COLUMNS})
    return State(-1.0, -1.0, empty, {}, dict.fromkeys(layout.permanent_nodes, (UP, 0.0)), (), {}, 0, *blank(0)[:2])


def pack(state: State) -> list[Any]:
    """Return a state as plain lists, numbers and texts, for JSON."""
    return [
        state.now,
        state.before,
        state.queue.columns(),
        {name: list(where) for name, where in state.ended.items()},
        [[node, *status] for node, status in state.nodes.items()],
        list(state.head),
        state.history,
        state.done,
        state.weight.tolist(),
        state.covariance.tolist(),
        plans.pack(state.plan),
        list(state.reserved),
        [list(one) for one in state.submitted],
    ]


def unpack(stored: list[Any]) -> State:
    """Return the state from lists that ``pack`` returned, after JSON."""
    now, before, columns, ended, nodes, head, history, done, weight, covariance, plan, reserved, submitted = stored
    columns = {**columns, "inputs": [tuple((name, size) for name, size in inputs) for inputs in columns["inputs"]]}
    return State(
        now,
        before,
        Queue(columns),
        {name: tuple(where) for name, where in ended.items()},
        {node: (status, since) for node, status, since in nodes},
        tuple(head),
        {user: tuple(map(_parse_finished, tasks)) for user, tasks in history.items()},
        done,
        np.array(weight),
        np.array(covariance),
        plans.unpack(plan),
        Reservations(*reserved),
        tuple(Submitted(at, need, _number(estimate), user) for at, need, estimate, user in submitted),
    )


def _parse_finished(stored: Any) -> PastTask:
    seconds, estimate, processors = stored
    return PastTask(seconds, np.nan if estimate is None else estimate, processors)


# Log of a run: its tasks as a trace, with node and start of each, from its reports.


Task = dict[str, Any]


class Log(NamedTuple):
    """The N finished tasks of a run, whichever policy decided their starts.

    Attributes:
        trace: run times at speed 1; times are seconds after the first submission, its origin.
        start: seconds after the origin, [N].
        node: index of each task's node, [N].
    """

    trace: Trace
    start: NDArray[np.float64]
    node: NDArray[np.int64]


def from_reports(layout: Layout, reports: Sequence[Mapping[str, Any]]) -> Log | None:
    """Return the log of a run from its accepted reports, in order; None if no task has finished. Unfinished and failed
    tasks, and edges to them, are left out. An id reused after its task ended names a new task; a parent is the task
    with that id when the child is first reported."""
    read = _Reading()
    for report in reports:
        read.take(report)
    ended = [task for task in read.tasks if not task.get("failed", True)]
    ended.sort(key=lambda task: task["submit"])
    return _log(layout, ended) if ended else None


class _Reading:
    """Tasks of reports as JSON objects, in the order of their first description."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._by_id: dict[str, Task] = {}
        """The task that an identifier names now."""

    def take(self, report: Mapping[str, Any]) -> None:
        """Apply one more report of the run: descriptions, starts and ends of its tasks."""
        known, now = len(self.tasks), report["now"]
        for reported in report.get("queued", ()):
            self._task_of(reported, now).pop("begun", None)
        for reported in report.get("running", ()):
            _record_start(self._task_of(reported, now), reported)
        for reported in report.get("finished", ()):
            task = self._by_id[reported["id"]]
            _record_start(task, reported)
            task["end"], task["failed"] = reported["end"], reported.get("state") == "failed"
        for task in self.tasks[known:]:
            task["edges"] = [(self._by_id[p], size) for p, size in _parents(task) if p in self._by_id]

    def _task_of(self, reported: Mapping[str, Any], now: float) -> Task:
        """Return the task that a report of time ``now`` (seconds) describes, as it was first described."""
        task = self._by_id.get(reported["id"])
        if task is None or "end" in task:
            begun = reported.get("start")
            submit = reported.get("submit")
            task = {**reported, "submit": (now if begun is None else begun) if submit is None else submit}
            self.tasks.append(task)
            self._by_id[reported["id"]] = task
        return task


def _record_start(task: Task, reported: Mapping[str, Any]) -> None:
    if "begun" not in task:
        task["begun"], task["where"] = reported["start"], reported["node"]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _log(layout: Layout, tasks: Sequence[Task]) -> Log:
    origin = float(tasks[0]["submit"])
    start = np.array([task["begun"] for task in tasks], np.float64)
    node = np.array([layout.node_index[task["where"]] for task in tasks], np.int64)
    users = list(dict.fromkeys(task["user"] for task in tasks if task.get("user")))
    groups = list(dict.fromkeys(task["workflow"] for task in tasks if task.get("workflow")))
    at = {name: i for i, name in enumerate(users)}
    of = {name: i for i, name in enumerate(groups)}
    row = {id(task): i for i, task in enumerate(tasks)}
    edges = [[(row[id(parent)], size) for parent, size in task["edges"] if id(parent) in row] for task in tasks]
    flat = [edge for inside in edges for edge in inside]
    memory = [task.get("memory_gb") for task in tasks]
    trace = Trace(
        names=_names([task["id"] for task in tasks]),
        submit=np.array([task["submit"] for task in tasks], np.float64) - origin,
        runtime=(np.array([task["end"] for task in tasks], np.float64) - start) * layout.nodes.speed[node],
        estimate=np.array([_number(task.get("estimate")) for task in tasks]),
        processors=np.array([task["processors"] for task in tasks], np.int64),
        memory=np.array([_number(value) for value in memory]) * GIGA,
        user=np.array([at.get(task.get("user") or "", -1) for task in tasks], np.int64),
        deadline=np.array([_number(task.get("deadline")) for task in tasks]) - origin,
        group=np.array([of.get(task.get("workflow") or "", -1) for task in tasks], np.int64),
        parent_start=np.concatenate([[0], np.cumsum([len(inside) for inside in edges])]).astype(np.int64),
        parents=np.array([parent for parent, _ in flat], np.int64),
        data=np.array([size for _, size in flat], np.float64),
        users=tuple(users),
        origin=origin,
    )
    return Log(trace, start - origin, node)


def _names(identifiers: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: the second and later tasks with an id get ``~`` and a number."""
    used, times, names = set(identifiers), Counter[str](), []
    for identifier in identifiers:
        times[identifier] += 1
        name = identifier
        while times[identifier] > 1 and name in used:
            name = f"{identifier}~{times[identifier]}"
            times[identifier] += name in used
        used.add(name)
        names.append(name)
    return tuple(names)


def _parents(task: Task) -> list[tuple[str, float]]:
    parents = task.get("parents") or ()
    return [(one, 0.0) if isinstance(one, str) else (one["task"], one.get("bytes", 0.0)) for one in parents]


# Reports of kind ``workflow``. Times are seconds of one clock.
#
# A report is *whole* (all waiting and running tasks, and those that ended since the last one) or a *delta* (tasks
# submitted, started, ended or withdrawn since). A task is described when first named; later its id suffices.


Id = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=255)]
NodeState = Literal["off", "starting", "up", "failed"]
MOST_TASKS = 5_000
"""Most tasks present in a run at once, and most entries of a list in a report."""
MOST_NAMES = 300_000
"""Most bytes of the ids of all present tasks: a decision may list them all."""
MOST_PARENTS, MOST_EDGES = 10_000, 100_000
"""Most parents of a task, and of all tasks of a report."""
AtMost = Meta(max_length=MOST_TASKS)


class Parent(Part, frozen=True):
    """A task that must end before its child starts."""

    task: Id
    bytes: Annotated[NonNegative, Meta(description="size of the output that is read")] = 0.0


class QueuedTask(Part, frozen=True):
    """A pending task, also after its node failed."""

    id: Id
    processors: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None, Meta(description="required when the task is first named")
    ] = None
    submit: Annotated[Moment | None, Meta(description="submission time; null: now, or its start")] = None
    estimate: Annotated[Positive | None, Meta(description="seconds requested by its user, at speed 1")] = None
    memory_gb: NonNegative | None = None
    user: Text | None = None
    deadline: Annotated[Finite | None, Meta(description="time by which it should have ended")] = None
    workflow: Annotated[Text | None, Meta(description="workflow it belongs to")] = None
    parents: Annotated[tuple[Id | Parent, ...], Meta(max_length=MOST_PARENTS)] = ()


class RunningTask(QueuedTask, frozen=True):
    """A running task; node and start are required when it is first reported as running."""

    node: Annotated[Id | None, Meta(description="as placed: node type and index, starting at 0", examples=["a-0"])] = (
        None
    )
    start: Moment | None = None


class FinishedTask(Part, frozen=True):
    """A finished task; if it started since the last report, with start and node."""

    id: Id
    end: Moment
    node: Id | None = None
    start: Moment | None = None
    state: Annotated[
        Literal["finished", "failed"],
        Meta(description="how it ended; withdraw tasks that can't run without one that failed"),
    ] = "finished"
    reason: Annotated[
        str,
        Meta(
            max_length=500,
            description="why it failed, such as the last line of its log; shown on the run's page",
            examples=["exit status 1: out of memory"],
        ),
    ] = ""


class NodeReport(Part, frozen=True):
    """A change of a node's state."""

    name: Id
    state: NodeState
    since: Annotated[Moment | None, Meta(description="when it was requested or rented; null: now")] = None


class QueueReport(Part, frozen=True):
    """State of a queue at one moment."""

    now: Moment
    kind: Literal["workflow"] = "workflow"
    delta: Annotated[bool, Meta(description="whether only changes are listed")] = False
    queued: Annotated[tuple[QueuedTask, ...], AtMost] = ()
    running: Annotated[tuple[RunningTask, ...], AtMost] = ()
    finished: Annotated[tuple[FinishedTask, ...], AtMost] = ()
    withdrawn: Annotated[
        tuple[Id, ...],
        Meta(
            max_length=MOST_TASKS,
            description="tasks removed from the queue; in a full report, tasks not listed are removed too",
        ),
    ] = ()
    nodes: Annotated[
        Annotated[tuple[NodeReport, ...], Meta(max_length=MAXIMUM_NODES)] | None,
        Meta(description="nodes whose state has changed; in a full report, nodes not listed are off"),
    ] = None
