"""Pages as pictures: small ones for the documentation, and all of them, as they are, for one's own eyes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.browser.pictures.scene import Scene

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, Theme] = ("light", "dark")
WIDTHS = {"wide": 1440, "narrow": 320}
QUALITY = 82  # of WebP: text stays sharp, and a page takes about 50 kB
SHOWN_WIDTH = 1120
SHOWN = {"home": 900, "workload-iterative": 1150, "training": 900} | {
    f"run-{name}": 1150 for name in ("iterative", "queue", "workflow", "inference", "cluster")
}
"""How much of each page the documentation shows, in pixels from its top."""


def paths(scene: Scene) -> dict[str, str]:
    """Pages by name."""
    runs = {f"run-{name}": f"/ui/runs/{run}" for name, run in scene.runs.items()}
    workloads = {f"workload-{of}": f"/ui/workloads/{name}" for name, of in scene.workloads.items()}
    lists = {name: f"/ui/{name}" for name in ("runs", "jobs", "evaluations", "sign-in")}
    return {"home": "/", "training": f"/ui/jobs/{scene.training}", **lists, **runs, **workloads}


def shown(browser: Browser, url: str, scene: Scene, folder: Path) -> list[Path]:
    """The upper part of pages that the documentation shows, as WebP."""
    context = browser.new_context(base_url=url, viewport={"width": SHOWN_WIDTH, "height": 900})
    page, picture = context.new_page(), list[Path]()
    for name, height in SHOWN.items():
        drawn(page, paths(scene)[name])
        picture.append(folder / f"{name}.webp")
        picture[-1].write_bytes(_webp(page, height))
    context.close()
    return picture


def _webp(page: Page, height: int) -> bytes:
    whole = int(page.evaluate("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": SHOWN_WIDTH, "height": min(height, whole), "scale": 1}
    request = {"format": "webp", "quality": QUALITY, "captureBeyondViewport": True, "clip": clip}
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", request)
    return base64.b64decode(answer["data"])


def revealed(page: Page) -> None:
    """Have loaded what pages load when somebody looks there."""
    for part in page.locator("[hx-trigger=revealed]").all():
        part.scroll_into_view_if_needed()
        expect(part).not_to_contain_text("Loading …")
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0, timeout=60_000)


def look(browser: Browser, url: str, pages: dict[str, str], folder: Path) -> list[Path]:
    """Every page in both themes and widths, as PNG, each as high as it is."""
    results = []
    for theme in THEMES:
        for size, width in WIDTHS.items():
            context = browser.new_context(base_url=url, viewport={"width": width, "height": 900}, color_scheme=theme)
            page = context.new_page()
            for name, path in pages.items():
                drawn(page, path)
                revealed(page)
                results.append(folder / f"{name}-{theme}-{size}.png")
                page.screenshot(path=results[-1], full_page=True)
            context.close()
    return results


def drawn(page: Page, path: str) -> None:
    """Go to a page and wait until all its charts are there."""
    page.goto(path)
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0, timeout=60_000)
