"""Compiled simulators from the descriptions of those in NumPy."""

import json
from collections.abc import Callable

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.compiled import CompiledIterative
from workers.kinds.iterative.simulator import ranged
from workers.learning.compiled_simulator.base import CompiledSimulator
from workers.learning.described_simulator import SimulatorSpec


def make(described: SimulatorSpec) -> CompiledSimulator:
    """Make it.

    Raises:
        ValueError: no simulator is compiled for this kind, or spec or table can't be read.
    """
    if described.kind not in MAKERS:
        raise ValueError(f"no simulator is compiled for kind {described.kind!r}; known are {', '.join(sorted(MAKERS))}")
    return MAKERS[described.kind](described)


def _iterative(told: SimulatorSpec) -> CompiledSimulator:
    layout, table = Layout(Spec.model_validate(json.loads(told.spec))), ModelTable.from_bytes(told.model)
    expected, ranges = ranged(told.options)
    return CompiledIterative(layout, table, told.batch, told.seed, ranges, expected=expected)


MAKERS: dict[str, Callable[[SimulatorSpec], CompiledSimulator]] = {"iterative": _iterative}
"""By kind: what makes its compiled simulator."""
