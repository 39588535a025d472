"""The `steward` command, one file per group; what a command does is imported when it is called."""

import signal


def main() -> None:
    """The entry point of the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: there is nothing to tidy up
    from app.cli.main import cli

    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli(prog_name="steward")  # however it was started: completion goes by this name
