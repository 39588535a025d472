"""The command's groups, each a module with `register(cli: typer.Typer)`; those of packages come after them.

Nothing heavy is imported before a command needs it: `steward --help` is instant.
"""

from __future__ import annotations

from importlib import import_module

import typer

from app.cli.commands import Commands
from app.cli.options import STATUSES

GROUPS = ("serve", "verbs", "database", "demo", "keys", "doctor")

cli = typer.Typer(
    name="steward",
    cls=Commands,
    help="Steward: allocation as a service.",
    epilog=STATUSES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
)
for _group in GROUPS:
    import_module(f"app.cli.{_group}").register(cli)


if __name__ == "__main__":
    cli()
