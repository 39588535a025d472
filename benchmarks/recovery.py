"""How long Steward takes after each fault until it answers again: the tests that count what is lost, timed.

``python -m benchmarks.recovery`` — from the end of a fault (the network is back, the standby promoted, there is room on
the disk, a worker is dead) until every run has another report acknowledged, or the job another attempt under way; with
the service's start where all of it was killed, with both fits where the broker held still. The tests hold that nothing
is lost and nothing doubled; where one fails there are no figures. Each figure is the longest of its test's. Leases and
sweeps of jobs are the tests', shorter than the defaults: a worker whose host is lost is waited for its lease longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.recovering import KEPT

GOAL_SECONDS = 30.0
FAULTS = ("tests/faults", "tests/integration/test_resume.py")
ROOT = Path(__file__).parent.parent
Row = dict[str, Any]


def longest() -> Mapping[str, float]:
    """Seconds by test."""
    values: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        selection = Path(folder) / "recoveries"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FAULTS]
        subprocess.run(command, cwd=ROOT, env={**os.environ, KEPT: str(selection)}, check=True)
        for one in map(json.loads, selection.read_text().splitlines()):
            values[one["test"]] = max(values.get(one["test"], 0.0), one["seconds"])
    return values


def results() -> list[Row]:
    """A row for each fault."""
    return [_row(test.removeprefix("test_").replace("_", " "), seconds) for test, seconds in longest().items()]


def _row(name: str, seconds: float) -> Row:
    goal = f"≤ {GOAL_SECONDS:g} s: {'met' if seconds <= GOAL_SECONDS else 'missed'}"
    nobody = {"peer": None, "peer_value": None, "ratio": None}
    return {"name": name, "value": round(seconds, 2), "unit": "s", **nobody, "goal": goal}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("recovery", results())
