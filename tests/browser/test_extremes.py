"""The dashboard in a real browser with what nobody would wish for: hostile names, and very many runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, expect
from sqlalchemy import delete, insert, select

from app.database.base import new_id
from app.database.engine import Database
from app.database.tables import Run
from tests.app.runs.test_queue import POOL
from tests.browser.conftest import Site
from tests.browser.test_dashboard import WIDER, drawn, opened

MANY = 10_000
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"' onmouseover=alert(3) x='",
    "{{ 7 * 7 }}${alert(4)}",
    "datum.open ? alert(5) : 0",
    "=HYPERLINK(alert)",
    "\u202etxet desrever",
    "W" * 200,
    "__proto__",
]


def _queue(site: Site) -> str:
    """A run of tasks with hostile names: some run, some wait, some have ended."""
    name = site.api.post("/workloads", json={**POOL, "name": "hostile"}).raise_for_status().json()["name"]
    run = str(site.api.post("/runs", json={"workload": name}).raise_for_status().json()["id"])
    queued = [{"id": task, "processors": 4, "estimate": 60} for task in HOSTILE]
    answer = site.api.put(f"/runs/{run}/iterations/0", json={"now": 1.0, "queued": queued}).raise_for_status().json()
    one = answer["placements"][0]
    ended = {"id": one["task"], "node": one["node"], "start": 1.0, "end": 5.0}
    body = {"now": 5.0, "delta": True, "finished": [ended]}
    site.api.put(f"/runs/{run}/iterations/1", json=body).raise_for_status()
    reason = {"reason": HOSTILE[0] + HOSTILE[7]}
    site.api.post(f"/workloads/{site.workload}/agents/1/rollback", json=reason).raise_for_status()
    site.api.post(f"/workloads/{site.workload}/agents/1/promote", json=reason).raise_for_status()
    return run


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_hostile_names_are_names(browser: Browser, hostile: str, site: Site, theme: str) -> None:
    with opened(browser, site, theme, width=320) as page:
        requests = list[str]()

        def dismiss(dialog: Dialog) -> None:
            requests.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismiss)
        for path in (f"/ui/runs/{hostile}", "/", "/ui/runs", f"/ui/workloads/{site.workload}"):
            page.goto(path)
            drawn(page)
            for folded in page.locator("details").all():
                folded.evaluate("details => details.open = true")
            assert not page.evaluate(WIDER), path
            assert page.locator("img[src=x], [onmouseover]").count() == 0
            result = Axe().run(page)
            assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in result.response["violations"]] == [], path
        page.goto(f"/ui/runs/{hostile}")
        drawn(page)
        expect(page.locator("#decisions ~ .wide").get_by_text(HOSTILE[0]).first).to_be_attached()
        assert requests == []


def test_ten_thousand_runs_are_as_readable_as_ten(browser: Browser, crowded: Site) -> None:
    with opened(browser, crowded, width=320) as page:
        page.goto("/")
        card = page.locator(".workloads tr", has_text=crowded.workload).first
        expect(card).to_contain_text("10,0")
        page.goto(f"/ui/workloads/{crowded.workload}")
        drawn(page)
        page.get_by_role("button", name="Older runs").click()
        page.wait_for_url("**/ui/runs?workload=*")
        visited = set[str]()
        for _ in range(3):
            rows = [row.get_attribute("id") for row in page.locator("tbody a[id^=run-]").all()]
            assert len(rows) == 50
            assert not visited & set(map(str, rows))
            visited |= set(map(str, rows))
            assert not page.evaluate(WIDER)
            assert len(page.content()) < 100_000
            first = page.locator("tbody a[id^=run-]").first.get_attribute("id")
            page.get_by_role("button", name="Older").press("Enter")
            expect(page.locator(f"#{first}")).to_have_count(0)


@pytest.fixture(scope="module")
def hostile(site: Site) -> str:
    """A run of tasks with hostile names."""
    return _queue(site)


@pytest.fixture(scope="module")
def crowded(site: Site) -> Iterator[Site]:
    """The service with so many runs of its workload more, each like its own; they go, as other tests sort runs."""
    database = Database(site.database_url)
    with database.session() as session:
        run = session.execute(select(Run).where(Run.id == site.run)).scalar_one()
        like = {column.name: getattr(run, column.name) for column in Run.__table__.columns}
        ids = [new_id() for _ in range(MANY)]
        session.execute(insert(Run), [{**like, "id": one} for one in ids])
    yield site
    with database.session() as session:
        for begin in range(0, MANY, 500):
            session.execute(delete(Run).where(Run.id.in_(ids[begin : begin + 500])))
    database.dispose()
