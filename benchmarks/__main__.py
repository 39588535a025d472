"""Run every benchmark, print what it finds, and write it to ``results.json`` beside this file.

``python -m benchmarks`` runs all; ``python -m benchmarks api_speed …`` runs those named, keeping the others' figures.
A long one names its ``PARTS``, each of which is recorded when it is done, so that a stop loses one at most;
``python -m benchmarks agent_quality:pollux-bert`` runs one of them.
"""

import importlib
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
BENCHMARKS = (
    "footprint",
    "simulator_speed",
    "build_overhead",
    "learning_speed",
    "executor_speed",
    "time_to_optimum",
    "agent_quality",
    "held_out",
    "algorithms",
    "workflow_dags",
    "domain_models",
    "sample_upload",
    "api_speed",
    "workflow_speed",
    "workflow_decisions",
    "workflow_generalisation",
)
Row = dict[str, Any]


def main(chosen: list[str]) -> None:
    """Run ``chosen``, each a benchmark or one part of it (all without any), and record their rows."""
    for name in chosen or BENCHMARKS:
        if name.partition(":")[0] not in BENCHMARKS:
            sys.exit(f"no benchmark is called {name.partition(':')[0]}; there are {', '.join(BENCHMARKS)}")
    for name in chosen or BENCHMARKS:
        benchmark, _, part = name.partition(":")
        module = importlib.import_module(f"benchmarks.{benchmark}")
        parts = getattr(module, "PARTS", ())
        if part and part not in parts:
            sys.exit(f"{benchmark} has no part {part}; there are {', '.join(parts) or 'none'}")
        for each in [part] if part else parts:
            record(benchmark, each, module.results([each]))
        if not parts:
            record(benchmark, None, module.results())


def record(benchmark: str, part: str | None, rows: list[Row]) -> None:
    """Print rows, and put them in the place of those of the same benchmark and part."""
    show(benchmark, rows)
    recorded = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
    kept = [row for row in recorded if (row["benchmark"], row.get("part")) != (benchmark, part)]
    where = {"benchmark": benchmark, "machine": machine(), "commit": commit()} | ({"part": part} if part else {})
    RESULTS.write_text(json.dumps({"results": kept + [where | row for row in rows]}, indent=1) + "\n")


def commit() -> str:
    """The commit that is checked out; `+` where the code was changed since."""
    return git("rev-parse", "--short=7", "HEAD") + ("+" if git("status", "--porcelain", "--", "*.py") else "")


def git(*asked: str) -> str:
    """What git answers of this tree."""
    folder = str(RESULTS.parent.parent)
    return subprocess.run(["git", "-C", folder, *asked], capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """Where and when: cores, Python, day."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}"


def show(name: str, rows: list[Row]) -> None:
    """Print a table of one benchmark's rows."""
    print(f"\n{name} ({machine()})")
    for row in rows:
        peer = f"{row['peer']}: {figure(row['peer_value'])}" if row.get("peer") else ""
        ratio = f"ratio {figure(row['ratio'])}" if row.get("ratio") is not None else ""
        value = f"{figure(row['value']):>12} {row['unit']:<12}"
        print(f"  {row['name']:<58} {value} {peer:<44} {ratio:<16} {row.get('goal') or ''}")


def figure(value: float | str | None) -> str:
    """Four significant digits."""
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)


if __name__ == "__main__":
    main(sys.argv[1:])
