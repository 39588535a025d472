"""Child processes for learning, demos and drawing, so that the service needn't import their packages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.cli.options import INTERRUPTED
from app.processes import child_command
from app.startup import check_learning


def run_child(module: str, *arguments: str, stdin: bytes | None = None) -> int:
    """Run a module in a child process and return its exit status; 130 if interrupted by Ctrl-C.

    ``stdin``: bytes of its standard input, None: this process's. The child has its own session: Ctrl-C reaches only
    this process, with which the child ends. Raises StartupError if packages that the module needs are not installed.
    """
    check_learning(module)
    command = child_command(module, *arguments)
    try:
        return subprocess.run(command, input=stdin, check=False, start_new_session=True).returncode
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


def draw_forecast(forecast: dict[str, Any], file: Path) -> int:
    """Draw a forecast (the API's JSON) to a file and return the exit status; errors are printed to standard error."""
    return run_child("workers.evaluation.report.tables", "--", str(file), stdin=json.dumps(forecast).encode())


def draw_agent(agent: dict[str, Any], file: Path) -> int:
    """Draw an agent's report (the API's JSON) to a file and return the exit status; errors go to standard error."""
    return run_child("workers.evaluation.report.agent", "--", str(file), stdin=json.dumps(agent).encode())
