"""Fenced blocks of the documents, and which of them a test runs.

A block runs, in a fresh folder and in the page's order, unless its title says that it can't here: these titles are seen
by readers, too. A title that is a file's name makes the block that file. A comment `<!-- schema: NAME -->` before JSON
names the schema that it has to keep to.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "clients/python/README.md"]
PAGES += [str(path.relative_to(ROOT)) for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md")]
NOT_HERE = (
    "Takes minutes",
    "With a fitted model",
    "With your own files",
    "With your package installed",
    "On your hosts",
    "On your cluster",
)
"""Titles of blocks that no test runs: they are read instead, each command and each name against what is there."""

BLOCK = re.compile(
    r"(?:^<!-- schema: (?P<schema>\w+) -->\n+)?^(?P<indent> *)```(?P<language>[a-z]*)(?P<rest>[^\n`]*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A block of a page: what it is called there, its title, and the schema that it is to keep to."""

    page: str
    line: int
    language: str
    title: str
    schema: str
    text: str

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that it is."""
        return self.title if re.fullmatch(r"[\w./-]+\.\w+", self.title) else None

    @property
    def runs(self) -> bool:
        """Whether a test runs it."""
        return self.title not in NOT_HERE


def blocks(page: str) -> list[Block]:
    """All blocks of a page."""
    text = (ROOT / page).read_text()
    return [_block(page, text, match) for match in BLOCK.finditer(text)]


def _block(page: str, text: str, match: re.Match[str]) -> Block:
    title = re.search(r'title="([^"]*)"', match["rest"])
    line = text.count("\n", 0, match.start("language")) + 1
    shown = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
    return Block(page, line, match["language"], title[1] if title else "", match["schema"] or "", shown)


ALL = [block for page in PAGES for block in blocks(page)]
