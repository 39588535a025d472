"""The documentation's site: built strictly, whole, and content with itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.chromium import ARGUMENTS, program

pytestmark = pytest.mark.slow  # the whole site is built
ROOT = Path(__file__).parents[1]
OF_SCRIPTS = {"reference/schema.html"}
"""Pages whose anchors a script makes."""


class Page(HTMLParser):
    """What a page points at and loads, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in values:
            self.loaded.add(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loaded.add(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme in ("https", "http", "mailto"), link
                assert parts.netloc or parts.scheme == "mailto", link
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = target.exists() and (
                target not in pages
                or str(target.relative_to(site)) in OF_SCRIPTS
                or unquote(parts.fragment) in pages[target].anchors
            )
            broken += [] if known else [f"{path.relative_to(site)}: {link}"]
    assert len(pages) > 15
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    foreign = {source for page in pages.values() for source in page.loaded if urlsplit(source).netloc}
    assert foreign == set()
    assert all(
        any("iframe-worker" in source for source in page.loaded)
        for path, page in pages.items()
        if path.name != "schema.html"
    )


def test_searching_finds_what_code_says(site: Path) -> None:
    index = (site / "search/search_index.js").read_text()
    docs = json.loads(index.removeprefix("var __index = "))["docs"]
    fields = {entry["location"]: entry["title"] + entry["text"] for entry in docs}
    assert "Repeating the same spec changes nothing" in fields["reference/http.html#register_workload"]
    assert "STEWARD_DATA_DIR" in fields["reference/settings.html"]
    assert any("steward doctor" in text for place, text in fields.items() if place.startswith("reference/cli"))
    assert any("report" in place and "steward_client.Run" in place for place in fields)


def test_lists_of_commands_are_not_cut_off(site: Path) -> None:
    pages = [site / "reference/cli.html", *(site / "reference/cli").iterdir()]
    assert len(pages) > 10
    listed = [match for page in pages for match in re.findall(r"<li>.*<code>\w+</code>.*: .*", page.read_text())]
    assert len(listed) > 50
    assert [one for one in listed if "..." in one] == []


@pytest.mark.skipif(program() is None, reason="there is no Chromium")
def test_searching_needs_no_service_and_no_network(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        tab = browser.new_context(viewport={"width": 320, "height": 900}, offline=True).new_page()
        tab.goto((site / "how-to/operate.html").as_uri())
        tab.locator("label[for=__search]").first.click()
        tab.locator("input[name=query]").press_sequentially("KEDA")
        tab.locator(".md-search-result__link[href*='how-to/scaling.html']").first.click()
        tab.wait_for_url("**/how-to/scaling.html*", wait_until="commit")
        assert "KEDA" in tab.locator("article").inner_text()
        browser.close()
