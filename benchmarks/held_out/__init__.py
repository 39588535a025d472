"""Decisions on data that nobody who decides has seen: Steward over HTTP beside a plain rule and every static.

``STEWARD_DATA=… python -m benchmarks held_out`` records what Steward serves in every world, with a model alone and
after a training (``held_out:WORLD`` for one); ``python -m benchmarks.held_out --help`` plays chosen ones, in this
process or served.
"""

from __future__ import annotations

from typing import Any

from benchmarks.held_out.suite import WORLDS

PARTS = tuple(WORLDS)


def results(names: list[str] | None = None) -> list[dict[str, Any]]:
    """Rows of each world, see ``goals``."""
    from steward_demos.service import own_service

    from benchmarks.held_out.compare import compare
    from benchmarks.held_out.goals import rows
    from benchmarks.held_out.served import served

    results = []
    with own_service() as steward:
        for name in names or PARTS:
            *lines, _, _, _ = compare(WORLDS[name](), [served(steward), served(steward, {})])
            results += [row for line in lines for row in rows(name, line)]
    return results
