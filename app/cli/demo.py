"""``steward demo`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer


def register(cli: typer.Typer) -> None:
    """Add the demo to the ``steward`` command."""

    @cli.command()
    def demo(
        output: Annotated[Path, typer.Option(help="Folder for the picture and the figures.")] = Path("demo-output"),
        iterations: Annotated[int, typer.Option(min=8, max=200, help="Iterations of the training.")] = 24,
        compare: Annotated[bool, typer.Option(help="Also run the training at static allocations.")] = True,
    ) -> None:
        """Profile a real training, learn from it, and run it live under Steward's decisions (under 3 minutes)."""
        from app.startup import check_learning

        check_learning("steward demo")
        from app.demo.story import Options, run

        raise typer.Exit(run(Options(output, iterations, compare)))
