"""Display of a job's progress: a bar on a terminal if ``rich`` is installed, else lines, or nothing."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

STEP = 0.1


class Progress:
    """Context manager: shows progress on standard error.

    Args:
        name: what progresses, such as ``job 5f…``.
        shown: False: nothing is shown.
    """

    def __init__(self, name: str, *, shown: bool) -> None:
        self._name, self._shown = name, shown
        self._bar: tuple[Bar, TaskID] | None = None
        self._last_shown: tuple[str, int] | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            self._bar = self._rich()
        return self

    def _rich(self) -> tuple[Bar, TaskID] | None:
        try:
            from rich.console import Console
            from rich.progress import Progress as Bar
        except ImportError:
            return None
        bar = self._open.enter_context(Bar(console=Console(stderr=True)))
        return bar, bar.add_task(self._name, total=1.0)

    def update(self, state: str, done: float, eta_seconds: float | None) -> None:
        """Show a state, the share ``done`` (0 to 1) and ``eta_seconds``; lines only at a new state or tenth."""
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=done, description=f"{self._name} {state}")
        elif self._shown and (state, int(done / STEP)) != self._last_shown:
            self._last_shown = (state, int(done / STEP))
            left = "" if eta_seconds is None else f", {eta_seconds:.0f} s left"
            print(f"{self._name}: {state}, {done:.0%}{left}", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self._open.close()
