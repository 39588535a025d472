"""What it means for model serving to be at risk, and to have met its targets: the quality of answers to each user."""

from __future__ import annotations

from collections.abc import Sequence

from app.kinds.contract.run_outcome import Ended, Judgement

GOOD = 0.5
"""Mean quality of a user's recent answers, of 1 at best, from which on they are good enough."""


def risk(users: Sequence[str], qualities: Sequence[float]) -> str:
    """Why answers are not good enough, by user [U]; empty where they are."""
    if min(qualities, default=1.0) >= GOOD:
        return ""
    poor = [f"{user} {quality:.2f}" for user, quality in zip(users, qualities, strict=True) if quality < GOOD]
    return f"mean quality of recent answers below {GOOD:g}: {', '.join(poor)}"


def judge(run: Ended) -> Judgement:
    """By the qualities that stand at the end."""
    quality = run.decision.get("quality")
    if not quality or run.decision.get("reported") is None:
        return Judgement(None, "nothing was reported")
    poor = risk(list(quality), list(quality.values()))
    return Judgement(
        not poor, poor or f"mean quality of recent answers at least {min(quality.values()):.2f} for every user"
    )
