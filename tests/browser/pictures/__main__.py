"""Draws the pictures of the dashboard that the documentation shows, from a service that is filled for it.

``python -m tests.browser.pictures [--folder docs/pictures]``. Needs Chromium and the extra ``dev``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.pictures.scene import Scene, scene
from tests.servers import start_steward

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, Theme] = ("light", "dark")
WIDTHS = {"wide": 1440, "narrow": 320}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def pages(made: Scene) -> dict[str, str]:
    """What is drawn, by name."""
    runs = {f"run-{kind}": f"/ui/runs/{run}" for kind, run in made.runs.items()}
    return {
        "home": "/",
        "workload": f"/ui/workloads/{made.workload}",
        "training": f"/ui/jobs/{made.training}",
        "jobs": "/ui/jobs",
        **runs,
    }


def draw(browser: Browser, url: str, paths: dict[str, str], folder: Path) -> list[Path]:
    """Every page in both themes and widths, each as high as it is."""
    made = []
    for theme in THEMES:
        for size, width in WIDTHS.items():
            context = browser.new_context(base_url=url, viewport={"width": width, "height": 900}, color_scheme=theme)
            page = context.new_page()
            for name, path in paths.items():
                page.goto(path)
                expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0, timeout=60_000)
                made.append(folder / f"{name}-{theme}-{size}.png")
                page.screenshot(path=made[-1], full_page=True)
            context.close()
    return made


def main() -> int:
    """Fill, draw, and say what was drawn."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.stderr.write("Chromium is not there: install it (Debian: apt-get install chromium)\n")
        return 2
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        server = start_steward(Path(data))
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            with httpx.Client(base_url=server.url, timeout=60) as api:
                made = draw(browser, server.url, pages(scene(api)), given.folder)
        finally:
            browser.close()
            server.stop()
    sys.stdout.write("".join(f"{path}\n" for path in made))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
