"""What ``steward simulate`` is asked, and what it answers with."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.schedule import Figures, Schedule

AGENT = "agent"


@dataclass(frozen=True)
class SimulatedSequence:
    """One schedule.

    Attributes:
        strategy: what made it.
        first: index of its first job in the trace.
        trace: what was played.
        nodes: what it was played on.
        schedule: when and where each task ran.
        figures: what it was worth.
    """

    strategy: str
    first: int
    trace: Trace
    nodes: Nodes
    schedule: Schedule
    figures: Figures


def parse_arguments(arguments: Sequence[str] | None = None) -> Namespace:
    """The command line; it is described by ``app.kinds.workflow.commands.simulate``."""
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


def strategies(given: str | None, default: str, known: Sequence[str]) -> list[str]:
    """The names in ``given``, lower case.

    Raises:
        ValueError: one of them is not known, or given twice.
    """
    names = [name.strip().lower() for name in (given or default).split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"--strategy: {name!r} is none of {', '.join(known)}")
    if len(set(names)) < len(names):
        raise ValueError(f"--strategy: a name is given twice: {given}")
    return names


def sequences(given: str | None, jobs: int) -> list[tuple[int, int]]:
    """First job and number of jobs of each sequence; the whole trace where none is given.

    Raises:
        ValueError: it is not of the form, or reaches beyond the trace.
    """
    found = []
    for part in (given or f"0:{jobs}").split(","):
        first, _, count = part.partition(":")
        if not (first.strip().isdecimal() and count.strip().isdecimal()) or int(count) < 1:
            raise ValueError(f"--sequences: {part!r} is not first:count, as in 1981:1024")
        if int(first) + int(count) > jobs:
            raise ValueError(f"--sequences: {part} reaches beyond the trace, which has {jobs} jobs")
        found.append((int(first), int(count)))
    return found
