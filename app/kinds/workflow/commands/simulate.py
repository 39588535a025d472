"""Registration of ``steward simulate``; the simulator runs in a child process and is never imported here."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.options import drawable


def register(cli: typer.Typer) -> None:
    """Add the command ``steward simulate`` to ``cli``."""
    cli.command()(simulate)


def simulate(
    trace: Annotated[Path, typer.Argument(help="Batch log (SWF) or workflow (WfFormat), plain or gzip.")],
    strategy: Annotated[
        str, typer.Option(help="Scheduling strategies, such as fcfs, sjf, f4, heft, agent; comma-separated.")
    ] = "",
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Processors of the machine (256), or count x processors @ speed : price per hour (4x16@1.0:0.48), "
            "comma-separated. [default: the log's processors]"
        ),
    ] = None,
    backfilling: Annotated[
        Literal["none", "rls", "easy", "conservative", "uncommitted"],
        typer.Option(help="Backfilling: which jobs may start before a waiting one."),
    ] = "none",
    order: Annotated[
        str | None,
        typer.Option(help="Order in which jobs are backfilled. [default: the strategy's; with rls, fcfs]"),
    ] = None,
    exact_runtimes: Annotated[
        bool, typer.Option("--exact-runtimes", help="Plan with actual run times, not estimates.")
    ] = False,
    sequences: Annotated[
        str | None, typer.Option(help="Job sequences, each on an empty machine: first:count,... [default: all]")
    ] = None,
    user_tasks: Annotated[int | None, typer.Option(min=1, help="Maximum number of running tasks per user.")] = None,
    user_processors: Annotated[int | None, typer.Option(min=1, help="Maximum processors per user.")] = None,
    clip: Annotated[bool, typer.Option("--clip", help="Cap run times at their estimates.")] = False,
    sort: Annotated[bool, typer.Option("--sort", help="Sort jobs by submission time.")] = False,
    agent: Annotated[Path | None, typer.Option(help="Policy file for strategy agent.")] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Workflows: assign tasks to nodes when they are ready.")
    ] = False,
    rented: Annotated[bool, typer.Option("--rented", help="Workflows: pay for nodes only while needed.")] = False,
    bandwidth: Annotated[float | None, typer.Option(help="Workflows: bandwidth between nodes, in MB/s.")] = None,
    startup: Annotated[float, typer.Option(min=0, help="Workflows: startup of a rented node, in seconds.")] = 0.0,
    billing: Annotated[float, typer.Option(min=0, help="Workflows: billing period of rented nodes, in seconds.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random strategies.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(callback=drawable, help="File for a plot of the schedules: .html, .svg or .png.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Simulate scheduling strategies on a trace.

    Prints slowdown, wait, utilisation, makespan and cost, with paired comparisons.

    Exit status: 0 done, 1 trace or request refused, 2 usage error, 130 interrupted.
    """
    from app.cli.child import run_child

    values: dict[str, object] = {"--strategy": strategy or None, "--nodes": nodes, "--backfilling": backfilling}
    values |= {"--order": order, "--sequences": sequences, "--user-tasks": user_tasks, "--agent": agent, "--plot": plot}
    values |= {"--user-processors": user_processors, "--bandwidth": bandwidth, "--startup": startup}
    values |= {"--billing": billing, "--seed": seed}
    flags = {"--exact-runtimes": exact_runtimes, "--clip": clip, "--sort": sort, "--online": online}
    flags |= {"--rented": rented, "--json": json}
    options = [f"{name}={value}" for name, value in values.items() if value is not None]
    options += [name for name, on in flags.items() if on]
    raise typer.Exit(run_child("workers.kinds.workflow.simulator", *options, "--", str(trace)))
