"""Files that went wrong, or were made to: what becomes of ten thousand of each format.

``python -m benchmarks.hostile [--cases 10000] [--seed 0] [name …]`` sends mutations of sound files (bits flipped,
pieces missing, repeated and moved, odd numbers and characters, nesting, lines of 100 kB, packed bodies and bombs) to
the application in this process, and dumps of PostgreSQL, where its programs are, to what checks them before they are
restored. It prints for each format how many were refused and accepted, how many ended otherwise (a 5xx, or another
exception than the one that is documented), the slowest by processor time per kB (of what was sent, or 16 MiB of a bomb;
at least 1 kB), and how much memory the process took meanwhile. The same seed sends the same bytes.
Processor time is the process's own, so that other processes of the machine hardly enter it.
``python -m benchmarks hostile`` records it.
"""

from __future__ import annotations

from typing import Any

CASES = 10_000


def results() -> list[dict[str, Any]]:
    """A row for each format: how many of its files ended otherwise than refused or accepted."""
    from benchmarks.hostile.__main__ import all_tried
    from benchmarks.hostile.formats import ACCEPTED, FAILED, REFUSED

    rows = []
    for name, found in all_tried(CASES, 0, []):
        counts, (slowest, way, _) = found.outcomes, found.slowest
        told = f"{counts[REFUSED]:,} refused, {counts[ACCEPTED]:,} accepted, at most {slowest:.1f} ms/kB ({way})"
        rows.append({"name": f"{name}: {told}", "value": counts[FAILED], "unit": f"5xx of {CASES:,}", "goal": "0"})
    return rows
