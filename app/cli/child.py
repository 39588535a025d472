"""What learns, plays and draws runs in processes of its own: the service never imports it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.cli.options import INTERRUPTED
from app.processes import child_command
from app.startup import check_learning


def run_child(module: str, *arguments: str, stdin: bytes | None = None) -> int:
    """Run a module in a process that ends with this one; its exit status.

    Raises:
        StartupError: what it needs is not installed.

    It is not in the terminal's foreground group: Ctrl-C reaches this process alone, which then ends the child.
    """
    check_learning(module)
    command = child_command(module, *arguments)
    try:
        return subprocess.run(command, input=stdin, check=False, start_new_session=True).returncode
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


def draw_forecast(forecast: dict[str, Any], file: Path) -> int:
    """Draw a forecast, as the API answers with it; the exit status, with complaints on standard error."""
    return run_child("workers.evaluation.report.tables", "--", str(file), stdin=json.dumps(forecast).encode())


def draw_agent(agent: dict[str, Any], file: Path) -> int:
    """Draw the report of an agent, as the API answers with it; the exit status, with complaints on standard error."""
    return run_child("workers.evaluation.report.agent", "--", str(file), stdin=json.dumps(agent).encode())
