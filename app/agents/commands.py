"""``steward agent`` on the command line. What learns is started as a child process: the service never imports it."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def register(cli: typer.Typer) -> None:
    """Add the commands about agents to the ``steward`` command."""
    agent = typer.Typer(help="Agents, before they are trained.", no_args_is_help=True)
    cli.add_typer(agent, name="agent")
    agent.callback()(_agents)
    agent.command()(show)


def _agents() -> None:
    """Agents, before they are trained."""


def show(
    config: Annotated[str, typer.Argument(help="Name of an algorithm, or a JSON file with an agent's config.")],
    workload: Annotated[
        Path | None, typer.Option(help="JSON file with a workload's spec; it gives the spaces.")
    ] = None,
    observation: Annotated[int | None, typer.Option(help="Length of the observation, without a workload.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions, without a workload.")] = None,
    format_: Annotated[
        Literal["text", "mermaid", "dot", "json"], typer.Option("--format", help="What to print.")
    ] = "text",
) -> None:
    """Print the graph of components that a config builds: spaces, parameter counts, stage times."""
    import subprocess

    given = {"--workload": workload, "--observation": observation, "--actions": actions, "--format": format_}
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    command = [sys.executable, "-m", "workers.learning.show", *options, "--", config]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
