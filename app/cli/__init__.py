"""The `steward` command, one module per group; modules import what a command needs when it runs."""

import signal


def main() -> None:
    """Run the `steward` command with this process's arguments; ends the process with the command's exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: there is nothing to tidy up
    from app.cli.main import cli

    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli(prog_name="steward")  # however it was started: completion goes by this name
