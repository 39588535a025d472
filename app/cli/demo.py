"""``steward demo``: the demos' commands."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option(help="Folder for the plot and the results.")]
Compare = Annotated[bool, typer.Option(help="Also run it without Steward.")]
Budget = Annotated[int, typer.Option(min=10_000, help="Environment steps per seed.")]


def register(cli: typer.Typer) -> None:
    """Add the group ``demo`` to the ``steward`` command."""
    demo = typer.Typer(invoke_without_command=True)
    cli.add_typer(demo, name="demo")

    @demo.callback()
    def training(
        context: typer.Context,
        output: Output = Path("demo-output"),
        iterations: Annotated[int, typer.Option(min=8, max=200, help="Iterations of the training.")] = 24,
        compare: Compare = True,
        budget: Budget = 100_000,
        as_json: Annotated[
            bool, typer.Option("--json", help="Print one JSON object; what is done goes to standard error.")
        ] = False,
        simulated: Annotated[bool, typer.Option("--simulated", help="Play the story in simulated time.")] = False,
    ) -> None:
        """Run a real training under Steward's decisions (2 to 4 minutes).

        It is profiled, and an agent trained for it, first. A neighbour takes CPU from a third of the run on. The same
        training is also run at static allocations.
        """
        if context.invoked_subcommand is not None:
            return
        from app.startup import check_learning

        check_learning("steward demo")
        from steward_demos.iterative import Options, run

        raise typer.Exit(run(Options(output, iterations, compare, budget, as_json, simulated)))

    @demo.command()
    def inference(
        output: Output = Path("demo-output"),
        seconds: Annotated[float, typer.Option(min=2, max=120, help="Seconds during which requests arrive.")] = 20.0,
        compare: Compare = True,
        budget: Budget = 300_000,
    ) -> None:
        """Serve bursts of requests with three real networks (3 minutes).

        They come from two users; Steward decides how to serve them.
        """
        from app.startup import check_learning

        check_learning("steward demo inference")
        from steward_demos.inference import Options, run

        raise typer.Exit(run(Options(output, seconds, compare, budget)))

    @demo.command()
    def cluster(output: Output = Path("demo-output"), compare: Compare = True) -> None:
        """Run four real trainings on a shared CPU (2 minutes).

        Steward decides how much of it each one gets.
        """
        from app.startup import check_learning

        check_learning("steward demo cluster")
        from steward_demos.cluster import Options, run

        raise typer.Exit(run(Options(output, compare)))
