"""How little the service weighs: memory of the API process, and how soon the command line answers.

``python -m benchmarks.footprint``
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks import load
from benchmarks.api_speed import CONNECTIONS, reports, states, steward
from benchmarks.load import Plan

MEGABYTE = 1e6
REPEATS = 7


def memory() -> float:
    """Resident megabytes of an API process after some seconds of decisions and reports."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as name:
        folder = Path(name)
        with steward(f"sqlite:///{folder}/steward.db", folder) as port:
            load.run(Plan(port, 2.0, states("/decision")))
            load.run(Plan(port, 2.0, reports(port, 3), circle=False))
            process = listening(port)
            return float(process.memory_info().rss / MEGABYTE)


def listening(port: int) -> psutil.Process:
    """The process that answers at a port of this machine."""
    for connection in psutil.net_connections("tcp"):
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            return psutil.Process(connection.pid)
    raise LookupError(f"nobody listens on port {port}")


def help_seconds() -> float:
    """Median seconds of ``steward --help``."""
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        subprocess.run([Path(sys.executable).parent / "steward", "--help"], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def _row(name: str, value: float, unit: str, goal: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": "",
        "peer_value": None,
        "ratio": round(value / goal, 2),
        "goal": f"< {goal:g} {unit}",
    }


def results() -> list[dict[str, Any]]:
    """Every figure with its goal."""
    return [
        _row(f"memory of the API process after load at {CONNECTIONS} connections", round(memory()), "MB", 150),
        _row("steward --help", round(help_seconds(), 3), "s", 0.3),
    ]


if __name__ == "__main__":
    for row in results():
        print(row)
