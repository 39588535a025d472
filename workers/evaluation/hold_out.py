"""Which samples an evaluation keeps back for L3, and what it says of them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from workers.inputs import HoldOut, Samples

MOST_NAMES = 200
NOT_REQUESTED = "not asked for"


class Chosen(NamedTuple):
    """Names of the executions (or ``of`` what else) that are held out, and how many nothing judged has learned from."""

    names: tuple[str, ...]
    unseen: int
    of: str = "executions"

    def report(self, reason: str | None, note: str | None) -> dict[str, Any]:
        """The evaluation's report of them; ``reason``: why L3 is unavailable all the same, ``note``: a remark."""
        names = list(self.names[:MOST_NAMES])
        count = {"of": self.of, self.of: len(self.names)}
        return {**count, "unseen": self.unseen, "names": names, "reason": reason, "note": note}


class KeptBack(NamedTuple):
    """What is held out: the executions, what a domain model of them is fitted on, and what that is, in words."""

    chosen: Chosen
    samples: Samples
    note: str


def not_requested() -> dict[str, Any]:
    """The report where the evaluation ends before L3."""
    return Chosen((), 0).report(NOT_REQUESTED, None)


def choose(
    names: Sequence[str],
    request: HoldOut,
    seed: int,
    *,
    fewest: int = 1,
    most: int | None = None,
    carries: Callable[[Collection[str]], bool] = bool,
) -> Chosen:
    """The executions to hold out: those named, else a share, the unseen ones first.

    Args:
        names: of all executions, oldest first.
        request: which ones.
        seed: of the order in which they are drawn.
        fewest: of a share.
        most: in any case.
        carries: whether that many are enough; a share grows until they are, up to half of all.
    """
    if request.executions is not None:
        chosen = [name for name in request.executions if name in set(names)]
    else:
        wanted = min(len(names), max(fewest, round(request.share * len(names))))
        ordered = drawn(names, request.unseen, seed)
        sizes = range(wanted, max(wanted, len(names) // 2) + 1)
        chosen = ordered[: next((size for size in sizes if carries(ordered[:size])), wanted)]
    chosen = chosen[:most]
    return Chosen(tuple(chosen), sum(name in request.unseen for name in chosen))


def drawn(names: Sequence[str], unseen: Collection[str], seed: int) -> list[str]:
    """All names in an order drawn from ``seed``, those that are unseen first."""
    order = np.random.default_rng(seed).permutation(len(names))
    return sorted((names[index] for index in order), key=lambda name: name not in unseen)
