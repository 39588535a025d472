"""What decision engines answer, where nothing may fail."""

from __future__ import annotations

from collections.abc import Sequence

from app.kinds.contract.engine import EncodedDecision


def all_answered(result: Sequence[EncodedDecision | Exception]) -> list[EncodedDecision]:
    """All of ``result``; raises the first error among them."""
    for one in result:
        if isinstance(one, Exception):
            raise one
    return [one for one in result if isinstance(one, EncodedDecision)]
