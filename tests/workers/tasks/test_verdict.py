"""Whether a trained agent, or those of several roles together, become champions."""

from __future__ import annotations

import pytest

from app.agents.schemas import TrainRequest
from workers.tasks.evaluate import PromotionTerms, verdict

GOOD = {"promoted": True, "reason": "promoted: better than lookahead"}


def test_who_is_good_enough_is_promoted_where_its_rivals_still_answer() -> None:
    for rivals in ({"default": None}, {"default": 3}, {"shop": 2, "archive": None}):
        assert verdict(PromotionTerms(TrainRequest(), rivals), GOOD, dict(rivals)) == (True, GOOD["reason"])


@pytest.mark.parametrize(
    ("now", "who"),
    [
        ({"shop": 4, "archive": 2}, "agent 4 was not its rival"),
        ({"shop": None, "archive": 2}, "a heuristic was not its rival"),
        ({"shop": 4, "archive": None}, "agent 4 and a heuristic were not its rivals"),
    ],
)
def test_a_change_in_any_role_meanwhile_keeps_all_from_being_promoted(now: dict[str, int | None], who: str) -> None:
    promoted, reason = verdict(PromotionTerms(TrainRequest(), {"shop": 2, "archive": 2}), GOOD, now)
    assert not promoted
    assert who in reason


def test_nobody_is_promoted_who_is_not_to_be() -> None:
    terms = PromotionTerms(TrainRequest(promote=False), {"default": None})
    assert verdict(terms, GOOD, {"default": None})[1].startswith("good enough, but not promoted, as requested")
    request = PromotionTerms(TrainRequest(require=["shadow"]), {"default": None})
    assert "waits for shadow" in verdict(request, GOOD, {"default": None})[1]
    bad = {"promoted": False, "reason": "not promoted: worse"}
    assert verdict(terms, bad, {"default": None}) == (False, "not promoted: worse")
