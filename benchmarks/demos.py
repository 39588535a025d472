"""``steward demo`` ten times on an idle machine, and ten times beside two processes that spin: is its story true?

``python -m benchmarks demos`` (fifty minutes on two cores); ``demos:idle`` or ``demos:busy`` runs one half. The
spinning processes start before the profile and end after the last run. Each row is one whole demo: what Steward's run
cost beside the best static allocation in hindsight, all of them really run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

PARTS = ("idle", "busy")
COUNT = 10
SPINNING = 2
SECONDS = 180.0
LATE, CHEAPER_THAN_LARGEST, CHEAPER_THAN_BEST = 0.9, 0.30, 0.05
MET = 0.95
Row = dict[str, Any]
Demo = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A row for each demo, and one for each goal."""
    return [
        row for part in parts for row in rows(part, [demo(SPINNING if part == "busy" else 0) for _ in range(COUNT)])
    ]


def demo(spinning: int) -> Demo:
    """What ``steward demo --json`` prints beside so many spinning processes, with its ``seconds``."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        for _ in range(spinning):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        begun = time.monotonic()
        line = [sys.executable, "-m", "app.cli", "demo", "--json", "--output", folder]
        report: Demo = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        return {**report, "seconds": time.monotonic() - begun}


def rows(part: str, demos: Sequence[Demo]) -> list[Row]:
    """The rows of demos that were run."""
    played = [{one["name"]: one for one in match["allocations"]} for match in demos]
    each = [
        _row_of(part, number, match, by_name)
        for number, (match, by_name) in enumerate(zip(demos, played, strict=True), 1)
    ]
    count = len(demos)
    met = sum(one["steward"]["met"] for one in played)
    late = sum(not one["careful"]["met"] for one in played)
    largest, best = (
        statistics.median(1 - one["steward"]["cost"] / one[name]["cost"] for one in played)
        for name in ("largest", "best_static")
    )
    longest = max(match["seconds"] for match in demos)
    return [
        *each,
        _goal(f"{part}: deadlines met by Steward, of {count}", met, "", f"≥ {MET:.0%}", met >= MET * count),
        _goal(f"{part}: the careful static is late, of {count}", late, "", f"≥ {LATE:.0%}", late >= LATE * count),
        _goal(
            f"{part}: cheaper than the largest, median", largest, "fraction", "≥ 0.30", largest >= CHEAPER_THAN_LARGEST
        ),
        _goal(f"{part}: cheaper than the best static, median", best, "fraction", "≥ 0.05", best >= CHEAPER_THAN_BEST),
        _goal(f"{part}: the longest demo after set-up", longest, "s", f"≤ {SECONDS:g} s", longest <= SECONDS),
    ]


def _row_of(part: str, number: int, demo: Demo, by_name: dict[str, Any]) -> Row:
    """One demo: times against the deadline, and Steward's cost beside the best static's."""
    deadline = demo["deadline_seconds"]
    text = ", ".join(
        f"{name.replace('_', ' ')} {f'{percent:g} % ' if (percent := one['percent']) else ''}{one['cost']:.4f} "
        f"({deadline - one['elapsed_seconds']:+.1f} s)"
        for name, one in by_name.items()
    )
    steward, best = by_name["steward"]["cost"], by_name["best_static"]["cost"]
    title = f"{part} {number}, deadline {deadline:.1f} s; cost and margin: {text}"
    beside = {"peer": "best static in hindsight", "peer_value": best, "ratio": steward / best}
    return {"name": title, "value": steward, "unit": "cost", **beside, "goal": None}


def _goal(name: str, value: float, unit: str, goal: str, met: bool) -> Row:
    nobody = {"peer": None, "peer_value": None, "ratio": None}
    return {"name": name, "value": value, "unit": unit, **nobody, "goal": f"{goal}: {'met' if met else 'missed'}"}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    for chosen in sys.argv[1:] or PARTS:
        show(f"demos {chosen}", results([chosen]))
