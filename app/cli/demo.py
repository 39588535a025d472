"""``steward demo`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option(help="Folder for the picture and the figures.")]
Compare = Annotated[bool, typer.Option(help="Also play it without Steward.")]
Budget = Annotated[int, typer.Option(min=10_000, help="Environment steps of each seed.")]


def register(cli: typer.Typer) -> None:
    """Add the demos to the ``steward`` command."""
    demo = typer.Typer(
        invoke_without_command=True,
    )
    cli.add_typer(demo, name="demo")

    @demo.callback()
    def training(
        context: typer.Context,
        output: Output = Path("demo-output"),
        iterations: Annotated[int, typer.Option(min=8, max=200, help="Iterations of the training.")] = 24,
        compare: Compare = True,
        budget: Budget = 250_000,
    ) -> None:
        """Run a real training under Steward's decisions (3 minutes).

        It is profiled and learned from before.
        """
        if context.invoked_subcommand is not None:
            return
        from app.startup import check_learning

        check_learning("steward demo")
        from app.demo.story import Options, run

        raise typer.Exit(run(Options(output, iterations, compare, budget)))

    @demo.command()
    def inference(
        output: Output = Path("demo-output"),
        seconds: Annotated[float, typer.Option(min=2, max=120, help="For how long requests come.")] = 20.0,
        compare: Compare = True,
        budget: Budget = 300_000,
    ) -> None:
        """Serve bursts of requests by three real networks (3 minutes).

        They are two users', and are served under Steward's decisions.
        """
        from app.startup import check_learning

        check_learning("steward demo inference")
        from app.demo.serving.story import Options, run

        raise typer.Exit(run(Options(output, seconds, compare, budget)))

    @demo.command()
    def cluster(output: Output = Path("demo-output"), compare: Compare = True) -> None:
        """Let four real trainings share a CPU (2 minutes).

        Steward decides who gets how much of it.
        """
        from app.startup import check_learning

        check_learning("steward demo cluster")
        from app.demo.sharing.story import Options, run

        raise typer.Exit(run(Options(output, compare)))
