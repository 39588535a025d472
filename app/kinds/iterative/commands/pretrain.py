"""Registration of ``steward pretrain``; the fit runs in a child process, and its module is never imported here."""

from pathlib import Path
from typing import Annotated

import typer


def register(cli: typer.Typer) -> None:
    """Add the command ``steward pretrain`` to ``cli``."""
    cli.command()(pretrain)


def pretrain(
    curves: Annotated[
        Path,
        typer.Argument(
            exists=True, dir_okay=False, help="CSV file with the columns application, curve, amount, seconds."
        ),
    ],
    out: Annotated[Path, typer.Option(dir_okay=False, help="File to write.")] = Path("population.json"),
) -> None:
    """Fit the prior of new workloads to measured ones.

    For kind iterative. A curve holds the seconds that the same work takes on several amounts of a resource, such as
    1, 2, 4 and 8 GPUs. The file that is written replaces population.json of the installed package.

    Exit status: 0 done, 2 usage error (the file has no such curves).
    """
    from app.cli.child import run_child

    raise typer.Exit(run_child("workers.kinds.iterative.pretrain", "--out", str(out), "--", str(curves)))
