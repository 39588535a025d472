"""Run every benchmark, print what it finds, and write it to ``results.json`` beside this file.

``python -m benchmarks`` runs all; ``python -m benchmarks api_speed …`` runs those named, keeping the others' figures.
"""

import importlib
import json
import os
import platform
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
    "workflow_live",
    "domain_models",
    "sample_upload",
    "api_speed",
    "workflow_speed",
    "workflow_decisions",
    "workflow_generalisation",
)
Row = dict[str, Any]


def main(names: list[str]) -> None:
    """Run ``names`` (all without any) and record their rows."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    recorded = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"results": []}
    for name in names or BENCHMARKS:
        rows = importlib.import_module(f"benchmarks.{name}").results()
        show(name, rows)
        kept = [row for row in recorded["results"] if row["benchmark"] != name]
        recorded = {"results": kept + [{"benchmark": name, "machine": machine(), **row} for row in rows]}
        RESULTS.write_text(json.dumps(recorded, indent=1) + "\n")


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
