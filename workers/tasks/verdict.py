"""Whether a trained agent becomes the champion."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.agents.schemas import TrainRequest


class PromotionTerms(NamedTuple):
    """The training request, and the champion's version when it began (None: a heuristic)."""

    request: TrainRequest
    champion: int | None


def verdict(terms: PromotionTerms, report: dict[str, Any], champion: int | None) -> tuple[bool, str]:
    """Whether the agent becomes the champion, and why; `champion` is who answers at this moment."""
    reason = str(report["reason"])
    if not report["promoted"]:
        return False, reason
    if not terms.request.promote:
        return False, f"good enough, but not promoted, as was asked for: {reason}"
    if terms.request.require:
        return False, f"good enough, and waits for {' and '.join(terms.request.require)}: {reason}"
    if champion != terms.champion:
        present = "a heuristic" if champion is None else f"agent {champion}"
        return False, f"the champion was changed during the training, and {present} was not its rival: {reason}"
    return True, reason
