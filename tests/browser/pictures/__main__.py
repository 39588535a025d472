"""Draws pictures of the dashboard from a service that is filled for it, in a real browser.

``python -m tests.browser.pictures`` draws those that the documentation shows; with ``--stale`` only when what they show
has changed since, and only where there is a Chromium. With ``--look FOLDER`` every page, in both themes and widths.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import ARGUMENTS, program
from tests.browser.pictures import sources
from tests.browser.pictures.drawing import look, paths, shown
from tests.browser.pictures.scene import scene
from tests.servers import start_steward

FOLDER = sources.ROOT / "docs/pictures"
EMPTY = {"home": "/", "runs": "/ui/runs", "jobs": "/ui/jobs", "evaluations": "/ui/evaluations", "missing": "/ui/runs/0"}
NONE = "no Chromium is there (Debian: apt-get install chromium)"


def main() -> int:
    """Fill, draw, and say what was drawn."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("--stale", action="store_true", help="only when they are older than what they show")
    parser.add_argument("--look", type=Path, metavar="FOLDER", help="every page, as PNG, for one's own eyes")
    options = parser.parse_args()
    if options.stale and sources.digest() == sources.drawn_from(FOLDER):
        return 0
    if program() is None:
        sys.stderr.write(f"{NONE}: the pictures stay as they were drawn last\n" if options.stale else f"{NONE}\n")
        return 0 if options.stale else 2
    folder: Path = options.look or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        server = start_steward(Path(data), stale_after_seconds="86400")  # however slowly this machine fills it
        try:
            result = _drawn(browser, server.url, folder, every=options.look is not None)
        finally:
            browser.close()
            server.stop()
    if options.look is None:
        sources.keep(folder)
    sys.stdout.write("".join(f"{path}\n" for path in result))
    return 0


def _drawn(browser: Browser, url: str, folder: Path, *, every: bool) -> list[Path]:
    with httpx.Client(base_url=url, timeout=60) as api:
        if not every:
            return shown(browser, url, scene(api), folder)
        empty = {f"empty-{name}": path for name, path in EMPTY.items()}
        result = look(browser, url, empty, folder)
        return result + look(browser, url, paths(scene(api)), folder)


if __name__ == "__main__":
    raise SystemExit(main())
