"""``steward simulate`` on the command line; what plays runs in a process of its own, and is never imported here."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.options import drawable


def register(cli: typer.Typer) -> None:
    """Add the simulation of traces to the ``steward`` command."""
    cli.command()(simulate)


def simulate(
    trace: Annotated[Path, typer.Argument(help="Batch log (SWF) or workflow (WfFormat), plain or gzip.")],
    strategy: Annotated[
        str, typer.Option(help="What orders tasks, such as fcfs, sjf, f4, heft, agent; several with commas between.")
    ] = "",
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Processors of the machine (256), or count x processors @ speed : price per hour (4x16@1.0:0.48), "
            "several with commas between. [default: the log's processors]"
        ),
    ] = None,
    backfilling: Annotated[
        Literal["none", "rls", "easy", "conservative"], typer.Option(help="What may overtake a job that must wait.")
    ] = "none",
    order: Annotated[
        str | None,
        typer.Option(help="Rule by which others overtake. [default: the strategy's own; with rls, fcfs]"),
    ] = None,
    exact_runtimes: Annotated[
        bool, typer.Option("--exact-runtimes", help="Plan with run times, not with estimates.")
    ] = False,
    sequences: Annotated[
        str | None, typer.Option(help="Jobs to play, each from an empty machine: first:count,... [default: all]")
    ] = None,
    user_tasks: Annotated[int | None, typer.Option(min=1, help="Most tasks that a user may run at a time.")] = None,
    user_processors: Annotated[int | None, typer.Option(min=1, help="Most processors of a user.")] = None,
    clip: Annotated[bool, typer.Option("--clip", help="Cut run times down to their estimates.")] = False,
    sort: Annotated[bool, typer.Option("--sort", help="Sort jobs that are out of order of submission.")] = False,
    agent: Annotated[Path | None, typer.Option(help="File of the policy that the strategy agent stands for.")] = None,
    online: Annotated[bool, typer.Option("--online", help="Workflows: tasks get nodes when they are ready.")] = False,
    rented: Annotated[bool, typer.Option("--rented", help="Workflows: nodes are paid for while needed.")] = False,
    bandwidth: Annotated[float | None, typer.Option(help="Workflows: megabytes per second between nodes.")] = None,
    startup: Annotated[float, typer.Option(min=0, help="Workflows: seconds until a rented node is ready.")] = 0.0,
    billing: Annotated[float, typer.Option(min=0, help="Workflows: seconds that are billed at least.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of strategies that draw.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(callback=drawable, help="File to draw the schedules to: .html, .svg or .png.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")] = False,
) -> None:
    """Play a trace by strategies, and tell what came of it.

    Slowdown, wait, utilisation, makespan and cost; several strategies are compared paired.

    Exit status: 0 done, 1 the trace or what is asked of it was refused, 2 misused, 130 interrupted.
    """
    from app.cli.child import run_child

    given: dict[str, object] = {"--strategy": strategy or None, "--nodes": nodes, "--backfilling": backfilling}
    given |= {"--order": order, "--sequences": sequences, "--user-tasks": user_tasks, "--agent": agent, "--plot": plot}
    given |= {"--user-processors": user_processors, "--bandwidth": bandwidth, "--startup": startup}
    given |= {"--billing": billing, "--seed": seed}
    flags = {"--exact-runtimes": exact_runtimes, "--clip": clip, "--sort": sort, "--online": online}
    flags |= {"--rented": rented, "--json": json}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    options += [name for name, on in flags.items() if on]
    raise typer.Exit(run_child("workers.kinds.workflow.simulator", *options, "--", str(trace)))
