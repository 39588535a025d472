"""``steward agent`` on the command line, and ``steward train``, which is short for ``steward agent create``.

What learns runs in a process of its own, a child or a worker: the service never imports it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli.nouns.catalogue import AGENT
from app.cli.nouns.commands import Workload, group, names_of
from app.cli.nouns.contract import CHAMPION, NEWEST
from app.cli.options import SERVICE, Margin, Plot, Url


def _version(value: str) -> str:
    """A number, or a role."""
    if not value.isdecimal() and value not in ("champion", "newest"):
        raise typer.BadParameter(f"{value!r} is no version: a number, champion or newest")
    return value


versions = names_of("/workloads/{workload}/agents", "version", (NEWEST, CHAMPION))


def _algorithms(incomplete: str) -> list[str]:
    from importlib.metadata import entry_points

    names = ("auto", "online", "planner", *entry_points(group="steward.algorithms").names)
    return [name for name in names if name.startswith(incomplete)]


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
        Path | None, typer.Option(help="JSON file with a workload's spec, which defines the spaces.")
    ] = None,
    observation: Annotated[str | None, typer.Option(help="Observation size, or candidates x features.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions, without --workload.")] = None,
    format_: Annotated[
        Literal["text", "mermaid", "dot", "json"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Print the components that a config builds.

    As a graph, with spaces, parameter counts and stage times.
    """
    from app.cli.child import run_child

    given = {"--workload": workload, "--observation": observation, "--actions": actions, "--format": format_}
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    raise typer.Exit(run_child("workers.learning.describe", *options, "--", config))


def show(
    workload: Workload,
    version: Annotated[
        str, typer.Argument(callback=_version, help="Version number, newest or champion.", autocompletion=versions)
    ] = "newest",
    plot: Plot = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the agent as JSON instead of its verdict.")] = False,
) -> None:
    """Print or draw the evaluation of a trained agent.

    Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized.
    """
    from app.cli.remote.agent_report import Options, run

    raise typer.Exit(run(Options(url, workload, version, plot, json)))


def train(
    workload: Workload,
    algorithm: Annotated[
        str, typer.Option(help="Name of an algorithm; auto lets several compete.", autocompletion=_algorithms)
    ] = "auto",
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Seeds to try, on all workers in parallel. [default: 3 with auto, else 1]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    budget: Annotated[int | None, typer.Option(min=1_000, help="Environment steps per seed.")] = None,
    executor: Annotated[Literal["serial", "processes", "ray"], typer.Option(help="Where simulations run.")] = "serial",
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Device that computes networks.")] = "auto",
    start_from: Annotated[int | None, typer.Option(min=1, help="Version of an agent to continue training.")] = None,
    imitate: Annotated[str | None, typer.Option(help="Heuristic or planner to imitate first.")] = None,
    model: Annotated[int | None, typer.Option(min=1, help="Version of the domain model. [default: newest]")] = None,
    promote: Annotated[bool, typer.Option(help="Promote the agent if it is good enough.")] = True,
    window: Annotated[
        float | None, typer.Option(min=1, help="With algorithm online: window length in seconds. [default: 300]")
    ] = None,
    window_steps: Annotated[
        int | None, typer.Option(min=1_000, help="With algorithm online: environment steps per window.")
    ] = None,
    windows: Annotated[
        int | None, typer.Option(min=1, help="With algorithm online: number of windows. [default: no limit]")
    ] = None,
    margin: Margin = None,
    priority: Annotated[
        int | None, typer.Option(min=-10, max=10, help="Among the tenant's waiting jobs, highest starts first.")
    ] = None,
    plot: Plot = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the agent as JSON instead of a table.")] = False,
    require_promoted: Annotated[bool, typer.Option(help="Exit with 4 unless it becomes the champion.")] = False,
) -> None:
    """Train an agent for a workload.

    Several algorithms compete, losers stop early, and the best agent is evaluated.

    With algorithm online, training continues window by window until interrupted or --windows have passed.

    Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 4 not promoted though required,
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
    request |= {"equivalence_margin": margin, "online": settings or None, "priority": priority}
    raise typer.Exit(run(Options(url, workload, request, json, require_promoted, plot)))
