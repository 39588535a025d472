"""Files of the repository that pages link to, as parts of the site: links hold in the folder and on the page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HOME = ROOT / "README.md"
"""What the site begins with."""
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def of_site(path: Path) -> str:
    """Where a file of the repository lies among the pages."""
    if path == HOME:
        return "index.md"
    if path.is_relative_to(DOCS):
        return str(path.relative_to(DOCS))
    return f"repository/{path.relative_to(ROOT)}"


def linked(page: Path) -> Iterator[Path]:
    """Files outside the folder of pages that a page links to; those within are MkDocs' to check.

    Raises:
        ValueError: one of them isn't there, or is a folder.
    """
    for match in LINK.finditer(page.read_text()):
        target = Path(os.path.normpath(page.parent / match[1]))
        if target.is_relative_to(DOCS):
            continue
        if not target.is_file():
            raise ValueError(f"{page.relative_to(ROOT)} links to {match[1]!r}, which is no file")
        yield target


def beyond(pages: list[Path]) -> list[Path]:
    """What lies outside the folder of pages and is linked to, by these pages or by what they link to."""
    beyond: dict[Path, None] = {}
    waiting = list(pages)
    while waiting:
        for target in linked(waiting.pop()):
            if target not in beyond:
                beyond[target] = None
                waiting += [target] if target.suffix == ".md" else []
    return list(beyond)


def source(name: str) -> Path:
    """The file of the repository that a page is made of."""
    inside = name.removeprefix("repository/")
    return HOME if name == "index.md" else ROOT / inside if inside != name else DOCS / name


def moved(text: str, page: Path) -> str:
    """A page's text with its links as they are among the pages."""
    here = Path(of_site(page)).parent

    def one(match: re.Match[str]) -> str:
        target = of_site(Path(os.path.normpath(page.parent / match[1])))
        return f"]({os.path.relpath(target, here)}{match[2] or ''})"

    replaced: Callable[[re.Match[str]], str] = one
    return LINK.sub(replaced, text)
