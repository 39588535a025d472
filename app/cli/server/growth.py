"""How far a file is that somebody else writes, as a bar."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from app.cli.remote.progress_bar import progress

LOOK_SECONDS = 0.5


@contextmanager
def growing(
    title: str, files: Sequence[Path], expected: int | None, notes: Console | None = None, look: float = LOOK_SECONDS
) -> Iterator[None]:
    """Draw a bar until what is inside has ended; nothing is drawn on pipes where that takes less than a look.

    Args:
        files: what grows, all together; they need not be there yet.
        expected: bytes of the whole, where that is known.
    """
    ended = threading.Event()
    with progress(notes or Console(stderr=True), title) as bar:

        def watch() -> None:
            while not ended.wait(look):
                size = sum(map(_size, files))
                done = min(size / expected, 1.0) if expected else 0.0
                bar.update(done, ", ".join(filter(None, (f"{size / 1e6:,.1f} MB", bar.left(done)))))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0
