"""What decision engines answer, where nothing may fail."""

from __future__ import annotations

from collections.abc import Sequence

from app.kinds.contract.engine import EncodedDecision


def all_answered(found: Sequence[EncodedDecision | Exception]) -> list[EncodedDecision]:
    """All of ``found``; raises the first error among them."""
    for one in found:
        if isinstance(one, Exception):
            raise one
    return [one for one in found if isinstance(one, EncodedDecision)]
