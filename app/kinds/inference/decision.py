"""Schema of decisions of kind `inference`, and the texts of their reasons."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.charts.text import decimals, seconds
from app.kinds.contract.engine import DecisionBase
from app.kinds.contract.kind import RunStart
from app.kinds.inference.choices import DecisionChanges, Start
from app.kinds.inference.report import Ledger


class BatchStart(BaseModel):
    """A batch to start now, of the user's oldest requests."""

    server: str = Field(description="Class and index, starting at 0.", examples=["cpu-0"])
    user: str
    variant: str
    batch: int = Field(description="Chosen batch size; the smallest also takes fewer requests.")
    requests: list[str] = Field(description="Names; unnamed requests have a number, such as `#17`.")
    expected_seconds: float | None = Field(description="Includes loading the variant; null without a domain model.")


class Drop(BaseModel):
    """Requests of one user to drop."""

    user: str
    requests: list[str]
    why: str


class ShadowStarts(BaseModel):
    """The shadow's starts: recorded, not applied."""

    agent: int = Field(description="Version of the shadow.")
    start: list[BatchStart]
    agrees: bool = Field(description="Whether its decision would have been the same.")
    gain: float | None = Field(description="Always null: gains are not estimated for this kind.")
    problem: str | None = Field(description="What failed, if anything.")


class InferenceDecision(DecisionBase):
    """Batches to start now and on which servers, requests to drop, and how many servers to run."""

    kind: Literal["inference"]
    at: float = Field(description="Time of the report, in seconds since the run's start.")
    start: list[BatchStart]
    drop: list[Drop]
    servers: dict[str, int] = Field(description="Number of servers to run per class, including those starting.")
    turn_on: list[str] = Field(default=[], description="Servers to start now; at most 4 are turned on or off at once.")
    turn_off: list[str] = Field(default=[], description="Servers to stop now: idle ones, or such as are starting.")
    wake_at: float | None = Field(description="Latest time for the next report; null: at the next event.")
    waiting: dict[str, int] = Field(description="Waiting requests by user, after this decision.")
    quality: dict[str, float] = Field(description="Recent mean response quality by user; 1 before the first response.")
    expected: dict[str, dict[str, list[float]]] | None = Field(
        default=None,
        description="Expected seconds per batch, by server class, variant and size, for clients that decide by "
        "themselves: in the first decision of a carried run, if there is a domain model.",
    )
    shadow: ShadowStarts | None = Field(default=None, description="Decision of the run's shadow, if any.")


class InferenceStart(RunStart):
    """Parameters of a new run of kind ``inference``."""

    carried: bool = Field(
        default=False,
        description="Whether the client decides with a downloaded policy and reports what it started; "
        "the run's decisions then start nothing.",
    )


# Reasons as text: batches that start, their expected quality, and the best alternative.
#
# ==================  ===================================================================
# ``begun``           nothing is reported yet
# ``started``         batches start, or servers are turned on or off
# ``waiting``         requests wait and a server is free, and waiting is worth more
# ``busy``            requests wait, and no server is free
# ``nothing_waits``   no request waits
# ``carried``         the client decides by itself
# ``fallback``        a policy failed, and the heuristic decides instead
# ==================  ===================================================================


SHOWN = 3


def reason(ledger: Ledger, decided: DecisionChanges, failure: str) -> dict[str, str]:
    """Return ``code`` and ``text`` of a decision's reason; ``failure`` of a policy ("": none) goes before the text."""
    code = "fallback" if failure else _code(ledger, decided)
    text = "; ".join(
        part for part in (_starts(ledger, decided), _turns(ledger, decided), _waiting_text(ledger)) if part
    )
    return {"code": code, "text": f"{failure}: {text}" if failure else text}


def carried_reason(ledger: Ledger, version: int | None) -> dict[str, str]:
    """Return the reason of a run whose client decides; ``version`` of the promoted agent (None: none)."""
    promoted = "no agent promoted" if version is None else f"agent {version} promoted"
    return {"code": "carried", "text": f"the client decides; {promoted}; {_waiting_text(ledger)}"}


def _code(ledger: Ledger, decided: DecisionChanges) -> str:
    if decided.starts or decided.turns:
        return "started"
    if not ledger.anyone_waits:
        return "nothing_waits"
    return "waiting" if ledger.idle() else "busy"


def _starts(ledger: Ledger, decided: DecisionChanges) -> str:
    shown = [_start(ledger, start) for start in decided.starts[:SHOWN]]
    more = len(decided.starts) - len(shown)
    return "; ".join([*shown, f"{more:,} more batches"] if more else shown)


def _start(ledger: Ledger, start: Start) -> str:
    layout, batch = ledger.layout, start.batch
    waited = batch.started - batch.at[0]
    what = (
        f"start {len(batch.at):,} of {start.waiting:,} requests of {layout.users[batch.user]} on "
        f"{ledger.fleet.names[start.place]}: {layout.variants[batch.variant]}, batch {start.size}"
    )
    longest = f"longest wait {seconds(waited)}"
    if start.seconds is None:
        return f"{what}, {longest}"
    expected = ledger.expected_of_each(start.place, start.loaded, start.size)
    worths = layout.quality.means(batch.user, [batch.started - at for at in batch.at], expected)
    return (
        f"{what}, {seconds(start.seconds)}, {longest}, expected quality {decimals(worths[batch.variant], 2)}"
        f"{_instead(ledger, worths, batch.variant)}"
    )


def _instead(ledger: Ledger, worths: list[float], chosen: int) -> str:
    others = [*worths[:chosen], *worths[chosen + 1 :]]
    if not others:
        return ""
    best = others.index(max(others))
    name = ledger.layout.variants[best + (best >= chosen)]
    return f" ({name} {decimals(others[best], 2)})"


def _turns(ledger: Ledger, decided: DecisionChanges) -> str:
    parts = []
    for word, wanted in (("on", True), ("off", False)):
        names = [ledger.fleet.names[place] for place, on in decided.turns if on == wanted]
        if names:
            parts.append(f"turn {word} {', '.join(names)}")
    return "; ".join(parts)


def _waiting_text(ledger: Ledger) -> str:
    waiting = ledger.waiting()
    together = sum(waiting)
    if not together:
        return "no request is waiting"
    of_users = ", ".join([f"{n:,} of {user}" for n, user in zip(waiting, ledger.layout.users, strict=True) if n])
    return f"{together:,} {'request' if together == 1 else 'requests'} waiting ({of_users})"
