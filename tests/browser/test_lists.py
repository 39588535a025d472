"""Lists, comparison, export, and actions by scope, in a real browser: by mouse, by keyboard and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from app.database.engine import Database
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.keys.conftest import make_key
from tests.browser.conftest import Site
from tests.browser.test_dashboard import PATIENCE, WIDER, drawn, opened
from tests.servers import start_steward

WORKLOAD = "resnet18"


def reported(api: httpx.Client, workload: str, gpus: int, count: int, seconds: float = 20.0) -> str:
    """A run with some reports."""
    run = str(api.post("/runs", json={"workload": workload}).raise_for_status().json()["id"])
    for number in range(count):
        body = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds + number}}
        api.put(f"/runs/{run}/iterations/{number}", json=body).raise_for_status()
    return run


def listed(page: Page) -> list[str]:
    """Ids of the listed runs in order."""
    return [str(row.get_attribute("id")).removeprefix("run-") for row in page.locator("[id^=run-]:is(a)").all()]


@pytest.fixture(scope="module")
def runs(site: Site) -> tuple[str, str, str]:
    """Two live runs and a failed one; the second is the dearest."""
    first, second, third = (reported(site.api, site.workload, gpus, 3) for gpus in (2, 8, 1))
    site.api.patch(f"/runs/{third}", json={"state": "failed", "reason": "exit status 1"}).raise_for_status()
    return first, second, third


def test_runs_are_sorted_searched_and_filtered_with_all_in_the_url(
    browser: Browser, site: Site, runs: tuple[str, str, str]
) -> None:
    first, second, third = runs
    with opened(browser, site) as page:
        page.goto("/ui/runs")
        expect(page.locator("th[aria-sort=descending]")).to_have_text("Started")
        page.get_by_role("link", name="Cost", exact=True).press("Enter")
        page.wait_for_url("**/ui/runs?sort=-cost")
        order = [one for one in listed(page) if one in runs]
        assert order == [second, first, third]
        page.get_by_role("link", name="Cost", exact=True).click()
        page.wait_for_url("**/ui/runs?sort=cost")
        assert [one for one in listed(page) if one in runs] == [third, first, second]
        outcomes = page.get_by_role("navigation", name="By outcome")
        outcomes.get_by_role("link", name="failed", exact=True).click()
        outcomes.get_by_role("link", name="at risk", exact=True).click()
        page.wait_for_url("**/ui/runs?outcome=failed&outcome=at_risk&sort=cost")
        assert third in listed(page)
        page.get_by_placeholder("run or workload").fill(third[:8])
        page.keyboard.press("Enter")
        page.wait_for_url(f"**search={third[:8]}**")
        assert "sort=cost" in page.url
        assert "outcome=failed" in page.url
        assert listed(page) == [third]
        page.reload()  # the URL can be shared
        assert listed(page) == [third]
        page.goto("/ui/jobs?type=train&state=failed&sort=started")
        assert page.locator("[id^=job-]:is(a)").count() == 1


def test_lists_and_comparison_work_without_javascript(browser: Browser, site: Site, runs: tuple[str, str, str]) -> None:
    first, second, _ = runs
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/ui/runs")
    page.get_by_placeholder("run or workload").fill(site.workload[:5])
    page.locator("select[name=sort]").select_option("-cost")
    page.get_by_role("button", name="Show").click()
    assert "sort=-cost" in page.url
    assert next(one for one in listed(page) if one in runs) == second
    for run in (first, second):
        page.get_by_label(f"Compare run {run[:8]}").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_contain_text("Comparison of 2 runs")
    context.close()


def test_a_list_is_seen_to_move_and_keeps_what_is_chosen(browser: Browser, site: Site) -> None:
    with opened(browser, site) as page:
        moving, beside = reported(site.api, site.workload, 4, 1), reported(site.api, site.workload, 4, 1)
        page.goto(f"/ui/runs?search={site.workload}")
        box = page.get_by_label(f"Compare run {moving[:8]}")
        box.check()
        expect(page.get_by_role("button", name="Compare")).to_be_disabled()  # one is not enough
        row = page.locator("tr", has=page.locator(f"#run-{moving}"))
        expect(row).to_contain_text("1 of 90")
        body = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 20}}
        site.api.put(f"/runs/{moving}/iterations/1", json=body).raise_for_status()
        expect(row).to_contain_text("2 of 90")
        expect(box).to_be_checked()
        page.get_by_label(f"Compare run {beside[:8]}").check()
        page.get_by_role("button", name="Compare 2").click()
        page.wait_for_url("**/ui/compare?**")
        drawn(page)
        assert page.locator(".plot svg").count() == page.locator(".plot").count() >= 4


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_new_pages_fit_and_are_accessible(browser: Browser, site: Site, runs: tuple[str, str, str], theme: str) -> None:
    compared = "&".join(f"run={run}" for run in runs)
    paths = [
        "/ui/runs?sort=-cost&outcome=failed&outcome=at_risk",
        f"/ui/compare?{compared}",
        f"/ui/workloads/{site.workload}/spec",
        *(f"/ui/workloads/{name}/spec" for name in site.kinds),
        f"/ui/runs/{runs[2]}",
    ]
    with opened(browser, site, theme) as page:
        for path in paths:
            page.goto(path)
            drawn(page)
            result = Axe().run(page)
            assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in result.response["violations"]] == [], path
            for width in (1440, 320):
                page.set_viewport_size({"width": width, "height": 900})
                assert not page.evaluate(WIDER), (path, width)
            page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.parametrize("width", [1120, 768, 320])
def test_lists_of_runs_and_jobs_are_not_cut_off(
    browser: Browser, site: Site, runs: tuple[str, str, str], width: int
) -> None:
    assert runs
    with opened(browser, site, width=width) as page:
        for path, name in (("/", "Latest runs"), ("/ui/runs", "Runs"), ("/ui/jobs", "Jobs")):
            page.goto(path)
            table = page.get_by_role("region", name=f"Table: {name}", exact=True)
            assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0, path


def test_names_in_a_gantt_chart_are_shown_where_they_fit(browser: Browser, site: Site) -> None:
    run = str(site.api.post("/runs", json={"workload": "queue"}).raise_for_status().json()["id"])
    queued = [{"id": f"nightly-{one}", "processors": 16, "estimate": 60} for one in range(6)]
    body = {"now": 0.0, "delta": True, "queued": queued}
    for number in range(len(queued)):
        decision = site.api.put(f"/runs/{run}/iterations/{number}", json=body).raise_for_status().json()
        (placed,) = decision["placements"][:1]
        at = 100.0 * (number + 1)
        ended = {"id": placed["task"], "node": placed["node"], "start": at - 100, "end": at}
        body = {"now": at, "delta": True, "finished": [ended]}
    shown = "#live figure:first-of-type .mark-text.role-mark text"
    for width, names in ((1440, 5), (320, 0)):
        with opened(browser, site, width=width) as page:
            page.goto(f"/ui/runs/{run}")
            drawn(page)
            fits = [text for text in page.locator(shown).all() if text.get_attribute("opacity") != "0"]
            assert len(fits) == names


def test_why_tasks_are_pending_is_below_their_names_on_a_phone(browser: Browser, site: Site) -> None:
    run = str(site.api.post("/runs", json={"workload": "queue"}).raise_for_status().json()["id"])
    names = [f"nightly-feature-build-of-region-{one:04}" for one in range(9)]
    queued = [{"id": name, "processors": 16, "estimate": 60} for name in names]
    body = {"now": 0.0, "delta": True, "queued": queued}
    site.api.put(f"/runs/{run}/iterations/0", json=body).raise_for_status()
    for width, below in ((1440, False), (320, True)):
        with opened(browser, site, width=width) as page:
            page.goto(f"/ui/runs/{run}")
            drawn(page)
            pending = page.locator(".jobs tbody tr", has_text="pending").filter(has_text=names[-1]).first
            assert pending.locator(".narrow").is_visible() == below
            assert pending.locator(".what").is_visible() != below
            box = pending.bounding_box()
            assert box is not None
            assert box["height"] < 160  # pixels, some six lines


def test_a_list_and_iterations_are_downloaded(browser: Browser, site: Site, runs: tuple[str, str, str]) -> None:
    with opened(browser, site) as page:
        page.goto(f"/ui/runs?search={runs[2][:8]}")
        with page.expect_download() as got:
            page.get_by_role("link", name="CSV", exact=True).click()
        lines = Path(got.value.path()).read_text().splitlines()
        assert (got.value.suggested_filename, len(lines)) == ("runs.csv", 2)
        assert lines[1].startswith(runs[2])
        page.goto(f"/ui/runs/{runs[2]}")
        with page.expect_download() as got:
            page.get_by_role("link", name="Reports as CSV").click()
        assert len(Path(got.value.path()).read_text().splitlines()) == 4


# Actions, on a service with keys of two tenants.


class Keyed(NamedTuple):
    """A service with keys by scope, and one of another tenant; ``api`` has scope admin."""

    url: str
    api: httpx.Client
    keys: dict[str, str]


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """It has no workers."""
    server = start_steward(tmp_path_factory.mktemp("keyed"), "--workers", "0", wait="alive")
    with httpx.Client(base_url=server.url) as api:
        try:
            api.post("/ui/examples/iterative").raise_for_status()
            database = Database(server.database_url)
            publish_model(database, WORKLOAD)
            publish_agent(database, WORKLOAD, promote=True)
            scopes = {scope: ("default", [scope, "read"]) for scope in ("read", "report", "train", "admin")}
            result = {name: make_key(database, *of) for name, of in (scopes | {"other": ("beside", ["admin"])}).items()}
            database.dispose()
            api.headers.update(result["admin"])
            keys = {name: one["Authorization"].removeprefix("Bearer ") for name, one in result.items()}
            yield Keyed(server.url, api, keys)
        finally:
            server.stop()


@contextmanager
def signed_in(browser: Browser, keyed: Keyed, key: str) -> Iterator[Page]:
    """A page of a key's holder, who confirms everything."""
    context = browser.new_context(base_url=keyed.url)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/ui/sign-in")
    page.get_by_label("Key").fill(keyed.keys[key])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{keyed.url}/")
    yield page
    context.close()


def jobs(keyed: Keyed, kind: str) -> list[str]:
    return [one["id"] for one in keyed.api.get(f"/jobs?type={kind}").raise_for_status().json()["items"]]


def test_a_workload_is_fitted_trained_evaluated_and_retargeted(browser: Browser, keyed: Keyed) -> None:
    with signed_in(browser, keyed, "train") as page:
        home = f"/ui/workloads/{WORKLOAD}"
        page.goto(home)
        expect(page.get_by_role("button", name="Delete the workload")).to_have_count(0)
        before = jobs(keyed, "fit")
        page.get_by_role("button", name="Fit a model").dblclick()
        page.wait_for_url("**/ui/jobs/*")
        (new,) = set(jobs(keyed, "fit")) - set(before)  # one, though it was clicked twice
        assert page.url.endswith(new)
        page.goto(home)
        page.get_by_text("Train an agent").click()
        page.get_by_label("Environment steps").fill("5000")
        page.get_by_label("Promote it").uncheck()
        page.get_by_role("button", name="Train", exact=True).click()
        page.wait_for_url("**/ui/jobs/*")
        expect(page.locator("#asked ~ dl")).to_contain_text("5,000")
        assert len(jobs(keyed, "train")) == 1
        page.goto(home)
        page.get_by_text("Evaluate an agent").click()
        page.get_by_label("Highest level").select_option("L1")
        page.get_by_role("button", name="Evaluate", exact=True).click()
        page.wait_for_url("**/ui/jobs/*")
        assert len(jobs(keyed, "evaluate")) == 1
        page.goto(f"{home}/spec")
        page.get_by_label("iteration seconds").fill("-5")
        page.get_by_label("iteration seconds").evaluate("input => input.removeAttribute('min')")
        page.get_by_role("button", name="Change").click()
        expect(page.locator("[data-refused]")).to_contain_text("targets/iteration_seconds")  # as the API says it
        page.get_by_label("iteration seconds").fill("1234")
        page.get_by_role("button", name="Change").click()
        expect(page.locator(".lead")).to_contain_text("Version 2")
        assert keyed.api.get(f"/workloads/{WORKLOAD}").json()["spec"]["metrics"][0]["target"] == 1234


def test_a_job_is_cancelled_retried_and_deleted(browser: Browser, keyed: Keyed) -> None:
    job = keyed.api.post(f"/workloads/{WORKLOAD}/models", json={"seed": 5}).raise_for_status().json()["id"]
    with signed_in(browser, keyed, "train") as page:
        page.goto(f"/ui/jobs/{job}")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".state").first).to_have_text("cancelled")
        expect(page.get_by_role("button", name="Delete")).to_have_count(0)
        page.get_by_role("button", name="Retry").dblclick()
        page.wait_for_url(lambda url: "/ui/jobs/" in url and job not in url)
        expect(page.locator("#asked ~ dl")).to_contain_text("5")
        again = page.url.rpartition("/")[2]
    assert jobs(keyed, "fit")[:2] == [again, job]
    with signed_in(browser, keyed, "admin") as page:
        page.goto(f"/ui/jobs/{job}")
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/ui/jobs")
    assert keyed.api.get(f"/jobs/{job}").status_code == 404


def test_a_notice_has_a_button_for_those_who_may_do_what_it_recommends(browser: Browser, keyed: Keyed) -> None:
    late = keyed.api.post("/runs", json={"workload": WORKLOAD, "targets": {"iteration_seconds": 9}}).json()["id"]
    body = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 30.0}}
    keyed.api.put(f"/runs/{late}/iterations/0", json=body).raise_for_status()
    notice = f"Run {late[:8]} of {WORKLOAD} is at risk"
    for key, least in (("read", 0), ("report", 1)):
        with signed_in(browser, keyed, key) as page:
            one = page.locator(".notices li", has_text=notice)
            expect(one).to_be_visible()
            expect(one.get_by_role("button", name="Change targets")).to_have_count(least)
            if least:
                one.get_by_role("button", name="Change targets").click()
                page.wait_for_url(f"**/ui/runs/{late}#retarget")  # its own target: its workload's doesn't matter
                expect(page.locator("#retarget")).to_be_in_viewport()
                page.locator("#do-recap > summary").click()
                page.locator("[name='caps/cost']").fill("20")
                with page.expect_response(lambda answer: answer.request.method == "PATCH"):
                    page.locator("#recap").click()
                expect(page.locator("[name='caps/cost']")).to_have_value("20")
                page.locator("#do-recap > summary").click()
                page.locator("[name='caps/seconds']").fill("7200")
                with page.expect_response(lambda answer: answer.request.method == "PATCH"):
                    page.locator("#recap").click()
    caps = {"cost": 20.0, "seconds": 7200.0}  # the other stays
    assert keyed.api.get(f"/runs/{late}").json()["start"] == {"targets": {"iteration_seconds": 9.0}, "caps": caps}
    keyed.api.patch(f"/runs/{late}", json={"state": "cancelled"}).raise_for_status()


def test_a_run_is_started_finished_cancelled_and_deleted(browser: Browser, keyed: Keyed) -> None:
    with signed_in(browser, keyed, "report") as page:
        page.goto(f"/ui/workloads/{WORKLOAD}")
        expect(page.get_by_role("button", name="Fit a model")).to_have_count(0)
        page.get_by_text("Start a run").click()
        page.get_by_label("Target of iteration seconds").fill("777")
        page.get_by_role("button", name="Start without a script").click()
        page.wait_for_url("**/ui/runs/*")
        run = page.url.rpartition("/")[2]
        assert keyed.api.get(f"/runs/{run}").json()["start"] == {"targets": {"iteration_seconds": 777.0}}
        beside = reported(keyed.api, WORKLOAD, 4, 2)
        page.get_by_role("button", name="Finish").click()
        expect(page.get_by_role("button", name="Finish")).to_have_count(0)
        assert keyed.api.get(f"/runs/{run}").json()["state"] == "finished"
        page.goto(f"/ui/runs/{beside}")
        keyed.api.patch(f"/runs/{beside}", json={"state": "failed"}).raise_for_status()
        page.goto(f"/ui/runs/{beside}")
        expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    with signed_in(browser, keyed, "read") as page:
        page.goto(f"/ui/runs/{reported(keyed.api, WORKLOAD, 4, 1)}")
        expect(page.locator("#run-actions button")).to_have_count(0)
        expect(page.get_by_role("link", name="Reports as CSV")).to_be_visible()
    with signed_in(browser, keyed, "admin") as page:
        page.goto(f"/ui/runs/{run}")
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/ui/runs")
        expect(page.locator(f"#run-{run}")).to_have_count(0)
    assert keyed.api.get(f"/runs/{run}").status_code == 404


def test_another_tenant_sees_and_changes_nothing(browser: Browser, keyed: Keyed) -> None:
    run = reported(keyed.api, WORKLOAD, 4, 1)
    with signed_in(browser, keyed, "other") as page:
        page.goto(f"/ui/runs?search={run[:8]}")
        expect(page.get_by_text("Nothing matches.")).to_be_visible()
        for path in (f"/ui/runs/{run}", f"/ui/workloads/{WORKLOAD}/spec", f"/ui/compare?run={run}&run={run[::-1]}"):
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 404, path
