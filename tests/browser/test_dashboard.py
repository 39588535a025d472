"""The dashboard in a real browser: every page, both themes and widths; for eyes, keyboards and screen readers; live."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route, expect

from app.kinds.registry import KINDS
from tests.browser.conftest import Site

WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
UNDER = """() => [...document.querySelectorAll("#live .cursor")].map((line) => {
  const ticks = [...line.closest("figure").querySelectorAll(".role-axis-label text")].slice(0, 99)
    .map((one) => [Number(one.textContent), one.getBoundingClientRect()])
    .filter(([value, box], at, all) => Math.abs(box.top - all[0][1].top) < 2);
  const middle = ([, box]) => box.left + box.width / 2;
  const [first, second] = [ticks[1], ticks[2]]; // the first one is moved into the picture
  const each = (middle(second) - middle(first)) / (second[0] - first[0]);
  return Math.round(first[0] + (line.getBoundingClientRect().left - middle(first)) / each);
})"""
"""The iterations on which the cursors of all charts stand, by the labels of their axes."""
PATIENCE = 60_000  # milliseconds, on a slow machine
expect.set_options(timeout=PATIENCE)


def drawn(page: Page) -> None:
    """Wait until all charts of a page are there."""
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0)


def complains(message: ConsoleMessage) -> bool:
    return message.type in ("error", "warning") and not message.location["url"].endswith("/ui/none")


@contextmanager
def opened(browser: Browser, site: Site, theme: str = "light", width: int = 1440) -> Iterator[Page]:
    """A page; whatever it complains of fails the test, but that a page that is not there has status 404."""
    context = browser.new_context(base_url=site.url, viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text) if complains(message) else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def pages(site: Site) -> list[str]:
    return [
        "/",
        f"/ui/workloads/{site.workload}",
        f"/ui/workloads/{site.workload}/agents/1",
        *(f"/ui/workloads/{name}" for name in site.kinds),
        "/ui/runs",
        f"/ui/runs?workload={site.workload}&outcome=on_track",
        f"/ui/runs/{site.run}",
        "/ui/jobs",
        f"/ui/jobs/{site.job}",
        f"/ui/jobs/{site.failed}",
        "/ui/none",
        "/ui/evaluations",
        "/ui/sign-in",
        *(f"/ui/runs/{run}" for run in site.others),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_whole_fits_and_is_accessible(browser: Browser, site: Site, theme: str) -> None:
    with opened(browser, site, theme) as page:
        for path in pages(site):
            page.goto(path)
            drawn(page)
            assert page.locator(".plot").count() == page.locator(".plot svg").count(), path
            result = Axe().run(page)
            assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in result.response["violations"]] == [], path
            for width in (1440, 768, 320):
                page.set_viewport_size({"width": width, "height": 900})
                assert not page.evaluate(WIDER), (path, width)
            page.set_viewport_size({"width": 1440, "height": 900})


def test_a_run_is_seen_to_go_on(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.goto(f"/ui/runs/{site.run}")
        expect(page.locator("#state")).to_contain_text("30 of 90")
        page.locator("#figure-1 summary").click()
        site.report(30)
        expect(page.locator("#state")).to_contain_text("31 of 90")
        expect(page.locator("#figure-1")).to_have_attribute("open", "")  # what was opened stays so
        expect(page.locator("[data-live]")).to_have_count(1)
        page.set_viewport_size({"width": 320, "height": 900})
        outcome, finish = (page.locator(one).bounding_box() for one in ("#state dl", "#finish"))
        assert outcome is not None
        assert finish is not None
        assert outcome["y"] < finish["y"]  # what happened stands above what can be done
        page.set_viewport_size({"width": 1440, "height": 900})
        drawn(page)
        assert page.locator("#live .plot svg").count() == 3
        page.locator("#hindsight").scroll_into_view_if_needed()
        expect(page.get_by_text("GPUs by policy", exact=True)).to_be_visible()


def test_a_workloads_tables_stay_when_they_are_fetched_again(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.goto(f"/ui/workloads/{site.workload}")
        with page.expect_response(lambda answer: "/ui/runs?" in answer.url and "part=true" in answer.url):
            expect(page.locator(f"#run-{site.run}")).to_be_visible()
        with page.expect_response(lambda answer: "/ui/jobs?" in answer.url and "part=true" in answer.url):
            page.wait_for_timeout(300)  # until the first answer is shown
        page.wait_for_timeout(300)
        expect(page.locator(f"#run-{site.run}")).to_be_visible()
        expect(page.locator(f"#job-{site.job}")).to_be_visible()
        expect(page.locator("[data-live]:visible")).to_have_count(1)


def test_pages_that_update_themselves_say_when_they_did_and_whether_they_can(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url)  # that requests fail is its subject
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    mark = page.locator("[data-live]")
    expect(mark).to_have_text(re.compile(r"live · updated \d+ s ago"))
    page.route("**/*", lambda route: route.abort())
    expect(mark).to_have_text(re.compile(r"not connected · updated \d+ s ago"))
    page.unroute("**/*")
    expect(mark).to_have_text(re.compile(r"live · updated \d s ago"))
    page.goto(f"/ui/jobs/{site.failed}")
    expect(page.locator("#log")).to_be_visible()
    expect(mark).to_have_count(0)
    context.close()


def at(page: Page, plot: int, across: float, down: float = 0.5) -> tuple[float, float]:
    """A place in one of a page's plots, by shares of its width and height."""
    nth = page.locator("#live .plot").nth(plot)
    nth.scroll_into_view_if_needed()
    box = nth.bounding_box()
    assert box is not None
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def end_of(line: Locator) -> float:
    """Where a curve ends, in pixels of its plot."""
    return float((line.get_attribute("d") or "").rpartition("L")[2].split(",")[0])


def settled(page: Page, run: str) -> None:
    """Open a run's page, and wait until what its first event swaps is drawn."""
    with page.expect_response(lambda answer: "part=true" in answer.url):
        page.goto(f"/ui/runs/{run}")
    drawn(page)
    page.wait_for_timeout(500)
    drawn(page)


def test_a_chart_answers_wherever_the_pointer_is_and_its_neighbours_follow(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        settled(page, site.run)
        tip = page.locator("#tip")
        for plot, across in enumerate((0.2, 0.5, 0.5)):  # elapsed, measured, allocated: far from any mark
            page.mouse.move(*at(page, plot, across, 0.8))
            expect(tip).to_be_visible()
            expect(tip).to_contain_text("iteration 1")  # 10 to 19
            expect(page.locator(".cursor:visible")).to_have_count(3)
            there = page.locator("#tip strong").inner_text().split(" · ")[0].removeprefix("iteration ")
            assert page.evaluate(UNDER) == [int(there)] * 3
        expect(tip).to_contain_text("GPUs")
        page.mouse.move(*at(page, 1, 0.5))
        expect(tip).to_contain_text("iteration seconds (s)")
        page.mouse.move(5, 5)
        expect(tip).to_be_hidden()
        expect(page.locator(".cursor:visible")).to_have_count(0)


def test_a_change_of_the_allocation_tells_its_reason(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        run = site.api.post("/runs", json={"workload": site.workload}).raise_for_status().json()["id"]
        for number, gpus in enumerate((2, 2, 2, 6, 6, 6)):
            body = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": 30.0}}
            site.api.put(f"/runs/{run}/iterations/{number}", json=body).raise_for_status()
        settled(page, run)
        mark = page.locator("#live .plot").first.locator("g.mark-symbol path").last
        box = mark.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator("#tip")).to_contain_text("2 → 6 GPUs")
        expect(page.locator("#tip")).to_contain_text("reason")


def test_a_drag_zooms_all_charts_of_an_axis_and_a_double_click_resets_them(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        settled(page, site.run)
        line = page.locator("#live .plot").nth(1).locator("g.mark-line path").first  # drawn beyond the plot when zoomed
        whole = end_of(line)
        page.mouse.move(*at(page, 0, 0.1))
        page.mouse.down()
        page.mouse.move(*at(page, 0, 0.2), steps=4)
        expect(page.locator(".drag:visible")).to_have_count(1)
        page.mouse.up()
        expect(page.locator("[data-zoomed=true]")).to_have_count(3)
        assert end_of(line) > 2 * whole
        page.locator("[data-theme-switch]").click()  # drawn anew, it stays
        expect(page.locator("[data-whole]:visible")).to_have_count(3)
        page.mouse.dblclick(*at(page, 1, 0.5))
        expect(page.locator("[data-zoomed=true]")).to_have_count(0)
        assert end_of(line) == pytest.approx(whole, abs=9)
        page.mouse.move(*at(page, 2, 0.4))
        page.mouse.down()
        page.mouse.move(*at(page, 2, 0.8), steps=4)
        page.mouse.up()
        page.get_by_role("button", name="Reset zoom").first.click()
        expect(page.locator("[data-whole]:visible")).to_have_count(0)


def test_a_chart_that_is_drawn_anew_while_zoomed_has_its_own_ticks_again(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        settled(page, queue_of(site))
        ticks = page.locator("#live .plot").last.locator("g.role-axis-label text")
        whole = ticks.all_text_contents()
        page.mouse.move(*at(page, 1, 0.5, 0.5))
        expect(page.locator("#tip strong")).to_contain_text("at 2026-01-01 ")
        page.mouse.move(*at(page, 1, 0.1))
        page.mouse.down()
        page.mouse.move(*at(page, 1, 0.3), steps=4)
        page.mouse.up()
        expect(page.locator("[data-zoomed=true]")).to_have_count(3)
        assert ticks.all_text_contents() != whole
        page.evaluate("document.querySelectorAll('#live .plot svg').forEach((svg) => (svg.dataset.before = ''))")
        page.locator("[data-theme-switch]").click()
        expect(page.locator("svg[data-before]")).to_have_count(0)
        expect(page.locator("[data-whole]:visible")).to_have_count(3)
        assert ticks.all_text_contents() != whole
        page.get_by_role("button", name="Reset zoom").first.click()
        expect(page.locator("[data-whole]:visible")).to_have_count(0)
        assert ticks.all_text_contents() == whole


def queue_of(site: Site) -> str:
    """A run of two tasks, whose clock counts from 1970."""
    name = str(KINDS["workflow"].example.spec["name"])
    run = str(site.api.post("/runs", json={"workload": name}).raise_for_status().json()["id"])
    for number in range(8):
        tasks = [{"id": f"t{number}-{task}", "processors": 1} for task in range(2)]
        body = {"now": 1_767_268_800 + 900 * number, "delta": number > 0, "queued": tasks}
        site.api.put(f"/runs/{run}/iterations/{number}", json=body).raise_for_status()
    return run


def test_a_finger_sees_what_a_pointer_sees(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, viewport={"width": 320, "height": 700}, has_touch=True)
    page = context.new_page()
    settled(page, site.run)
    page.touchscreen.tap(*at(page, 1, 0.6))
    expect(page.locator("#tip")).to_contain_text("iteration seconds (s)")
    box = page.locator("#tip").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 320
    assert not page.evaluate(WIDER)
    context.close()


def test_every_chart_of_every_kind_answers(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        for run in site.others:
            settled(page, run)
            for plot in range(page.locator("#live .plot").count()):
                page.mouse.move(*at(page, plot, 0.6, 0.4))
                expect(page.locator("#tip")).to_be_visible()


def test_the_keyboard_and_the_switch_of_themes_will_do(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.goto("/")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        card = page.locator(".workloads a", has_text=site.workload)
        for _ in range(40):
            page.keyboard.press("Tab")
            if card.evaluate("link => link === document.activeElement"):
                break
        expect(card).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/ui/workloads/{site.workload}")
        page.locator("[data-theme-switch]").press("Enter")
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.reload()
        assert page.locator("html").get_attribute("data-theme") == "dark"


FOCUS = "one => { one.focus({ preventScroll: true }); one.dataset.before = ''; return one.isConnected }"


@pytest.mark.parametrize(
    ("path", "part", "chosen"),
    [
        ("/", "#home", ("[href^='/ui/workloads/']", "[role=region]")),
        ("/ui/runs/{run}", "#live", ("summary", "button", "[role=region]")),
    ],
)
def test_what_has_the_focus_keeps_it_when_its_part_of_the_page_is_fetched_again(
    browser: Browser, site: Site, path: str, part: str, chosen: tuple[str, ...]
) -> None:
    with opened(browser, site) as page:
        page.set_viewport_size({"width": 1440, "height": 200})  # most of it is out of sight, and stays so
        page.goto(path.format(run=site.run))
        drawn(page)
        for selector in chosen:
            one = page.locator(part).locator(f"{selector} >> visible=true").last
            while not one.evaluate(FOCUS):  # it was replaced just then
                pass
            page.evaluate(f"htmx.trigger('{part}', 'sse:changed')")  # where it is not fetched again every five seconds
            expect(page.locator("[data-before]")).to_have_count(0)
            expect(page.locator(part).locator(f"{selector} >> visible=true").last).to_be_focused()
            assert page.evaluate("scrollY") == 0


def test_older_decisions_are_added_to_those_of_a_run(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        settled(page, site.run)
        page.get_by_role("button", name="Show every decision").click()
        page.get_by_role("button", name="Older decisions").click()
        expect(page.get_by_role("button", name="Older decisions")).to_have_count(0)
        expect(page.locator("#every-decision tr").last.locator("td").first).to_have_text("0")


def test_decisions_that_a_reader_has_opened_stay_when_a_report_comes(browser: Browser, site: Site) -> None:
    run = str(site.api.post("/runs", json={"workload": site.workload}).raise_for_status().json()["id"])

    def report(number: int) -> None:
        body = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 30.0}}
        site.api.put(f"/runs/{run}/iterations/{number}", json=body).raise_for_status()

    for number in range(55):
        report(number)
    with opened(browser, site) as page:
        settled(page, run)
        rows = page.locator("#every-decision tr")
        first, last = (rows.nth(at).locator("td").first for at in (0, -1))
        page.get_by_role("button", name="Show every decision").click()
        page.get_by_role("button", name="Older decisions").click()
        expect(rows).to_have_count(51)  # two times 25, and the button
        for number in (55, 56):  # what the first one shows is asked for by the second one
            report(number)
            expect(first).to_have_text(str(number))
            expect(rows).to_have_count(number - 3)
        page.get_by_role("button", name="Older decisions").click()
        expect(last).to_have_text("0")
        report(57)
        expect(first).to_have_text("57")
        expect(rows).to_have_count(58)
        page.get_by_role("button", name="Show changes only").press("Enter")
        expect(page.get_by_role("button", name="Show every decision")).to_be_focused()
        expect(rows).not_to_have_count(58)
        report(58)
        expect(first).to_have_text(re.compile(r"\d+–58"))
        page.get_by_role("button", name="Older decisions").click()
        expect(page.get_by_role("button", name="Older decisions")).to_have_count(0)
        report(59)
        expect(first).to_have_text(re.compile(r"\d+–59"))
        expect(last).to_have_text(re.compile(r"^0(–\d+)?$"))
    site.api.patch(f"/runs/{run}", json={"state": "cancelled"}).raise_for_status()


def test_decisions_stay_opened_when_an_update_comes_that_was_requested_before(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        settled(page, site.run)
        rows, waiting = page.locator("#every-decision tr"), list[Route]()
        folded = rows.count()
        page.route("**/ui/runs/*?part=true*", lambda route: waiting.append(route))
        for button, more in (("Show every decision", True), ("Show changes only", False)):
            with page.expect_request(lambda request: "part=true" in request.url):
                page.evaluate("htmx.trigger('#live', 'sse:changed')")
            page.get_by_role("button", name=button).click()
            expect(page.get_by_role("button", name=button)).to_have_count(0)
            assert (rows.count() > folded) is more
            with page.expect_request(lambda request: "part=true" in request.url) as again:
                waiting.pop().continue_()
            assert ("every=true" in again.value.url) is more
            assert (rows.count() > folded) is more
            with page.expect_response(lambda answer: "part=true" in answer.url):
                waiting.pop().continue_()
            page.wait_for_timeout(300)
            assert (rows.count() > folded) is more


def test_the_api_is_documented_in_the_pages_theme_on_narrow_screens_with_a_way_back(
    browser: Browser, site: Site
) -> None:
    grounds = list[str]()
    for theme in ("light", "dark"):
        with opened(browser, site, theme, width=320) as page:
            page.goto("/docs")
            expect(page.get_by_text("Register a workload", exact=True)).to_be_visible()
            assert not page.evaluate(WIDER)
            grounds.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
            page.get_by_role("navigation", name="Main").get_by_role("link").click()
            page.wait_for_url("**/")
            page.locator("[data-theme-switch]").click()  # the other theme holds there, too
            page.goto("/docs")
            expect(page.locator("html")).to_have_class("" if theme == "dark" else "dark-mode")
    assert grounds == ["rgba(0, 0, 0, 0)", "rgb(28, 32, 34)"]


def test_a_workload_is_seen_to_change(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.goto(f"/ui/workloads/{site.workload}")
        drawn(page)
        page.locator("#response-1 summary").click()
        begun = site.api.post("/runs", json={"workload": site.workload}).raise_for_status().json()["id"]
        expect(page.locator(f"#run-{begun}")).to_be_visible()
        expect(page.locator("#response-1")).to_have_attribute("open", "")
        drawn(page)
        page.locator("#agents ~ .wide a").first.click()
        expect(page.locator("h1")).to_contain_text("Agent 1")


def test_a_list_is_chosen_from_by_keyboard(browser: Browser, site: Site) -> None:
    with opened(browser, site, width=320) as page:
        page.goto("/ui/runs")
        outcomes = page.get_by_role("navigation", name="By outcome")
        outcomes.locator("a[aria-current]").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/runs?outcome=on_track")
        expect(outcomes.locator("a[aria-current]")).to_have_text("on track")
        page.locator(".wide").focus()  # tables that are wider than the screen are scrolled by keys
        for _ in range(8):  # past the heads that sort, and the box of the first run
            page.keyboard.press("Tab")
            if (page.evaluate("document.activeElement.pathname") or "").startswith("/ui/runs/"):
                break
        assert page.evaluate("document.activeElement.pathname").startswith("/ui/runs/")


def test_an_agent_is_rolled_back_and_promoted_and_a_job_cancelled(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"/ui/workloads/{site.workload}")
        for name in ("Roll back", "Promote"):
            with page.expect_event("load"):  # each fetches the page again, which would lose what is clicked meanwhile
                page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name="Roll back")).to_be_visible()
        result = [
            one["reason"] for one in site.api.get(f"/workloads/{site.workload}/agents/promotions").json()["items"]
        ]
        assert result[:2] == ["promoted by request", "rolled back from agent 1"]
        page.goto(f"/ui/jobs/{site.job}")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".facts .state")).to_have_text("cancelled")


def test_a_button_whose_request_is_on_its_way_stays_though_its_table_is_fetched_again(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        waiting: list[Route] = []
        page.route("**/agents/*/*", lambda route: waiting.append(route))
        page.goto(f"/ui/workloads/{site.workload}")
        page.evaluate("addEventListener('click', ({ target }) => { target.dataset.pressed = true }, true)")
        page.get_by_role("button", name=re.compile("^(Roll back|Promote)$")).first.click()
        with page.expect_response(lambda answer: answer.url.endswith(f"/ui/workloads/{site.workload}")) as fetched:
            page.evaluate("htmx.trigger('#live', 'sse:changed')")
        fetched.value.finished()
        expect(page.locator("[data-pressed]")).to_be_disabled()
        with page.expect_event("load"):
            waiting[0].fulfill(json={})
        expect(page.locator("[data-pressed]")).to_have_count(0)


def test_an_example_is_loaded_in_one_click(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        page.goto("/")
        page.get_by_text("Add a workload").click()
        page.get_by_role("button", name="(workflow)").click()
        page.wait_for_url("**/ui/workloads/queue")
        expect(page.locator("h1")).to_contain_text("queue")
        expect(page.locator(".facts")).to_contain_text("Samples1")
