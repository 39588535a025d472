"""``steward simulate``: arguments, schedules and their figures, batch logs on one pool, and output."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from app.kinds.workflow.formats.reading import Reading, nodes_written
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies import PriorityPolicy, Scheduler
from app.kinds.workflow.queue import Nodes, nodes_of, pool
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, NONE, RLS
from app.kinds.workflow.scheduling.planning import PREDICTION, SAF
from app.kinds.workflow.scheduling.rules import FCFS, RULES
from app.kinds.workflow.spec import LOOKAHEAD, PREDICTED, Limits
from app.kinds.workflow.trace import Seconds, Trace, select_tasks
from workers.kinds.workflow.simulator.ahead import TABLE, play_ahead
from workers.kinds.workflow.simulator.pool import NO_LIMITS, initial_play, play_conservative, play_priority, play_rules

SHORTEST = 10.0  # seconds: shorter run times count as this in bounded slowdowns


class Rentals(NamedTuple):
    """R rentals of nodes; a node may be rented several times.

    Attributes:
        node: index of the node, [R].
        ordered: seconds at which billing begins, [R]; the node is ready after its start-up time.
        released: seconds at which billing ends, [R].
    """

    node: NDArray[np.int64]
    ordered: Seconds
    released: Seconds


class Schedule(NamedTuple):
    """Time and node of each of N tasks.

    Attributes:
        start, end: seconds after the trace's origin at which the task begins and ends, [N].
        node: index of the task's node, [N].
        rentals: rentals of nodes that are not kept; None: each used node once, from its start-up before its first task
            to the end of its last.
    """

    start: Seconds
    end: Seconds
    node: NDArray[np.int64]
    rentals: Rentals | None = None


class Figures(NamedTuple):
    """Metrics of a schedule.

    Attributes:
        slowdown: mean bounded slowdown, at least 1.
        wait: mean seconds from being ready to starting.
        makespan: seconds from the first submission to the last end.
        misses: share of tasks with a deadline that end after it, 0…1; 0 without deadlines.
        utilisation: share of rented processor time used by tasks, 0…1.
        cost: price (money) of the rented node time, in whole billing periods.
    """

    slowdown: float
    wait: float
    makespan: float
    misses: float
    utilisation: float
    cost: float


def ready(trace: Trace, schedule: Schedule) -> Seconds:
    """Return the seconds [N] from which each of N tasks could start: its submission, or its parents' last end."""
    at = trace.submit.astype(np.float64)
    children = np.repeat(np.arange(trace.tasks), np.diff(trace.parent_start))
    np.maximum.at(at, children, schedule.end[trace.parents])
    return at


def slowdowns(trace: Trace, schedule: Schedule) -> Seconds:
    """Compute each of N tasks' bounded slowdown, max(1, (wait + run) / max(run, 10 s)) (Feitelson 1997), [N]."""
    run = schedule.end - schedule.start
    return np.maximum(1.0, (schedule.end - ready(trace, schedule)) / np.maximum(run, SHORTEST))


def list_rentals(trace: Trace, nodes: Nodes, schedule: Schedule) -> Rentals:
    """List all rentals of a schedule; kept nodes are rented from the first submission to the last end."""
    first, last = trace.submit.min(), schedule.end.max()
    indices = np.flatnonzero(nodes.permanent)
    others = schedule.rentals or _once(nodes, schedule)
    return Rentals(
        np.concatenate((indices, others.node)),
        np.concatenate((np.full(len(indices), first), others.ordered)),
        np.concatenate((np.full(len(indices), last), others.released)),
    )


def _once(nodes: Nodes, schedule: Schedule) -> Rentals:
    """Make one rental of each used node that is not kept, from its start-up before its first task to its last end."""
    begun = np.full(len(nodes.kind), np.inf)
    ended = np.full(len(nodes.kind), -np.inf)
    np.minimum.at(begun, schedule.node, schedule.start)
    np.maximum.at(ended, schedule.node, schedule.end)
    used = np.flatnonzero(np.isfinite(begun) & ~nodes.permanent)
    return Rentals(used, begun[used] - nodes.startup[used], ended[used])


def figures(trace: Trace, nodes: Nodes, schedule: Schedule) -> Figures:
    """Compute the metrics of a complete schedule. Raises ValueError if there is no task, or a task has no end."""
    if trace.tasks == 0:
        raise ValueError("a schedule of no tasks has no figures")
    if not np.isfinite(schedule.end).all():
        missing = int(np.flatnonzero(~np.isfinite(schedule.end))[0])
        raise ValueError(f"task {trace.names[missing]} has not ended: only whole schedules have figures")
    rentals = list_rentals(trace, nodes, schedule)
    seconds = rentals.released - rentals.ordered
    billed = np.ceil(seconds / nodes.billing[rentals.node] - 1e-9) * nodes.billing[rentals.node]
    work = ((schedule.end - schedule.start) * trace.processors).sum()
    due = np.isfinite(trace.deadline)
    return Figures(
        slowdown=float(slowdowns(trace, schedule).mean()),
        wait=float((schedule.start - ready(trace, schedule)).mean()),
        makespan=float(schedule.end.max() - trace.submit.min()),
        misses=float((schedule.end > trace.deadline)[due].mean()) if due.any() else 0.0,
        utilisation=float(work / max((seconds * nodes.processors[rentals.node]).sum(), 1e-9)),
        cost=float((billed * nodes.price[rentals.node]).sum()),
    )


Item = TypeVar("Item")


def with_progress(items: Sequence[Item]) -> Iterable[Item]:
    """Iterate over ``items`` with a progress bar on standard error, if that is a terminal and items are two or more."""
    console = Console(stderr=True)
    hidden = not console.is_terminal or len(items) < 2
    return track(items, "simulate", console=console, transient=True, disable=hidden)


AGENT = "agent"


@dataclass(frozen=True)
class SimulatedSequence:
    """One simulated schedule.

    Attributes:
        strategy: name of the strategy.
        first: index of the first job in the trace.
        trace: the simulated tasks.
        nodes: the nodes.
        schedule: time and node of each task.
        figures: metrics of the schedule.
    """

    strategy: str
    first: int
    trace: Trace
    nodes: Nodes
    schedule: Schedule
    figures: Figures


def parse_arguments(arguments: Sequence[str] | None = None) -> Namespace:
    """Parse the command line that ``app.kinds.workflow.commands.simulate`` documents; None: that of the process.

    Raises:
        SystemExit: an option is unknown or invalid.
    """
    parser = ArgumentParser(prog="steward simulate", allow_abbrev=False)
    parser.add_argument("trace", type=Path)
    for name in ("--strategy", "--nodes", "--order", "--sequences"):
        parser.add_argument(name)
    parser.add_argument("--backfilling", choices=MECHANISMS, default="none")
    for name in ("--agent", "--plot"):
        parser.add_argument(name, type=Path)
    for name in ("--exact-runtimes", "--clip", "--sort", "--online", "--rented", "--json"):
        parser.add_argument(name, action="store_true")
    for name in ("--user-tasks", "--user-processors"):
        parser.add_argument(name, type=int)
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--startup", type=float, default=0.0)
    parser.add_argument("--billing", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def strategies(text: str | None, default: str, known: Sequence[str]) -> list[str]:
    """Split the comma-separated list ``text`` (None: ``default``) into lower-case names.

    Raises:
        ValueError: a name is not in ``known``, or occurs twice.
    """
    names = [name.strip().lower() for name in (text or default).split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"--strategy: must be one of {', '.join(known)}, not {name!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"--strategy: a name is given twice: {text}")
    return names


def sequences(text: str | None, jobs: int) -> list[tuple[int, int]]:
    """Parse ``text`` (``first:count,…``) into (first job, number of jobs) per sequence; None: the whole trace.

    Raises:
        ValueError: a part has another form, or exceeds the trace of ``jobs`` jobs.
    """
    sequences = []
    for part in (text or f"0:{jobs}").split(","):
        first, _, count = part.partition(":")
        if not (first.strip().isdecimal() and count.strip().isdecimal()) or int(count) < 1:
            raise ValueError(f"--sequences: {part!r} is not first:count, as in 1981:1024")
        if int(first) + int(count) > jobs:
            raise ValueError(f"--sequences: {part} reaches beyond the trace, which has {jobs} jobs")
        sequences.append((int(first), int(count)))
    return sequences


Json = dict[str, Any]
FIELDS = Figures._fields
HEADS = ("slowdown", "wait s", "makespan s", "missed", "utilised", "cost")
FORMS = ("{:,.2f}", "{:,.0f}", "{:,.0f}", "{:.1%}", "{:.1%}", "{:,.2f}")


def summary_json(arguments: Namespace, reading: Reading, rows: Sequence[SimulatedSequence]) -> Json:
    """Summarise sequences as JSON values: input, warnings, each strategy's ``Figures`` by sequence and on average."""
    names = list(dict.fromkeys(row.strategy for row in rows))
    nodes = rows[0].nodes
    return {
        "trace": str(arguments.trace),
        "tasks": reading.trace.tasks,
        "nodes": len(nodes.processors),
        "processors": int(nodes.processors.sum()),
        "backfilling": arguments.backfilling,
        "order": arguments.order,
        "exact_runtimes": arguments.exact_runtimes,
        "strategies": [_strategy(name, names[0], rows) for name in names],
        "warnings": [f"{issue.pointer}: {issue.message}" for issue in reading.warnings],
        "lacks": list(reading.lacks),
    }


def _strategy(name: str, first: str, rows: Sequence[SimulatedSequence]) -> Json:
    own = [row for row in rows if row.strategy == name]
    others = [row for row in rows if row.strategy == first]
    means = {field: float(np.mean([getattr(row.figures, field) for row in own])) for field in FIELDS}
    strategy: Json = {
        "strategy": name,
        "sequences": [{"first": row.first, "tasks": row.trace.tasks, **row.figures._asdict()} for row in own],
        "mean": means,
    }
    if name != first:
        strategy["against_first"] = _paired_difference(
            [a.figures.slowdown - b.figures.slowdown for a, b in zip(own, others, strict=True)]
        )
    return strategy


def _paired_difference(differences: Sequence[float]) -> Json:
    """Return the mean of n ``differences`` of slowdowns, its standard error (None: n is 1), and the number below 0."""
    count = len(differences)
    error = float(np.std(differences, ddof=1) / np.sqrt(count)) if count > 1 else None
    better = sum(value < 0 for value in differences)
    return {"slowdown": float(np.mean(differences)), "standard_error": error, "better_in": better, "of": count}


def text(data: Json) -> str:
    """Format the result of ``summary_json`` as a table, preceded by warnings and notes."""
    several = any(len(each["sequences"]) > 1 for each in data["strategies"])
    lines = [*(f"warning: {warning}" for warning in data["warnings"]), *(f"note: {lack}" for lack in data["lacks"])]
    lines.append(f"{data['tasks']:,} tasks, {data['nodes']} node(s), {data['processors']:,} processors")
    rows: list[Sequence[str]] = [("strategy", "tasks", *HEADS)]
    for each in data["strategies"]:
        for part in each["sequences"]:
            name = f"{each['strategy']} {part['first']}:{part['tasks']}" if several else each["strategy"]
            rows.append((name, f"{part['tasks']:,}", *_format_row(part)))
    if several:
        rows += [(f"{each['strategy']} mean", "", *_format_row(each["mean"])) for each in data["strategies"]]
    lines += _align_columns(rows)
    lines += [_comparison_line(each, data["strategies"][0]["strategy"]) for each in data["strategies"][1:]]
    return "\n".join(lines)


def _format_row(values: Json) -> list[str]:
    return [form.format(values[field]) for field, form in zip(FIELDS, FORMS, strict=True)]


def _align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _comparison_line(each: Json, first: str) -> str:
    pair = each["against_first"]
    error = "" if pair["standard_error"] is None else f" ± {pair['standard_error']:.2f} (standard error)"
    difference = f"{each['strategy']} − {first}: slowdown {pair['slowdown']:+.2f}{error}"
    return f"{difference}, lower in {pair['better_in']} of {pair['of']}"


def play_agent(
    policy: Scheduler,
    trace: Trace,
    processors: int,
    mechanism: int,
    fill: int,
    limits: Limits = NO_LIMITS,
    planned: Seconds | None = None,
) -> Seconds:
    """Play batch jobs by a policy on one pool; return the second at which each of N jobs starts, [N].

    Args:
        policy: a rule, or priorities.
        trace: the jobs; their parents are ignored.
        processors: number of processors of the pool.
        mechanism: index into ``MECHANISMS``; not conservative.
        fill: index into ``RULES`` of the order of backfilling, for policies without one of their own.
        limits: limits of each user.
        planned: requested and planned seconds of each job, [N]; None: those of the trace.

    Raises:
        ValueError: a job needs more processors than there are, or its run time is unknown."""
    if not isinstance(policy, PriorityPolicy):
        play = initial_play(trace, processors, limits, planned)
        play_rules(play, mechanism, RULES.index(policy.name), fill)
        return play.start
    weights = policy.under(mechanism)
    reported = planned is None and bool(np.isfinite(trace.estimate).any())
    play = initial_play(trace, processors, limits, planned, predicts=reported and weights[PREDICTION] != 0.0)
    play_priority(play, mechanism, weights, processors)
    return play.start


OWN = "strategy"


def read(arguments: Namespace) -> Reading:
    """Read the batch log ``arguments.trace`` (SWF, plain or gzip) into a trace.

    Raises:
        OSError: the file can't be read.
        InvalidInput: the file is no valid log; the issues name lines.
    """
    return read_swf(arguments.trace, clip=arguments.clip, sort=arguments.sort)


def machine(text: str | None, known: tuple[int, ...]) -> Nodes:
    """Make the single node of batch jobs from the option ``--nodes``; None: from the log's ``known`` processors.

    Raises:
        ValueError: neither says how many processors there are, or the option has several nodes or is malformed.
    """
    if text is None and not known:
        raise ValueError("--nodes: the log does not say how many processors there are; give their number, as in 256")
    if text is None or text.strip().isdecimal():
        return pool(int(text or known[0]))
    nodes = nodes_of(nodes_written(text))
    if len(nodes.processors) != 1:
        raise ValueError(f"--nodes: batch jobs are played on one machine, as in 256 or 1x256@1.0:0.48: {text}")
    return nodes


def simulate_sequences(arguments: Namespace, reading: Reading) -> list[SimulatedSequence]:
    """Simulate every requested strategy on every sequence.

    Raises:
        ValueError: an option does not fit the log, and is named; or a job can't be played.
    """
    names = strategies(arguments.strategy, "fcfs", (*RULES, *PREDICTED, AGENT))
    orders = (OWN, *RULES)
    if arguments.order is not None and arguments.order.lower() not in orders:
        raise ValueError(f"--order: must be one of {', '.join(orders)}, not {arguments.order!r}")
    nodes, limits = (
        machine(arguments.nodes, reading.machines),
        Limits(running_tasks=arguments.user_tasks, processors=arguments.user_processors),
    )
    result = []
    parts = sequences(arguments.sequences, reading.trace.tasks)
    for name, (first, count) in with_progress([(name, part) for name in names for part in parts]):
        part = select_tasks(reading.trace, slice(first, first + count))
        if name == AGENT or name in PREDICTED:
            schedule = schedule_by_agent(part, nodes, arguments, limits, name)
        else:
            how = arguments.backfilling, arguments.order, limits
            schedule = schedule_by_rule(part, nodes, name, *how, exact=arguments.exact_runtimes)
        result.append(SimulatedSequence(name, first, part, nodes, schedule, figures(part, nodes, schedule)))
    return result


AREA = PriorityPolicy(np.tile((*SAF[:PREDICTION], 1.0), (CONSERVATIVE, 1)))
"""The smallest predicted area first: strategy ``saf-predicted``."""


def play_by_prediction(trace: Trace, processors: int, strategy: str, mechanism: int, limits: Limits) -> Seconds:
    """Play batch jobs by a strategy of ``PREDICTED`` on one pool; return the second at which each of N jobs starts,
    [N]. Jobs without an estimate are planned with their true run times.

    ``mechanism``: index into ``MECHANISMS``, not conservative, and none or easy for lookahead, which has no limits.

    Raises:
        ValueError: a job needs more processors than there are, or its run time is unknown.
    """
    if strategy != LOOKAHEAD:
        return play_agent(AREA, trace, processors, mechanism, FCFS, limits)
    play = initial_play(trace, processors, predicts=bool(np.isfinite(trace.estimate).any()))
    play_ahead(play, mechanism, TABLE)
    return play.start


def schedule_by_agent(trace: Trace, nodes: Nodes, arguments: Namespace, limits: Limits, name: str = AGENT) -> Schedule:
    """Schedule batch jobs by a strategy of ``PREDICTED`` (``name``), or by the agent in the file ``arguments.agent``;
    None: by the agent in this package.

    Raises:
        ValueError: the file holds no agent of this kind, the mechanism, order or limits are not supported, or a job
            can't be played.
        OSError: the file can't be read.
    """
    from app.kinds.workflow.policies import SHIPPED, load

    mechanism = MECHANISMS.index(arguments.backfilling)
    if mechanism == CONSERVATIVE:
        raise ValueError("--backfilling: agents and predicted run times go with none, rls, easy or uncommitted")
    if name in PREDICTED and arguments.order is not None:
        raise ValueError(f"--order: {name} backfills in its own order, not by {arguments.order!r}")
    if name == LOOKAHEAD and (mechanism not in (NONE, EASY) or limits != NO_LIMITS):
        raise ValueError(f"--strategy: {name} simulates ahead with none or easy backfilling, without limits of users")
    order = str(arguments.order or ("sjf" if mechanism == EASY else "fcfs")).lower()
    if order not in RULES:
        raise ValueError(f"--order: {arguments.order!r}: with an agent, others overtake in the order of a rule")
    speed, processors = float(nodes.speed[0]), int(nodes.processors[0])
    trace = trace.scaled(1 / speed)
    if name in PREDICTED:
        jobs = trace._replace(estimate=np.full(trace.tasks, np.nan)) if arguments.exact_runtimes else trace
        begun = play_by_prediction(jobs, processors, name, mechanism, limits)
    else:
        agent = load((arguments.agent or SHIPPED).read_bytes())
        planned = trace.runtime if arguments.exact_runtimes else None
        begun = play_agent(agent, trace, processors, mechanism, RULES.index(order), limits, planned)
    return Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))


def schedule_by_rule(
    trace: Trace,
    nodes: Nodes,
    strategy: str,
    backfilling: str,
    order: str | None = None,
    limits: Limits | None = None,
    *,
    exact: bool = False,
) -> Schedule:
    """Schedule batch jobs on one machine by a rule and a backfilling mechanism.

    Args:
        trace: the jobs.
        nodes: one node.
        strategy: name of the rule that orders the queue; with conservative backfilling ``order`` decides instead.
        backfilling: name of the mechanism.
        order: name of the rule by which jobs are backfilled, or ``strategy``; None: fcfs with ``rls``, else
            ``strategy``.
        limits: limits of each user; None: none.
        exact: whether jobs are planned with their true run times.

    Raises:
        ValueError: a name is unknown, a job needs too many processors, or its run time is unknown."""
    mechanism, rule = MECHANISMS.index(backfilling), RULES.index(strategy)
    own = order is None or order.lower() == OWN
    fill = (
        RULES.index("fcfs") if order is None and mechanism == RLS else rule if own else RULES.index(str(order).lower())
    )
    speed = float(nodes.speed[0])
    trace = trace.scaled(1 / speed)
    play = initial_play(trace, int(nodes.processors[0]), limits or Limits(), trace.runtime if exact else None)
    if mechanism == CONSERVATIVE:
        play_conservative(play, fill, np.empty(trace.tasks))
    else:
        play_rules(play, mechanism, rule, fill)
    return Schedule(play.start, play.start + trace.runtime, np.zeros(trace.tasks, np.int64))
