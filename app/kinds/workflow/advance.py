"""Update of a live run's queue by a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from app.charts.text import exact
from app.kinds.contract.inputs import Contradiction, FieldIssue, InvalidInput
from app.kinds.workflow.formats.reading import LATEST_ORIGIN, LONG_MEDIAN, Edges, cycle_issue
from app.kinds.workflow.formats.reading import SHOWN as CHECK_SHOWN
from app.kinds.workflow.plans import plan_after_report
from app.kinds.workflow.queue import (
    COLUMNS,
    GIGA,
    MOST_EDGES,
    MOST_NAMES,
    MOST_PAST,
    MOST_TASKS,
    MOST_USERS,
    NODE_STATES,
    UP,
    WAITING,
    FinishedTask,
    Layout,
    Queue,
    QueuedTask,
    QueueReport,
    RunningTask,
    State,
    Submitted,
)
from app.kinds.workflow.run_times import LAST, SHORTEST, PastTask, Regression, remember, table

SHOWN = 5
NOBODY = table([])


class Draft:
    """The next state under construction: columns of tasks as lists, and issues found so far.

    Attributes:
        wrong: issues of values impossible in any run.
        against: issues of contradictions with earlier reports.
        new: first row of the tasks that this report introduces.
        submitted: tasks that this report introduces.
        gone: rows that leave the queue.
    """

    def __init__(self, layout: Layout, state: State, report: QueueReport) -> None:
        self.layout, self.state, self.report = layout, state, report
        self.columns: dict[str, list[Any]] = {name: list(values) for name, values in state.queue.columns().items()}
        self.row, self.new = dict(state.queue.row), len(state.queue)
        self.nodes, self.ended, self.history = dict(state.nodes), dict(state.ended), dict(state.history)
        self.regression = Regression(state.weight.copy(), state.covariance.copy(), NOBODY)
        self.submitted: list[Submitted] = []
        self.gone: set[int] = set()
        self.wrong: list[FieldIssue] = []
        self.against: list[FieldIssue] = []

    def add(self, task: QueuedTask | RunningTask, pointer: str) -> int:
        """Append a task reported for the first time, and add issues with its values; return its row."""
        row = self.row[task.id] = len(self.columns["names"])
        if task.processors is None:
            message = "is needed: this task has not been reported before"
            self.wrong.append(FieldIssue(f"{pointer}/processors", message, None))
        processors, memory = task.processors or 1, (task.memory_gb or 0.0) * GIGA
        begun = getattr(task, "start", None)  # a task that runs already was submitted by then
        values = (
            task.id,
            (self.report.now if begun is None else begun) if task.submit is None else task.submit,
            math.nan if task.estimate is None else task.estimate,
            math.nan if task.deadline is None else task.deadline,
            math.nan,
            memory,
            processors,
            WAITING,
            task.user or "",
            task.workflow or "",
            tuple((one, 0.0) if isinstance(one, str) else (one.task, float(one.bytes)) for one in task.parents),
        )
        for name, value in zip(COLUMNS, values, strict=True):
            self.columns[name].append(value)
        self.submitted.append(Submitted(float(values[1]), processors, values[2], values[8]))
        if task.submit is not None and task.submit > self.report.now:
            self.wrong.append(
                FieldIssue(
                    f"{pointer}/submit",
                    f"must be at most {exact(self.report.now)} (the time of the report)",
                    task.submit,
                )
            )
        issue = self.layout.misfit(processors, memory)
        if issue is not None:
            self.wrong.append(FieldIssue(f"{pointer}/{issue.pointer}", issue.message, issue.value))
        return row

    def begin(self, row: int, node: str | None, start: float | None, pointer: str) -> None:
        """Mark the waiting task of a row as running on ``node`` since ``start`` seconds; add an issue if either is
        impossible."""
        where = self.layout.node_index.get(node or "")
        if where is None:
            self.wrong.append(FieldIssue(f"{pointer}/node", self.layout.known_nodes, node))
        elif self.layout.nodes.processors[where] < self.columns["processors"][row]:
            message = f"has {self.layout.nodes.processors[where]} processors: too few for this task"
            self.wrong.append(FieldIssue(f"{pointer}/node", message, node))
        if start is None or start > self.report.now:
            message = (
                "is needed" if start is None else f"must be at most {exact(self.report.now)} (the time of the report)"
            )
            self.wrong.append(FieldIssue(f"{pointer}/start", message, start))
        elif start < self.columns["submit"][row]:
            message = f"must be at least {exact(self.columns['submit'][row])} (its submission)"
            self.wrong.append(FieldIssue(f"{pointer}/start", message, start))
        if where is not None and start is not None:
            self.columns["node"][row], self.columns["start"][row] = where, start
            self.nodes[where] = (UP, self.nodes.get(where, (UP, start))[1])


def advance(layout: Layout, state: State, report: QueueReport) -> State:
    """Return the state after a report.

    Raises:
        InvalidInput: duplicate ids, unknown nodes or parents, cycles, tasks larger than any node, negative run times,
            or more on a node than it holds.
        Contradiction: time goes backwards, or a task ends that never started, is unknown, or runs elsewhere.
    """
    draft = Draft(layout, state, report)
    if report.now < state.now:
        message = f"must be at least {exact(state.now)} (the last time reported)"
        raise Contradiction([FieldIssue("/now", message, report.now)])
    _once(draft)
    _few_edges(report)
    _raise(draft)
    _nodes(draft)
    _apply_queued(draft)
    _running(draft)
    _apply_finished(draft)
    _apply_withdrawn(draft)
    _raise(draft)
    _few(draft)
    _parents(draft)
    _check_capacity(draft)
    _raise(draft)
    return _next_state(draft)


def _raise(draft: Draft) -> None:
    if draft.wrong:
        raise InvalidInput(draft.wrong)
    if draft.against:
        raise Contradiction(draft.against)


def _few(draft: Draft) -> None:
    """Raise InvalidInput if there are over ``MOST_TASKS`` tasks at once, or over ``MOST_NAMES`` bytes of their ids."""
    there = len(draft.columns["names"]) - len(draft.gone)
    if there > MOST_TASKS and draft.new < len(draft.columns["names"]):
        message = f"must leave at most {MOST_TASKS:,} pending and running tasks in the queue at once"
        raise InvalidInput([FieldIssue("/queued", message, there)])
    names = draft.columns["names"]
    length = sum(len(name.encode()) for name in names) if draft.new < len(names) else 0
    if length > MOST_NAMES:
        message = f"must leave tasks whose ids have at most {MOST_NAMES:,} bytes together"
        raise InvalidInput([FieldIssue("/queued", message, length)])


def _few_edges(report: QueueReport) -> None:
    """Raise InvalidInput if a report has more than ``MOST_EDGES`` dependencies."""
    edges = sum(len(task.parents) for task in (*report.queued, *report.running))
    if edges > MOST_EDGES:
        message = f"must name at most {MOST_EDGES:,} parents of all tasks together"
        raise InvalidInput([FieldIssue("/queued", message, edges)])


def _once(draft: Draft) -> None:
    """Add an issue for each id that occurs twice in the report."""
    report = draft.report
    parts = [(part, [task.id for task in getattr(report, part)]) for part in ("queued", "running", "finished")]
    parts.append(("withdrawn", list(report.withdrawn)))
    if len({name for _, names in parts for name in names}) == sum(len(names) for _, names in parts):
        return
    first: dict[str, str] = {}
    for part, names in parts:
        for i, name in enumerate(names):
            pointer = f"/{part}/{i}" if part == "withdrawn" else f"/{part}/{i}/id"
            if name in first:
                draft.wrong.append(FieldIssue(pointer, f"is given twice, also as {first[name]}", name))
            first.setdefault(name, pointer)


def _nodes(draft: Draft) -> None:
    report, layout = draft.report, draft.layout
    if report.nodes is None:
        return
    if not report.delta:
        draft.nodes = {}
    visited: set[str] = set()
    for i, node in enumerate(report.nodes):
        index = layout.node_index.get(node.name)
        if index is None or node.name in visited:
            message = layout.known_nodes if index is None else "is given twice"
            draft.wrong.append(FieldIssue(f"/nodes/{i}/name", message, node.name))
            continue
        visited.add(node.name)
        if node.since is not None and node.since > report.now:
            draft.wrong.append(
                FieldIssue(
                    f"/nodes/{i}/since", f"must be at most {exact(report.now)} (the time of the report)", node.since
                )
            )
        before = draft.state.nodes.get(index)
        rented = before is not None and before[0] in (NODE_STATES["starting"], UP)
        since = node.since if node.since is not None else before[1] if before and rented else report.now
        if node.state == "off":
            draft.nodes.pop(index, None)
        else:
            draft.nodes[index] = (NODE_STATES[node.state], since)


def _apply_queued(draft: Draft) -> None:
    node, start = draft.columns["node"], draft.columns["start"]
    for i, task in enumerate(draft.report.queued):
        row = draft.row.get(task.id)
        if row is None:
            _not_ended(draft, task.id, f"/queued/{i}/id")
            draft.add(task, f"/queued/{i}")
        elif node[row] != WAITING:  # its node failed, or it was stopped
            node[row], start[row] = WAITING, math.nan
        elif draft.report.delta:
            draft.against.append(FieldIssue(f"/queued/{i}/id", "is already queued", task.id))


def _not_ended(draft: Draft, name: str, pointer: str) -> None:
    if name in draft.ended:
        draft.against.append(FieldIssue(pointer, "has finished already", name))


def _running(draft: Draft) -> None:
    names, where = draft.layout.names, draft.columns["node"]
    for i, task in enumerate(draft.report.running):
        pointer, row = f"/running/{i}", draft.row.get(task.id)
        if row is None:
            _not_ended(draft, task.id, f"{pointer}/id")
            row = draft.add(task, pointer)
        if where[row] == WAITING:
            draft.begin(row, task.node, task.start, pointer)
        elif task.node is not None and task.node != names[where[row]]:
            known = task.node in draft.layout.node_index
            message = f"must be {names[where[row]]}, where it runs" if known else draft.layout.known_nodes
            (draft.against if known else draft.wrong).append(FieldIssue(f"{pointer}/node", message, task.node))


def _apply_finished(draft: Draft) -> None:
    for i, task in enumerate(draft.report.finished):
        pointer, row = f"/finished/{i}", draft.row.get(task.id)
        if row is None:
            message = "has finished already" if task.id in draft.ended else "is neither pending nor running"
            draft.against.append(FieldIssue(f"{pointer}/id", message, task.id))
            continue
        if draft.columns["node"][row] == WAITING:
            if task.start is None:
                message = "has never started: report it as running first, or give its start and node"
                draft.against.append(FieldIssue(f"{pointer}/id", message, task.id))
                continue
            draft.begin(row, task.node, task.start, pointer)
        start = draft.columns["start"][row]
        if task.end < start:
            message = f"must be at least {exact(start)} (its start)"
            draft.wrong.append(FieldIssue(f"{pointer}/end", message, task.end))
        elif task.end > draft.report.now:
            message = f"must be at most {exact(draft.report.now)} (the time of the report)"
            draft.wrong.append(FieldIssue(f"{pointer}/end", message, task.end))
        elif not draft.wrong:
            _end(draft, row, task)
        draft.gone.add(row)


def _end(draft: Draft, row: int, task: FinishedTask) -> None:
    """Remember an ended task's node for its children and, unless it failed, add its run time to its user's history: how
    long a task ran before it failed doesn't tell how long others take."""
    columns, node = draft.columns, draft.columns["node"][row]
    user = columns["users"][row]
    if user and task.state == "finished":
        took = (task.end - columns["start"][row]) * float(draft.layout.nodes.speed[node])
        before = draft.history.pop(user, ())
        ended = PastTask(took, columns["estimate"][row], columns["processors"][row])
        # Update the regression, of a single user, by a finished task with an estimate
        regression = draft.regression._replace(history=table([before]))
        if ended.estimate > 0.0:
            length, ran = (float(np.log(max(each, SHORTEST))) for each in (ended.estimate, ended.seconds))
            remember(regression, 0, length, ended.processors, ran)
        draft.history[user] = (*before, ended)[-LAST:]
        if len(draft.history) > MOST_USERS:
            del draft.history[next(iter(draft.history))]  # the user seen longest ago
    draft.ended[columns["names"][row]] = (node, columns["groups"][row])


def _apply_withdrawn(draft: Draft) -> None:
    report, where = draft.report, draft.columns["node"]
    for i, name in enumerate(report.withdrawn):
        row = draft.row.get(name)
        if row is None:
            draft.against.append(FieldIssue(f"/withdrawn/{i}", "is neither pending nor running", name))
        else:
            draft.gone.add(row)
    if report.delta:
        return
    listed = {task.id for part in (report.queued, report.running) for task in part}
    left = [row for name, row in draft.state.queue.row.items() if name not in listed and row not in draft.gone]
    lost = [row for row in left if where[row] != WAITING]
    if lost:
        shown = _first_names(draft.columns["names"][row] for row in lost)
        message = "leaves out tasks that were running: list them as running, finished, queued or withdrawn"
        draft.against.append(FieldIssue("/running", message, shown))
    draft.gone.update(left)


def _first_names(names: Iterable[str]) -> list[str]:
    items = list(names)
    return items if len(items) <= SHOWN else [*items[:SHOWN], "…"]


def _parents(draft: Draft) -> None:
    """Add issues for unknown parents of new tasks, for cycles among new tasks, and for tasks that wait for a withdrawn
    one."""
    columns, new = draft.columns, draft.new
    names, inputs = columns["names"], columns["inputs"]
    pointers = _pointers(draft)
    edges: list[list[int]] = []
    for row in range(new, len(names)):
        inside = []
        for k, (parent, _) in enumerate(inputs[row]):
            at = draft.row.get(parent)
            if at is None and parent not in draft.ended:
                message = "unknown task: a parent is reported before its child or with it, and remembered as long as "
                issue = FieldIssue(f"{pointers[row]}/parents/{k}", f"{message}its workflow goes on", parent)
                draft.wrong.append(issue)
            elif at is not None and at >= new:
                inside.append(at - new)
        edges.append(inside)
    if any(edges):
        start = np.concatenate([[0], np.cumsum([len(inside) for inside in edges])])
        flat = np.array([at for inside in edges for at in inside], np.int64)

        def where(task: int, field: str) -> str:
            return f"{pointers[new + task]}/{field}"

        draft.wrong.extend(cycle_issue(names[new:], Edges(start, flat), where))
    _orphans(draft)


def _pointers(draft: Draft) -> dict[int, str]:
    parts = (("queued", draft.report.queued), ("running", draft.report.running))
    pointers = {}
    for part, tasks in parts:
        for i, task in enumerate(tasks):
            if (row := draft.row[task.id]) >= draft.new:
                pointers[row] = f"/{part}/{i}"
    return pointers


def _orphans(draft: Draft) -> None:
    columns, gone = draft.columns, draft.gone
    without = {columns["names"][row] for row in gone} - draft.ended.keys()
    if not without:
        return
    for row, inputs in enumerate(columns["inputs"]):
        missing = [parent for parent, _ in inputs if parent in without]
        if missing and row not in gone:
            message = f"waits for withdrawn tasks ({', '.join(_first_names(missing))}): withdraw it too"
            draft.against.append(FieldIssue("/withdrawn", message, columns["names"][row]))


def _check_capacity(draft: Draft) -> None:
    """Add an issue for each node whose running tasks need more processors or memory than it has."""
    nodes, columns = draft.layout.nodes, draft.columns
    node = np.array(columns["node"], np.int64)
    node[list(draft.gone)] = WAITING
    rows = np.flatnonzero(node != WAITING)
    for part, scale, limit in (("processors", 1.0, nodes.processors), ("memory", GIGA, nodes.memory)):
        used = np.bincount(node[rows], np.array(columns[part], np.float64)[rows], minlength=len(nodes.processors))
        for full in np.flatnonzero(used > limit * (1 + 1e-9)).tolist():
            unit = "GB of memory" if part == "memory" else "processors"
            most, on = exact(limit[full] / scale), draft.layout.names[full]
            message = f"must be at most {most} {unit} on {on}: its running tasks need more"
            draft.wrong.append(FieldIssue("/running", message, used[full] / scale))


def _next_state(draft: Draft) -> State:
    columns, state = draft.columns, draft.state
    if draft.gone:
        keep = [row for row in range(len(columns["names"])) if row not in draft.gone]
        columns = {name: [values[row] for row in keep] for name, values in columns.items()}
    queue = Queue(columns)
    head = state.head
    if head and not (head[0] in queue.row and queue.node[queue.row[head[0]]] == WAITING):
        head = ()
    # Those finished tasks that are a parent of a task in the queue, or whose workflow still has tasks there. Values are
    # node index and workflow, by name.
    needed = {parent for inputs in queue.inputs for parent, _ in inputs} if queue.linked else set()
    going = set(queue.groups) - {""}
    # Status of each node and the time since which it holds, in seconds, by index. Permanent nodes without a report are
    # up.
    nodes = {node: (UP, 0.0) for node in draft.layout.permanent_nodes if node not in draft.nodes}
    return State(
        now=draft.report.now,
        before=state.now,
        queue=queue,
        ended={name: where for name, where in draft.ended.items() if name in needed or where[1] in going},
        nodes={**nodes, **draft.nodes},
        head=head,
        history=draft.history,
        done=state.done + len(draft.report.finished),
        weight=draft.regression.weight,
        covariance=draft.regression.covariance,
        plan=plan_after_report(state.plan, draft.report.finished, queue.row),
        reserved=state.reserved,
        submitted=(*state.submitted, *draft.submitted)[-MOST_PAST:],
    )


# Warnings on valid reports: values that seem to be in another unit.


FEWEST = 5  # fewest values from which a wrong unit is inferred
DAY = 86_400.0


def implausible(state: State, report: QueueReport) -> list[FieldIssue]:
    """Return warnings, with the suspicious values, on a report whose times seem to be in another unit than seconds.
    ``state`` is the state after the report."""
    results = []
    if report.now > LATEST_ORIGIN:
        results.append(
            FieldIssue("/now", "is in the far future: is it in milliseconds? Seconds are expected", report.now)
        )
    estimates = np.array([task.estimate for task in report.queued if task.estimate is not None])
    if len(estimates) >= FEWEST and (median := float(np.median(estimates))) > LONG_MEDIAN:
        message = (
            f"half of the {len(estimates):,} estimates are above {median:,.0f} s ({median / DAY:,.1f} days): are they "
            "in milliseconds? The longest are given"
        )
        results.append(FieldIssue("/queued", message, np.sort(estimates)[: -CHECK_SHOWN - 1 : -1].tolist()))
    return results + _against_estimates(state, report)


def _against_estimates(state: State, report: QueueReport) -> list[FieldIssue]:
    """Return a warning if running tasks exceed their estimates tenfold (median), as units may differ; else none."""
    ratios, shown = _ratios(state, report.running, report.now)
    if len(ratios) < FEWEST or (median := float(np.median(ratios))) <= 10:
        return []
    message = (
        f"running tasks have run for {median:,.4g} times their estimates already (median): are the estimates in "
        "minutes or hours? Tasks are given"
    )
    return [FieldIssue("/running", message, shown[:CHECK_SHOWN])]


def _ratios(state: State, running: Sequence[Any], now: float) -> tuple[list[float], list[str]]:
    queue, ratios, shown = state.queue, [], []
    for task in running:
        row = queue.row[task.id]
        if queue.estimate[row] > 0:
            ratios.append((now - float(queue.start[row])) / float(queue.estimate[row]))
            shown.append(task.id)
    return ratios, shown
