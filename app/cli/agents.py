"""``steward agent`` on the command line, and ``steward train``, which is short for ``steward agent create``.

What learns runs in a process of its own, a child or a worker: the service never imports it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli.nouns.catalogue import AGENT
from app.cli.nouns.commands import Workload, group
from app.cli.options import SERVICE, Margin, Plot, Url


def _version(value: str) -> str:
    """A number, or a role."""
    if not value.isdecimal() and value not in ("champion", "newest"):
        raise typer.BadParameter(f"{value!r} is no version: a number, champion or newest")
    return value


def register(cli: typer.Typer) -> None:
    """Add the commands about agents to the ``steward`` command."""
    agent = group(AGENT)
    cli.add_typer(agent)
    agent.command()(show)
    agent.command("create")(train)
    agent.command()(graph)
    cli.command()(train)


def graph(
    config: Annotated[str, typer.Argument(help="Name of an algorithm, or a JSON file with an agent's config.")],
    workload: Annotated[
        Path | None, typer.Option(help="JSON file with a workload's spec; it gives the spaces.")
    ] = None,
    observation: Annotated[
        str | None, typer.Option(help="Length of the observation, or candidates x features.")
    ] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions, without a workload.")] = None,
    format_: Annotated[
        Literal["text", "mermaid", "dot", "json"], typer.Option("--format", help="What to print.")
    ] = "text",
) -> None:
    """Print the components that a config builds.

    Their graph, with spaces, parameter counts and stage times.
    """
    from app.cli.child import run_child

    given = {"--workload": workload, "--observation": observation, "--actions": actions, "--format": format_}
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    raise typer.Exit(run_child("workers.learning.show", *options, "--", config))


def show(
    workload: Workload,
    version: Annotated[str, typer.Argument(callback=_version, help="A number, champion or newest.")] = "newest",
    plot: Plot = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the whole agent as JSON, not its verdict.")] = False,
) -> None:
    """Print or draw how an agent was judged after its training.

    Exit status: 0 done, 1 refused or failed, 2 misused, 3 no service there, 5 there is none, 6 not allowed.
    """
    from app.cli.remote.agent_report import Options, run

    raise typer.Exit(run(Options(url, workload, version, plot, json)))


def train(
    workload: Workload,
    algorithm: Annotated[str, typer.Option(help="Name of an algorithm; auto lets several compete.")] = "auto",
    seeds: Annotated[
        int | None, typer.Option(min=1, max=64, help="How many seeds are tried, on all workers at once: 3 with auto.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    budget: Annotated[int | None, typer.Option(min=1_000, help="Environment steps for each seed.")] = None,
    executor: Annotated[str, typer.Option(help="serial, processes or ray.")] = "serial",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    start_from: Annotated[int | None, typer.Option(min=1, help="Version of an agent to go on training.")] = None,
    imitate: Annotated[str | None, typer.Option(help="Heuristic, or planner, to imitate first.")] = None,
    model: Annotated[int | None, typer.Option(min=1, help="Version of the domain model. [default: newest]")] = None,
    promote: Annotated[bool, typer.Option(help="Whether it may become the champion.")] = True,
    window: Annotated[
        float | None, typer.Option(min=1, help="With algorithm online: seconds of a window. [default: 300]")
    ] = None,
    window_steps: Annotated[
        int | None, typer.Option(min=1_000, help="With algorithm online: environment steps after each window.")
    ] = None,
    windows: Annotated[
        int | None, typer.Option(min=1, help="With algorithm online: after how many it ends. [default: never]")
    ] = None,
    margin: Margin = None,
    plot: Plot = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the whole agent as JSON, not a table.")] = False,
    require_promoted: Annotated[bool, typer.Option(help="Exit with 4 unless it became the champion.")] = False,
) -> None:
    """Train an agent for a workload.

    Several learners compete, losers stop early, and the best one is judged.

    With algorithm online the training goes on, window by window, until it is interrupted or --windows have passed.

    Exit status: 0 done, 1 refused or failed, 2 misused, 3 no service there, 4 not promoted though required,
    130 interrupted.
    """
    from app.cli.remote.train import Options, run

    request: dict[str, Any] = {
        "algorithm": algorithm,
        "seeds": seeds,
        "seed": seed,
        "budget": budget,
        "executor": executor,
    }
    request |= {"device": device, "start_from": start_from, "imitate": imitate, "model": model, "promote": promote}
    online = {"window_seconds": window, "steps": window_steps, "windows": windows}
    settings = {name: value for name, value in online.items() if value is not None}
    request |= {"equivalence_margin": margin, "online": settings or None}
    raise typer.Exit(run(Options(url, workload, request, json, require_promoted, plot)))
