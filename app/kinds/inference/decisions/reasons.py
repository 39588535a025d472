"""Reasons in words, with their numbers: what starts, what that is expected to be worth, and what else would be.

==================  ===================================================================
``begun``           nothing is reported yet
``started``         batches start, or servers are turned on or off
``waiting``         requests wait and a server is free, and waiting is worth more
``busy``            requests wait, and no server is free
``nothing_waits``   no request waits
``carried``         the client decides by itself
``fallback``        a policy failed, and the heuristic answers instead
==================  ===================================================================
"""

from __future__ import annotations

from app.charts.text import seconds
from app.kinds.inference.decisions.decide import Decided, Start
from app.kinds.inference.decisions.schemas import EncodedReason
from app.kinds.inference.queue.ledger import Ledger

SHOWN = 3


def reason(ledger: Ledger, decided: Decided, failure: str) -> EncodedReason:
    """Why a decision is what it is; ``failure`` goes before it, where something failed."""
    code = "fallback" if failure else _code(ledger, decided)
    text = "; ".join(part for part in (_starts(ledger, decided), _turns(ledger, decided), _left(ledger)) if part)
    return EncodedReason(code, f"{failure}: {text}" if failure else text)


def carried(ledger: Ledger, version: int | None) -> EncodedReason:
    """The client decides."""
    promoted = "no agent is promoted" if version is None else f"agent {version} is promoted"
    return EncodedReason("carried", f"the client decides by itself; {promoted}; {_left(ledger)}")


def _code(ledger: Ledger, decided: Decided) -> str:
    if decided.starts or decided.turns:
        return "started"
    if not ledger.anyone_waits:
        return "nothing_waits"
    return "waiting" if ledger.idle() else "busy"


def _starts(ledger: Ledger, decided: Decided) -> str:
    shown = [_start(ledger, start) for start in decided.starts[:SHOWN]]
    more = len(decided.starts) - len(shown)
    return "; ".join([*shown, f"{more:,} more batches start"] if more else shown)


def _start(ledger: Ledger, start: Start) -> str:
    layout, batch = ledger.layout, start.batch
    waited = batch.started - batch.at[0]
    what = (
        f"{len(batch.at):,} of {start.waiting:,} requests of {layout.users[batch.user]} start on "
        f"{ledger.fleet.names[start.place]}"
    )
    how = f"with {layout.variants[batch.variant]} in a batch of {start.size}"
    if start.seconds is None:
        return f"{what} {how}, after at most {seconds(waited)} of waiting"
    expected = ledger.expected_of_each(start.place, start.loaded, start.size)
    worths = layout.quality.means(batch.user, [batch.started - at for at in batch.at], expected)
    return (
        f"{what} {how}: {seconds(start.seconds)} after at most {seconds(waited)} of waiting, "
        f"expected quality {worth_text(worths[batch.variant])}{_instead(ledger, worths, batch.variant)}"
    )


def _instead(ledger: Ledger, worths: list[float], chosen: int) -> str:
    """The best of the other variants."""
    others = [*worths[:chosen], *worths[chosen + 1 :]]
    if not others:
        return ""
    best = others.index(max(others))
    name = ledger.layout.variants[best + (best >= chosen)]
    return f"; {name} would come to {worth_text(others[best])}"


def _turns(ledger: Ledger, decided: Decided) -> str:
    parts = []
    for word, wanted in (("on", True), ("off", False)):
        names = [ledger.fleet.names[place] for place, on in decided.turns if on == wanted]
        if names:
            parts.append(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} turned {word}")
    return "; ".join(parts)


def _left(ledger: Ledger) -> str:
    waiting = ledger.waiting()
    together = sum(waiting)
    if not together:
        return "no request waits"
    of_users = ", ".join([f"{n:,} of {user}" for n, user in zip(waiting, ledger.layout.users, strict=True) if n])
    return f"{'1 request waits' if together == 1 else f'{together:,} requests wait'} ({of_users})"


def worth_text(value: float) -> str:
    """A quality: “.87”."""
    return f"{value:.2f}".removeprefix("0")
