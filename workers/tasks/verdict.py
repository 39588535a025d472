"""Whether a trained agent becomes the champion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.agents.schemas import TrainRequest


class PromotionTerms(NamedTuple):
    """The training request, and who answered when it began: by role, versions of agents (None: a heuristic)."""

    request: TrainRequest
    rivals: Mapping[str, int | None]


def verdict(terms: PromotionTerms, report: dict[str, Any], rivals: Mapping[str, int | None]) -> tuple[bool, str]:
    """Whether the agent becomes the champion, and why; `rivals` are who answers at this moment."""
    reason = str(report["reason"])
    if not report["promoted"]:
        return False, reason
    if not terms.request.promote:
        return False, f"good enough, but not promoted, as was asked for: {reason}"
    if terms.request.require:
        return False, f"good enough, and waits for {' and '.join(terms.request.require)}: {reason}"
    changed = [version for role, version in rivals.items() if version != terms.rivals.get(role)]
    if changed:
        present = " and ".join(dict.fromkeys("a heuristic" if one is None else f"agent {one}" for one in changed))
        return False, f"the champion was changed during the training, and {present} was not its rival: {reason}"
    return True, reason
