"""Files that went wrong, or were made to: what becomes of ten thousand of each format.

``python -m benchmarks.hostile [--cases 10000] [--seed 0] [name …]`` sends mutations of sound files (bits flipped,
pieces missing, repeated and moved, odd numbers and characters, nesting, lines of 100 kB, packed bodies and bombs) to
the application in this process, and dumps of PostgreSQL, where its programs are, to what checks them before they are
restored. It prints for each format how many were refused and accepted, how many ended otherwise (a 5xx, or another
exception than the one that is documented), the slowest by processor time per kB (of what was sent, or 16 MiB of a bomb;
at least 1 kB), the longest by the clock, and how much memory the process took from half of them to the end: what is
kept of each file would show there, while caches are full and what the allocator keeps for later is given back.
The same seed sends the same bytes. Processor time is that of the process and of the programs it calls, so that other
processes of the machine hardly enter it.
``python -m benchmarks hostile`` records it, ``hostile:csv`` one of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.hostile.run import Found

CASES, MOST_MILLISECONDS, MOST_GROWN = 10_000, 100.0, 8e6
PARTS = (
    *("application/json", "x-ndjson", "csv", "x-swf", "wfformat"),
    *("report", "spec", "series", "artifact", "model", "backup"),
)
"""Each is what names of formats hold."""


def results(parts: Sequence[str] = PARTS) -> list[dict[str, Any]]:
    """A row for each format: how many of its files ended otherwise than refused or accepted."""
    from benchmarks.hostile.__main__ import all_tried

    return [_row(name, match) for name, match in all_tried(CASES, 0, parts)]


def _row(name: str, result: Found) -> dict[str, Any]:
    from benchmarks.hostile.formats import ACCEPTED, FAILED, REFUSED

    counts, (slowest, way, _) = result.outcomes, result.slowest
    text = f"{counts[REFUSED]:,} refused, {counts[ACCEPTED]:,} accepted, at most {slowest:.1f} ms/kB ({way})"
    text += f" and {result.longest:.1f} s, {result.grown / 1e6:.1f} MB more in the second half"
    met = counts[FAILED] == 0 and slowest <= MOST_MILLISECONDS and result.grown <= MOST_GROWN
    goal = f"0, ≤ {MOST_MILLISECONDS:g} ms/kB, ≤ {MOST_GROWN / 1e6:g} MB: {'met' if met else 'missed'}"
    return {"name": f"{name}: {text}", "value": counts[FAILED], "unit": f"5xx of {counts.total():,}", "goal": goal}
