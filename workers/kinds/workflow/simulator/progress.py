"""How far a simulation is, on the terminal of whoever waits for it."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def watched(items: Sequence[Item]) -> Iterable[Item]:
    """The items, with a bar on standard error that goes when they are done; none where that is no terminal."""
    console = Console(stderr=True)
    hidden = not console.is_terminal or len(items) < 2
    return track(items, "simulate", console=console, transient=True, disable=hidden)
