"""What pictures were drawn from: they are drawn anew when that has changed, and only then."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("app/dashboard", "app/charts", "app/kinds/*/views*", "tests/browser/pictures")
NAME = "drawn-from.txt"


def digest() -> str:
    """Of every file that decides what pages look like."""
    sha256 = hashlib.sha256()
    for path in sorted({path for part in PARTS for top in ROOT.glob(part) for path in (top, *top.rglob("*"))}):
        if path.is_file() and path.suffix != ".pyc":
            sha256.update(
                f"{path.relative_to(ROOT).as_posix()} {len(path.read_bytes())}\n".encode() + path.read_bytes()
            )
    return sha256.hexdigest()


def drawn_from(folder: Path) -> str:
    """The digest that the pictures in a folder were drawn from; empty where there are none."""
    file = folder / NAME
    return file.read_text().strip() if file.exists() else ""


def keep(folder: Path) -> None:
    """Say in the folder what its pictures were drawn from."""
    (folder / NAME).write_text(f"{digest()}\n")
