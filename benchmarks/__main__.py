"""Run every benchmark, print what it finds, and write it to ``results.json`` and ``RESULTS.md`` beside this file.

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

from benchmarks.page import cells, write

RESULTS = Path(__file__).with_name("results.json")
BENCHMARKS = (
    "demos",
    "footprint",
    "simulator_speed",
    "build_overhead",
    "learning_speed",
    "executor_speed",
    "time_to_optimum",
    "agent_quality",
    "phases",
    "headroom",
    "declared_disturbances",
    "few_samples",
    "earlier_workloads",
    "without_learning",
    "savings",
    "contingencies",
    "iterative_agents",
    "planted_judgings",
    "held_out",
    "algorithms",
    "workflow_dags",
    "workflow_live",
    "domain_models",
    "inference_models",
    "forecasts",
    "sample_upload",
    "api_speed",
    "authentication",
    "request_log",
    "recovery",
    "hostile",
    "victims",
    "budgets",
    "years",
    "dashboard",
    "report_path",
    "report_cost",
    "client_reports",
    "held_load",
    "workflow_speed",
    "workflow_decisions",
    "workflow_generalisation",
    "workflow_ahead",
    "inference_serving",
    "inference_speed",
    "inference_small",
    "inference_agents",
    "inference_servers",
    "inference_adaptation",
    "inference_shifts",
    "inference_fairness",
    "cluster_simulator",
    "cluster_goodput",
    "cluster_served",
    "cluster_convergence",
    "cluster_models",
    "cluster_serving",
    "cluster_agents",
    "cluster_arrivals",
    "cluster_goals",
    "cluster_small",
    "cluster_neighbours",
    "cluster_speed",
    "drift_detection",
    "drift_stories",
    "coverage",
)
Row = dict[str, Any]


def main(chosen: list[str]) -> None:
    """Run ``chosen``, each a benchmark or one part of it (all without any), and record their rows."""
    for name in chosen or BENCHMARKS:
        if name.partition(":")[0] not in BENCHMARKS:
            sys.exit(f"no benchmark is called {name.partition(':')[0]}; there are {', '.join(BENCHMARKS)}")
    at = commit()
    for name in chosen or BENCHMARKS:
        benchmark, _, part = name.partition(":")
        module = importlib.import_module(f"benchmarks.{benchmark}")
        parts = getattr(module, "PARTS", ())
        if part and part not in parts:
            sys.exit(f"{benchmark} has no part {part}; there are {', '.join(parts) or 'none'}")
        for each in [part] if part else parts:
            record(benchmark, each, module.results([each]), at)
        if not parts:
            record(benchmark, None, module.results(), at)


def record(benchmark: str, part: str | None, rows: list[Row], at: str) -> None:
    """Print rows, and put them in the place of those of the same benchmark and part; ``at``: the commit that ran."""
    show(benchmark, rows)
    recorded = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
    selection = [row for row in recorded if (row["benchmark"], row.get("part")) != (benchmark, part)]
    where = {"benchmark": benchmark, "machine": machine(), "commit": at} | ({"part": part} if part else {})
    RESULTS.write_text(json.dumps({"results": selection + [where | row for row in rows]}, indent=1) + "\n")
    write()


def commit() -> str:
    """The commit that is checked out; `+` where the code was changed since."""
    return git("rev-parse", "--short=7", "HEAD") + ("+" if git("status", "--porcelain", "--", "*.py") else "")


def git(*request: str) -> str:
    """What git answers of this tree."""
    folder = str(RESULTS.parent.parent)
    return subprocess.run(["git", "-C", folder, *request], capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """Where and when: cores, Python, day."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}"


def show(name: str, rows: list[Row]) -> None:
    """Print a table of one benchmark's rows."""
    print(f"\n{name} ({machine()})")
    for row in rows:
        label, value, peer, ratio, goal = cells(row)
        print(f"  {label:<58} {value:>25} {peer:<44} {ratio:<16} {goal}")


if __name__ == "__main__":
    main(sys.argv[1:])
