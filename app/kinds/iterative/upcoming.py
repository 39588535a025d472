"""Announced features of the iterations ahead, as they are read and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue, InvalidInput, invalid

if TYPE_CHECKING:
    from app.kinds.iterative.layout import Layout

MOST_UPCOMING = 1_000
"""Iterations that can be announced at once: a decision takes time in proportion to them."""

Floats = NDArray[np.float64]


def encode_upcoming(layout: Layout, given: Sequence[Mapping[str, float]], iteration: int, pointer: str) -> Floats:
    """Features of iterations from ``iteration`` on in the layout's order, [U, F].

    Raises:
        InvalidInput: more than are left or than can be announced at once; unknown or missing names, values out of
            bounds; a workload without features.
    """
    left = layout.iterations - iteration
    most = min(left, MOST_UPCOMING)
    if len(given) > most:
        why = f"{left} iterations are left" if most == left else "more can't be announced at once"
        raise invalid(pointer, f"must hold at most {most} iterations: {why}", len(given))
    if given and not layout.features:
        raise invalid(pointer, "must be left out: the workload has no features", len(given))
    issues: list[FieldIssue] = []
    rows = []
    for place, features in enumerate(given):
        try:
            rows.append(layout.encode_features(features))
        except InvalidInput as refused:
            issues += [one._replace(pointer=f"{pointer}/{place}{one.pointer}") for one in refused.errors]
    if issues:
        raise InvalidInput(issues)
    return np.array(rows, np.float64).reshape(len(given), len(layout.features))


def padded(announced: Sequence[Floats], features: int) -> NDArray[Any]:
    """What B runs have announced, [U, F] each, side by side: [B, U, F], not a number beyond the end of each."""
    longest = max(map(len, announced), default=0)
    if not longest:
        return np.zeros((len(announced), 0, features))
    out = np.full((len(announced), longest, features), np.nan)
    for row, one in zip(out, announced, strict=True):
        if len(one):
            row[: len(one)] = one
    return out
