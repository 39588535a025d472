"""``steward run``: a command of one's own under Steward's decisions; the client's launcher does it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class PassedOn(TyperCommand):
    """A command that reads its arguments itself, ``--`` and ``--help`` among them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all as it is."""
        ctx.args = list(args)
        return ctx.args


def register(cli: typer.Typer) -> None:
    """Add the command to the ``steward`` command."""
    cli.command("run", cls=PassedOn)(run)


def run(context: typer.Context) -> None:
    """Run a command of your own under decisions: steward run --learn --deadline 30m -- python train.py.

    Exit status: the command's own; 2 something can't be meant, 3 no answer from the service, 127 not started.
    """
    from steward_client.launcher.main import main

    raise typer.Exit(main(context.args, "steward run"))
