"""The command's groups, each a module with `register(cli: typer.Typer)`, and what ends any command in one line.

Nothing heavy is imported before a command needs it: `steward --help` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from app.cli.options import INTERRUPTED
from app.startup import EXIT_STATUS, StartupError

GROUPS = ("serve", "database", "demo", "evaluate", "agents", "imports", "simulate")


class Commands(TyperGroup):
    """All commands: what can't start is told in a line, and Ctrl-C ends quietly."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is asked for."""
        try:
            return super().invoke(ctx)
        except StartupError as error:
            typer.echo(f"steward: {error}", err=True)
            raise typer.Exit(EXIT_STATUS) from error
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


cli = typer.Typer(
    name="steward",
    cls=Commands,
    help="Steward: allocation as a service.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for _group in GROUPS:
    import_module(f"app.cli.{_group}").register(cli)


if __name__ == "__main__":
    cli()
