"""The dashboard's pages: what is there, what was decided, and nothing that a name could smuggle in."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from importlib.resources import files
from itertools import groupby
from threading import current_thread
from typing import Any, get_args

import pytest
import vl_convert
from fastapi.testclient import TestClient
from sqlalchemy import event
from starlette.requests import Request

from app.charts.text import duration, probability, use_currency
from app.dashboard import run_page
from app.dashboard.lists import numbers
from app.dashboard.rendering import NAMES, address, cell, error_page, page
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Job, Run, Workload
from app.errors import Forbidden, StewardError
from app.kinds.contract.run_outcome import RunOutcome
from app.kinds.contract.savings import Savings
from app.kinds.contract.views import MOST_STEPS
from app.kinds.registry import KINDS
from app.main import create_app
from app.runs.outcomes import Staleness
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.runs.test_queue import POOL

METRIC = {"name": "iteration_seconds", "unit": "s", "goal": "at_most", "scope": "run"}
VENDORED = {
    "htmx.min.js": "2.0.11",
    "sse.min.js": "2.2.4",
    "pico.min.css": "2.1.1",
}


REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


BUNDLED = [
    "vega",
    "vega-lite",
    "vega-embed",
    "vega-themes",
    "vega-tooltip",
    "d3-array",
    "d3-geo-projection",
    "delaunator",
]
BUNDLED += ["delaunator", "topojson-client", "fast-json-patch", "json-stringify-pretty-compact", "semver"]


class Texts(HTMLParser):
    """Texts, links and definitions of charts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts, self.links, self.charts = list[str](), list[str](), list[Any]()
        self._chart = False
        self.feed(page)

    def handle_data(self, data: str) -> None:
        if self._chart:
            self.charts.append(json.loads(data))
        self.texts.append(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._chart = tag == "script" and dict(attrs) == {"type": "application/json"}
        self.links += [value for name, value in attrs if name == "href" and value]

    def handle_endtag(self, tag: str) -> None:
        self._chart = False


def shown(client: TestClient, path: str = "/") -> Texts:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "can't be shown" not in answer.text
    return Texts(answer.text)


def reported(client: TestClient, workload: str, count: int = 3) -> str:
    run = str(client.post("/runs", json={"workload": workload}).json()["id"])
    for number in range(count):
        assert client.put(f"/runs/{run}/iterations/{number}", json=REPORT).status_code == 201
    return run


def test_an_empty_service_tells_how_to_begin(client: TestClient) -> None:
    picture = shown(client)
    assert {"steward demo", "steward init", "steward run --learn -- python train.py"} <= set(picture.texts)
    for path, words in (("runs", "No run has started yet."), ("jobs", "No job yet"), ("evaluations", "None yet.")):
        assert any(text.startswith(words) for text in shown(client, f"/ui/{path}").texts)


def test_the_first_page_tells_each_workloads_state(client: TestClient, workload: str) -> None:
    run = reported(client, workload)
    picture = shown(client)
    assert {workload, "1–16 GPUs; deadline 30 min", "built-in", "at risk"} <= {*picture.texts}
    assert {f"/ui/workloads/{workload}", f"/ui/runs/{run}", "/docs"} <= set(picture.links)
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    assert not {"Needs attention", f"{workload} has samples and no model"} & set(shown(client).texts)


def test_a_running_run_s_targets_can_be_changed_on_its_page_alone(client: TestClient, workload: str) -> None:
    mine, other = reported(client, workload), reported(client, workload)
    client.patch(f"/runs/{other}", json={"targets": {"iteration_seconds": 77}})
    shown_of = {run: client.get(f"/ui/runs/{run}").text for run in (mine, other)}
    assert 'value="1800"' in shown_of[mine]
    assert 'value="77"' in shown_of[other]
    client.patch(f"/runs/{mine}", json={"state": "finished"})
    assert "targets/iteration_seconds" not in client.get(f"/ui/runs/{mine}").text


def test_a_run_shows_what_was_measured_expected_and_decided(client: TestClient, workload: str) -> None:
    run = reported(client, workload)
    picture = shown(client, f"/ui/runs/{run}")
    reason = client.get(f"/runs/{run}").json()["decision"]["reason"]["text"]
    assert reason in picture.texts
    assert {"3 of 90", "hold", "threshold"} <= set(picture.texts)
    assert "built-in policy" in picture.texts  # the source of its decisions, which has a title that explains it
    assert 'title="No agent is promoted: the built-in policy decided."' in client.get(f"/ui/runs/{run}").text
    _, measured, allocated = picture.charts
    (line,) = [layer for layer in measured["layer"] if layer["mark"]["style"] == "measured"]
    assert [row["value"] for row in line["data"]["values"]] == [31.5, 31.5, 31.5]
    (band,) = [layer for layer in measured["layer"] if layer["mark"]["style"] == "expected"]
    assert [row["iteration"] for row in band["data"]["values"]] == [1, 2]
    assert {row["value"] for row in allocated["layer"][0]["data"]["values"]} == {4}


@pytest.mark.parametrize(("currency", "report"), [("EUR", r"[\d.]+ EUR"), ("£", r"£[\d.]+")])
def test_costs_are_in_the_currency_that_is_set_and_times_say_utc(
    settings: Settings, backend: Database, spec: dict[str, Any], currency: str, report: str
) -> None:
    try:
        client = TestClient(create_app(settings.model_copy(update={"currency": currency}), backend))
        for name in ("resnet18", "resnet50"):
            client.post("/workloads", json={**spec, "name": name})
            publish_model(backend, name)
        texts = [text for text in shown(client, f"/ui/runs/{reported(client, 'resnet50')}").texts if text]
    finally:
        use_currency("$")
    assert re.fullmatch(report, texts[texts.index("cost so far") + 1])
    reasons = [text for text in texts if "remaining cost" in text]
    assert reasons
    assert all(re.search(f"remaining cost {report}(?![\\d.])", text) for text in reasons)
    moments = re.findall(r"\d\d:\d\d:\d\d(.{0,4})", " ".join(texts))
    assert moments
    assert set(moments) == {" UTC"}


def test_ended_runs_are_judged_by_what_they_took(client: TestClient, workload: str) -> None:
    def ended(target: float) -> None:
        start = {"workload": workload, "targets": {"iteration_seconds": target}}
        run = client.post("/runs", json=start).json()["id"]
        for number in range(90):
            client.put(f"/runs/{run}/iterations/{number}", json=REPORT)
        assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200

    ended(90 * 31.5 + 1)
    assert {"Targets met, 7 days", "1/1", "met"} <= set(shown(client).texts)
    ended(90 * 31.5 - 1)
    for path in ("/", f"/ui/workloads/{workload}"):
        assert {"1/2", "met", "missed"} <= set(shown(client, path).texts)


def drawn_as(chart: dict[str, Any], style: str) -> list[dict[str, Any]]:
    """The rows of a chart's layers of a style."""
    layers = [layer for layer in chart["layer"] if layer["mark"]["style"] == style]
    return [row for layer in layers for row in layer["data"]["values"]]


def test_a_deadline_is_held_against_the_projection_until_the_run_ends(
    client: TestClient, workload: str, backend: Database
) -> None:
    publish_model(backend, workload)
    runs = [client.post("/runs", json={"workload": workload}).json()["id"] for _ in range(2)]
    for number in range(6):
        allocation = {"gpus": 4 if number < 3 else 6}
        for run in runs:
            client.put(f"/runs/{run}/iterations/{number}", json=REPORT | {"allocation": allocation})
    client.patch(f"/runs/{runs[1]}", json={"state": "finished"})
    live, over = (shown(client, f"/ui/runs/{run}") for run in runs)
    chart = live.charts[0]
    minutes = [row["value"] for row in drawn_as(chart, "measured")]
    assert minutes == pytest.approx([31.5 * (number + 1) / 60 for number in range(6)])
    ahead = drawn_as(chart, "decided")
    assert [ahead[0]["iteration"], ahead[-1]["iteration"]] == [5, 89]
    assert [ahead[0][part] for part in ("low", "median", "high")] == [minutes[-1]] * 3
    assert all(row["low"] < row["median"] < row["high"] for row in ahead[1:])
    assert [row["median"] for row in ahead] == sorted(row["median"] for row in ahead)
    (change,) = drawn_as(chart, "change")
    assert (change["iteration"], change["change"], bool(change["reason"])) == (2, "4 → 6 GPUs", True)
    assert drawn_as(chart, "target") == [{"target": 30.0}]
    decision = client.get(f"/runs/{runs[0]}").json()["decision"]
    sure = f"{probability(decision['chances']['iteration_seconds'])} likely to meet the deadline"
    assert [text for text in live.texts if text.startswith(sure)]
    assert drawn_as(over.charts[0], "decided") == []
    assert len(drawn_as(over.charts[0], "change")) == 1


def test_long_runs_of_queues_are_seen_from_their_beginning(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(KINDS["workflow"].views), "most", 6)
    client.post("/workloads", json=POOL)
    run = client.post("/runs", json={"workload": "pool"}).json()["id"]
    for number in range(12):
        body: dict[str, object] = {"now": float(number), "delta": number > 0}
        body["queued"] = [{"id": f"t{number}", "processors": 2}]
        if number in (4, 5):  # the sixth report is left out, and with it a task's end
            body["finished"] = [{"id": f"t{number - 4}", "node": "pool-0", "start": number - 4.0, "end": 3.5}]
        answer = client.put(f"/runs/{run}/iterations/{number}", json=body)
        assert answer.status_code == 201, answer.text
    picture = shown(client, f"/ui/runs/{run}")
    bars, _, waiting = picture.charts
    drawn = {row["name"]: (row["start"], row["end"], row["open"]) for row in bars["layer"][0]["data"]["values"]}
    assert drawn["t0"] == (0.0, 3.5, False)
    assert "t1" not in drawn
    rows = waiting["layer"][0]["data"]["values"]
    assert [rows[0]["at"], rows[1]["at"], rows[-1]["at"]] == [0.0, 2.0, 11.0]
    assert rows[-1]["value"] == client.get(f"/runs/{run}").json()["decision"]["waiting"]
    assert any("Every 2th report." in text for text in picture.texts)


def test_what_other_policies_would_have_done_is_told_of_the_whole_run(client: TestClient, workload: str) -> None:
    run = reported(client, workload, 3)
    (drawn,) = shown(client, f"/ui/runs/{run}/others").charts
    rows = drawn["layer"][0]["data"]["values"]
    assert {row["iteration"] for row in rows} == {1, 2, 3}
    last = {row["name"]: f"{row['value']:g} GPUs" for row in rows if row["iteration"] == 3}
    del last["decided"]
    texts = [text for text in shown(client, f"/ui/runs/{run}").texts if text]
    assert {name: texts[texts.index(name) + 1] for name in last} == last


def test_other_policies_are_asked_about_a_queue(client: TestClient) -> None:
    client.post("/workloads", json=POOL)
    run = client.post("/runs", json={"workload": "pool"}).json()["id"]
    queued = [{"id": "long", "processors": 8, "estimate": 90}, {"id": "short", "processors": 8, "estimate": 9}]
    client.put(f"/runs/{run}/iterations/0", json={"now": 1.0, "queued": queued})
    texts = shown(client, f"/ui/runs/{run}").texts
    assert {"long on pool-0", "short on pool-0", "long starts on pool-0"} <= set(texts)


def test_older_decisions_come_when_they_are_asked_for(client: TestClient, workload: str) -> None:
    run, other = reported(client, workload, 60), reported(client, workload, 30)
    assert "Older decisions" in shown(client, f"/ui/runs/{run}").texts
    assert "Older decisions" not in shown(client, f"/ui/runs/{other}").texts
    every = client.get(f"/ui/runs/{other}/decisions?every=true").text
    assert every.count("<tr>") == 25 + 1
    assert "before=5&amp;every=true" in every or "before=5&every=true" in every
    older = client.get(f"/ui/runs/{other}/decisions?before=5&every=true").text
    assert older.count("<tr>") == 5
    assert "Older" not in older


def test_a_part_that_is_fetched_again_has_the_decisions_that_were_opened_up_to_a_bound(
    client: TestClient, workload: str
) -> None:
    longer = {**client.get(f"/workloads/{workload}").json()["spec"], "name": "longer", "iterations": 600}
    client.post("/workloads", json=longer)
    run, other = reported(client, workload, 60), reported(client, "longer", 520)
    rows = client.get(f"/ui/runs/{run}/decisions?before=20&every=true").text
    assert '<input type="hidden" name="every" value="true"><input type="hidden" name="since" value="0">' in rows
    for since, first in ((3, 3), (59, 35)):  # as many as if none was opened, at least
        part = client.get(f"/ui/runs/{run}?part=true&every=true&since={since}").text
        matches = re.findall(r'<td class="number">(\d+)</td>', part)
        assert [int(number) for number in matches] == [*range(59, first - 1, -1)]
        assert f'name="since" value="{first}"' in part
    assert client.get(f"/ui/runs/{other}?part=true&every=true&since=0").text.count('<td class="number">') == 500
    assert 'name="since"' not in client.get(f"/ui/runs/{run}?part=true").text


def test_successive_decisions_for_one_allocation_are_one_row(client: TestClient, workload: str) -> None:
    run = reported(client, workload, 12)
    rows = client.get(f"/ui/runs/{run}/decisions").text
    every = client.get(f"/ui/runs/{run}/decisions?every=true").text
    shown_rows = re.findall(r'<td class="number">([\d–]+)</td><td class="reason"><strong>(.*?)</strong>', rows)
    each = re.findall(r'<td class="number">(\d+)</td><td class="reason"><strong>(.*?)</strong>', every)
    assert [int(number) for number, _ in each] == [*range(11, -1, -1)]
    expected = [(list(some), words) for words, some in groupby(each, key=lambda one: one[1])]
    spans = [(f"{some[-1][0]}–{some[0][0]}" if len(some) > 1 else some[0][0], words) for some, words in expected]
    assert shown_rows == spans
    assert len(spans) < len(each)


@on_both
def test_a_workload_shows_curve_agents_and_map(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=True)
    client.patch(f"/runs/{reported(client, workload)}", json={"state": "finished"})
    evaluation = publish_evaluation(backend, workload, agent=1)
    picture = shown(client, f"/ui/workloads/{workload}")
    assert {"Policy map, GPUs", "iteration seconds by GPUs", "champion", "L2", "Roll back"} <= set(picture.texts)
    assert f"/evaluations/{evaluation}/report" in picture.links
    response, policy = picture.charts
    assert [layer["mark"]["style"] for layer in response["layer"]] == ["expected", "sample", "fitted"]
    medians = [row["median"] for row in response["layer"][2]["data"]["values"]]
    assert medians[:3] == pytest.approx([2, 4, 8], rel=1e-5)
    assert policy["layer"][0]["data"]["values"]


def test_other_kinds_are_told_beside(client: TestClient) -> None:
    client.post("/workloads", json=POOL)
    run = client.post("/runs", json={"workload": "pool"}).json()["id"]
    client.put(f"/runs/{run}/iterations/0", json={"now": 1.0, "queued": [{"id": "a", "processors": 2}]})
    assert "1 pool node of 8 processors" in {text.partition(";")[0] for text in shown(client).texts}
    assert "1 task starts" in shown(client, f"/ui/runs/{run}").texts
    assert "pool" in shown(client, "/ui/workloads/pool").texts


def test_an_example_is_loaded_once_and_being_fitted(client: TestClient) -> None:
    for _ in range(2):
        answer = client.post("/ui/examples/iterative")
        assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/ui/workloads/resnet18")
    assert [job["type"] for job in client.get("/jobs").json()["items"]] == ["fit"]
    assert "8" in shown(client, "/ui/workloads/resnet18").texts
    (job,) = client.get("/jobs").json()["items"]
    assert {"queued", "Cancel"} <= set(shown(client, f"/ui/jobs/{job['id']}").texts)
    assert client.post("/ui/examples/nothing").status_code == 404


def test_an_example_is_not_loaded_by_a_page_of_another_site(client: TestClient) -> None:
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/ui/examples/iterative", headers=headers).status_code == 403
    assert client.get("/workloads").json()["items"] == []


@on_both
def test_every_link_answers(client: TestClient, workload: str, backend: Database) -> None:
    run, ended = reported(client, workload, 1), reported(client, workload, 1)
    assert client.patch(f"/runs/{ended}", json={"state": "finished"}).status_code == 200
    publish_evaluation(backend, workload)
    client.post(f"/workloads/{workload}/samples", content=b"")
    publish_agent(backend, workload)
    pages = ["/", f"/ui/workloads/{workload}", f"/ui/runs/{run}", "/ui/runs", "/ui/jobs", "/ui/evaluations"]
    pages += [f"/ui/{noun}?workload={workload}" for noun in ("runs", "jobs", "evaluations")]
    pages += [f"/ui/workloads/{workload}/agents/1"]
    links = {link for path in pages for link in shown(client, path).links if not link.startswith("#")}
    assert {path: client.get(path).status_code for path in links} == dict.fromkeys(links, 200)


def test_what_is_not_there_is_told_on_a_page(client: TestClient) -> None:
    for path in ("/ui/workloads/none", "/ui/runs/none", "/ui/jobs/none", "/ui/none", "/ui/runs?cursor=none"):
        answer = client.get(path, headers={"accept": "text/html"})
        title = "Not found" if answer.status_code == 404 else "Invalid"
        assert (answer.status_code in (404, 422), f"<h1>{title}" in answer.text) == (True, True)
        assert client.get(path).headers["content-type"] == "application/problem+json"  # who asks for no page
    part = client.get("/ui/runs/none", headers={"accept": "text/html", "hx-request": "true"})
    assert part.headers["content-type"] == "application/problem+json"


def test_who_may_not_see_a_page_can_sign_in_there_and_a_failure_is_said_once() -> None:
    request = Request({"type": "http", "method": "GET", "path": "/ui/runs", "headers": [(b"accept", b"text/html")]})
    forbidden = error_page(request, Forbidden("this key lacks the scope"))
    failed = error_page(request, StewardError("internal error; see the log"))
    assert forbidden is not None
    assert failed is not None
    parts = Texts(bytes(forbidden.body).decode())
    assert ("This key lacks the scope." in parts.texts, "/ui/sign-in" in parts.links) == (True, True)
    texts = Texts(bytes(failed.body).decode()).texts
    assert (texts.count("Internal error"), "See the log." in texts) == (1, True)


def test_what_was_given_is_escaped() -> None:
    evil = "</script><script>alert(1)</script>"
    figure = {"title": evil, "caption": evil, "spec": {"data": evil}, "columns": [evil], "rows": [[evil]]}
    job = {"id": evil, "type": evil, "state": "failed", "workload": evil, "progress": 0.0, "eta_seconds": None}
    job |= {"error": {"detail": evil}, "attempts": 1, "priority": 3, "result": None, "finished_at": None}
    result = {"job": job, "open": False, "figures": [figure], "events": [], "request": {}}
    text = bytes(page("job_live.html", result=result).body).decode()
    assert "<script>alert" not in text
    assert "&lt;/script&gt;" in text
    assert "<dt>Priority</dt><dd>3</dd>" in text


def test_files_are_kept_for_ever_under_their_digests(client: TestClient) -> None:
    for name in NAMES:
        answer = client.get(address(name), headers={"accept-encoding": "identity"})
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
        assert address(name).split("/")[3] == hashlib.sha256(answer.content).hexdigest()[:16]
        with client.stream("GET", address(name), headers={"accept-encoding": "gzip"}) as packed:
            assert gzip.decompress(b"".join(packed.iter_raw())) == answer.content
    assert client.get("/ui/static/0123456789abcdef/vega.js").status_code == 404
    assert client.get(f"/ui/static/{address('vega.js').split('/')[3]}/secrets.txt").status_code == 404


def test_what_comes_from_others_is_as_they_made_it() -> None:
    static = files("app.dashboard") / "static"
    assert (static / "vega.js").read_text() == vl_convert.javascript_bundle()  # type: ignore[call-arg]
    notices = (static / "NOTICES.txt").read_text()
    for name, version in VENDORED.items():
        digest = hashlib.sha256((static / name).read_bytes()).hexdigest()
        assert f"{name} {version} sha256:{digest}" in notices
    words = set(re.split(r"[\s,(]+", notices))
    assert set(BUNDLED) <= words


def test_runs_of_any_length_show_few_reports() -> None:
    for iterations in (0, 1, 299, 300, 301, 100_000):
        chosen, every = numbers(iterations)
        assert len(chosen) <= MOST_STEPS + 1
        assert chosen[-1:] == ([iterations - 1] if iterations else [])
        assert every == max(1, -(-iterations // MOST_STEPS))


def test_amounts_are_told_in_few_digits() -> None:
    assert [duration(seconds) for seconds in (None, 0.2, 59.6, 3700, 90_000)] == [
        "",
        "200 ms",
        "1 min",
        "1 h 01 min",
        "1 d 01 h",
    ]
    assert [cell(value) for value in (None, 1, 0.123456, 123456.7, "a")] == ["–", "1", "0.1235", "123,457", "a"]


def test_a_run_that_is_over_tells_whether_it_met_its_target(client: TestClient, workload: str) -> None:
    for target, verdict in ((3_000, "met: 47 min 15 s"), (2_000, "missed: 47 min 15 s")):
        start = {"workload": workload, "targets": {"iteration_seconds": target}}
        run = client.post("/runs", json=start).json()["id"]
        for number in range(90):
            client.put(f"/runs/{run}/iterations/{number}", json={**REPORT, "allocation": {"gpus": 12}})
        assert {verdict, "12 GPUs"} <= set(shown(client, f"/ui/runs/{run}").texts)


def test_what_happened_to_runs_needs_attention_until_a_later_run_makes_up_for_it(
    client: TestClient, workload: str, spec: dict[str, Any]
) -> None:
    for name in ("quiet", "other"):
        client.post("/workloads", json={**spec, "name": name})
    lost = [reported(client, workload) for _ in range(10)]
    for run in lost:
        client.patch(f"/runs/{run}", json={"state": "failed", "reason": f"exit status 1 of {run}"})
    cancelled = reported(client, "quiet")
    client.patch(f"/runs/{cancelled}", json={"state": "cancelled", "reason": "Ctrl-C"})
    run = client.post("/runs", json={"workload": "other", "targets": {"iteration_seconds": 9}}).json()["id"]
    client.put(f"/runs/{run}/iterations/0", json=REPORT)
    picture = shown(client)
    words = [text for text in picture.texts if text]
    assert words[words.index("Needs attention") + 1 :][:10] == [
        f"10 runs of {workload} failed",
        f"the newest, {lost[-1][:8]}: exit status 1 of {lost[-1]}",
        "To do:",
        "look at the end of its process's output, mend the fault, and start it again.",
        f"Run {run[:8]} of other is at risk",
        "the deadline of 9 s has passed: 31.5 s so far",
        "To do:",
        "raise the deadline or the maximum of GPUs.",
        "Change targets",
        "Workloads",  # nothing else needs attention
    ]
    assert {f"/ui/runs?workload={workload}&outcome=failed", f"/ui/runs/{run}"} <= set(picture.links)
    listed = shown(client, f"/ui/runs?workload={workload}&outcome=failed")
    assert listed.texts.count("failed") == 11  # and the filters
    client.patch(f"/runs/{run}", json={"state": "finished"})
    assert f"Run {run[:8]} of other missed its targets" in shown(client).texts
    assert {"missed", "finished in 31.5 s, 22.5 s after the deadline of 9 s; after 1 of 90 iterations"} <= set(
        shown(client, f"/ui/runs/{run}").texts
    )
    for name in (workload, "other"):
        client.patch(f"/runs/{reported(client, name)}", json={"state": "finished"})
    assert "Needs attention" not in shown(client).texts


@on_both
def test_what_happened_to_runs_goes_by_when_they_ended(client: TestClient, workload: str, spec: dict[str, Any]) -> None:
    client.post("/workloads", json={**spec, "name": "other"})
    began = utc_now()

    def after(days: float) -> None:
        at = began + timedelta(days=days)
        client.app.state.staleness = Staleness(1e9, 1e9, lambda: at)  # type: ignore[attr-defined]

    def ended(run: str, state: str) -> None:
        assert client.patch(f"/runs/{run}", json={"state": state}).status_code == 200

    def attention() -> set[str]:
        return {text for text in shown(client).texts if " failed" in text}

    long, short, beside = reported(client, workload), reported(client, workload), reported(client, "other")
    after(8)
    ended(short, "finished")
    ended(beside, "failed")
    after(8.1)
    ended(long, "failed")  # it began before the one that met its targets, and before a week ago
    assert attention() == {f"Run {long[:8]} of {workload} failed", f"Run {beside[:8]} of other failed"}
    assert ["1/2" in shown(client, f"/ui/workloads/{name}").texts for name in (workload, "other")] == [True, False]
    empty = client.post("/runs", json={"workload": workload}).json()["id"]
    after(8.2)
    ended(empty, "finished")  # it has reported nothing
    assert f"Run {long[:8]} of {workload} failed" in attention()
    good = reported(client, workload)
    after(8.3)
    ended(good, "finished")
    assert attention() == {f"Run {beside[:8]} of other failed"}
    after(15.05)
    assert attention() == set()


def test_a_silent_run_needs_attention(client: TestClient, workload: str) -> None:
    runs = [reported(client, workload) for _ in range(2)]
    at = utc_now() + timedelta(minutes=40)
    client.app.state.staleness = Staleness(10, 300, lambda: at)  # type: ignore[attr-defined]
    texts = shown(client).texts
    assert '<div class="warn"><dt>At risk now</dt>' in client.get("/").text, "stale runs are in it"
    why = texts[texts.index(f"2 runs of {workload} do not report") + 1]
    # its reports came at once: what they took tells nothing
    assert re.fullmatch("the newest, [0-9a-f]{8}: no report for 40 min", why)
    for path in ("/ui/runs", f"/ui/runs/{runs[0]}", f"/ui/workloads/{workload}", "/ui/runs?outcome=stale"):
        assert "stale" in shown(client, path).texts
    assert "End as failed" not in texts  # each of several may be another matter
    client.patch(f"/runs/{runs[1]}", json={"state": "cancelled"})
    (button,) = re.findall(r"<button[^>]*>End as failed</button>", client.get("/").text)
    assert f'hx-patch="/runs/{runs[0]}"' in button
    assert "does not report" in button


def test_a_failed_job_is_retried_from_its_notice(client: TestClient, workload: str, backend: Database) -> None:
    with backend.session() as session:
        owner = session.query(Workload).filter_by(name=workload, tenant="default").one()
        error = {"type": "about:blank", "title": "Failed", "status": 500, "detail": "out of memory"}
        fields = {"error": error, "finished_at": utc_now(), "state": "failed", "request": {}}
        jobs = [Job(tenant="default", type=of, workload_id=owner.id, **fields) for of in ("train", "trial")]
        session.add_all(jobs)
        session.flush()
        train, trial = (job.id for job in jobs)
    page_of_all = client.get("/").text
    assert f'hx-post="/jobs/{train}/retry"' in page_of_all
    assert f"/jobs/{trial}/retry" not in page_of_all  # its study starts another


def test_a_run_stopped_at_a_cap_is_told_from_one_that_failed(client: TestClient, workload: str) -> None:
    capped, failed = (reported(client, workload) for _ in range(2))
    end = {"reason": "$20 are used up", "output": "epoch 3"}
    client.patch(f"/runs/{capped}", json={"state": "cancelled", "outcome": "cap_reached", **end})
    client.patch(f"/runs/{failed}", json={"state": "failed", "reason": "exit status 1", "output": "MemoryError"})
    assert "How it ended" in shown(client, f"/ui/runs/{capped}").texts
    assert "Why it failed" not in shown(client, f"/ui/runs/{capped}").texts
    assert "Why it failed" in shown(client, f"/ui/runs/{failed}").texts
    home = client.get("/").text
    assert "Change targets" not in home  # neither would have been saved by others
    assert fact(client, "Failed runs, 7 days")[:2] == ["1", "+ 1 stopped at a cap"]
    assert ".state.cap_reached" in client.get(address("dashboard.css")).text


def test_each_outcome_can_be_chosen_and_none_is_offered_twice(client: TestClient, workload: str) -> None:
    reported(client, workload)
    every = "&".join(f"outcome={outcome}" for outcome in get_args(RunOutcome))
    assert client.get(f"/runs?{every}").status_code == 200
    texts = shown(client, f"/ui/runs?{every}").texts
    assert [texts.count(word) for word in ("failed", "cancelled", "cap reached")] == [1, 1, 1]
    assert shown(client, "/ui/runs?state=cancelled").texts.count("cancelled") == 2


def test_a_run_without_a_target_is_on_track_and_its_resources_have_their_units(
    client: TestClient, workload: str
) -> None:
    spec = client.get(f"/workloads/{workload}").json()["spec"]
    cpu = {"name": "cpu", "unit": "%", "minimum": 100, "maximum": 400, "step": 100, "price_per_hour": 0.01}
    free = {**spec, "name": "free", "resources": [cpu], "metrics": [METRIC], "features": []}
    client.post("/workloads", json=free).raise_for_status()
    run = client.post("/runs", json={"workload": "free"}).json()["id"]
    fields = {"allocation": {"cpu": 200}, "metrics": {"iteration_seconds": 3}}
    client.put(f"/runs/{run}/iterations/0", json=fields).raise_for_status()
    body = client.get(f"/runs/{run}").json()
    assert body["outcome"] == "on_track"
    for path in (f"/ui/runs/{run}", "/ui/runs?workload=free", "/"):
        assert 'class="state on_track"' in client.get(path).text
    assert "on track" in shown(client, "/ui/runs").texts, "the word of the filter"
    assert "running" not in shown(client, "/ui/runs").texts
    assert f"<strong>cpu {body['decision']['allocation']['cpu']:g} %</strong>" in client.get(f"/ui/runs/{run}").text
    assert 'id="do-recap"' in client.get(f"/ui/runs/{run}").text


def saved(largest: float, fixed: float) -> dict[str, Any]:
    """What a run saved, as it is stored."""

    def about(value: float) -> dict[str, float]:
        return {"value": value, "low": value - 1, "high": value + 1}

    def against(value: float) -> dict[str, Any]:
        current = {"allocation": {"gpus": 8}, "seconds": about(60), "cost": about(1 + value), "meets_targets": 0.9}
        return {**current, "saved": about(value)}

    result = {"iterations": 3, "seconds": 90, "cost": 1, "level": 0.9}
    return {**result, "largest": against(largest), "best_fixed": against(fixed)}


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        (0.4709, "$0.47 (-$0.53 to $1.47)"),
        (-0.4709, "$0.47 lost (-$0.53 to $1.47)"),
        (-2.0, "$2.00 lost ($1.00 to $3.00)"),
        (2.0, "$2.00 ($1.00 to $3.00)"),
    ],
)
def test_bounds_of_a_loss_have_the_sign_of_the_loss(fixed: float, words: str) -> None:
    largest, best_fixed = run_page.saved(Savings.model_validate(saved(5.0, fixed)), {})
    assert (largest.value, best_fixed.value) == ("$5.00 ($4.00 to $6.00)", words)


def test_a_run_whose_decisions_are_not_applied_says_so(client: TestClient, workload: str) -> None:
    for mode, says in (("advise", True), ("control", False)):
        run = client.post("/runs", json={"workload": workload, "mode": mode}).json()["id"]
        page = client.get(f"/ui/runs/{run}").text
        assert ("decisions are recommendations, and are not applied" in page) is says


def fact(client: TestClient, name: str) -> list[str]:
    """The next words after a fact's name."""
    words = [text for text in shown(client).texts if text]
    return words[words.index(name) + 1 :][:3]


@on_both
def test_the_first_page_sums_up_all_runs_of_a_tenant(
    client: TestClient, workload: str, spec: dict[str, Any], backend: Database
) -> None:
    now, month = datetime(2027, 6, 15, 12, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)
    client.app.state.staleness = Staleness(1e9, 1e9, lambda: now)  # type: ignore[attr-defined]
    client.post("/workloads", json={**spec, "name": "other"})
    assert fact(client, "Active runs")[0] == "0"
    assert fact(client, "Targets met, 7 days")[0] == "–"
    assert fact(client, "Saved in June") == ["–", "no finished run yet to compare", "Nothing needs attention"]
    ended = [reported(client, name) for name in (workload, workload, "other", "other", "other")]
    for run, state in zip(ended, ("finished", "finished", "failed", "finished", "finished"), strict=True):
        client.patch(f"/runs/{run}", json={"state": state})
    for run in (reported(client, workload), reported(client, "other")):
        assert client.get(f"/runs/{run}").json()["outcome"] == "at_risk"
    foreign = client.post("/workloads", json={**spec, "name": "foreign"}).json()["id"]
    theirs = reported(client, "foreign")
    client.patch(f"/runs/{theirs}", json={"state": "failed"})
    with backend.session() as session:
        for run, values in (
            (ended[0], {"savings": saved(10, 2), "finished_at": month}),
            (ended[1], {"savings": saved(20, 3), "finished_at": now}),
            (ended[3], {"savings": saved(4, -1), "finished_at": now}),
            (ended[4], {"savings": saved(500, 500), "finished_at": month - timedelta(seconds=1)}),  # of another month
            (theirs, {"savings": saved(900, 900), "tenant": "theirs"}),
        ):
            for name, value in values.items():
                setattr(session.get(Run, run), name, value)
        session.get_one(Workload, foreign).tenant = "theirs"
    assert fact(client, "Active runs")[0] == "2"
    assert fact(client, "At risk now")[0] == "2"
    assert fact(client, "Failed runs, 7 days")[0] == "1"
    assert fact(client, "Targets met, 7 days")[0] == "2/3"
    assert fact(client, "Saved in June")[:2] == [
        "$34.00",
        "against the largest allocation; $4.00 against the best fixed one, in hindsight",
    ]
    texts = shown(client).texts
    assert {"$30.00", "$4.00", "foreign"} & set(texts) == {"$30.00", "$4.00"}
    with backend.session() as session:
        session.get_one(Run, ended[3]).savings = saved(4, -9)
    assert fact(client, "Saved in June")[1].endswith("; $4.00 lost against the best fixed one, in hindsight")


def test_the_first_page_asks_as_few_questions_of_the_database_for_many_workloads_as_for_one(
    client: TestClient, workload: str, spec: dict[str, Any], backend: Database
) -> None:
    requests = list[tuple[str, str]]()

    def ask(*values: Any) -> None:
        requests.append((current_thread().name, values[2]))

    event.listen(backend.engine, "before_cursor_execute", ask)

    def questions() -> int:
        requests.clear()
        shown(client)  # which keys there are is asked for once a second, for all requests, in a thread of its own
        return len([one for thread, one in requests if "SELECT" in one and not thread.startswith("keys")])

    client.patch(f"/runs/{reported(client, workload)}", json={"state": "failed"})
    one = questions()
    for name in map("w{}".format, range(5)):
        client.post("/workloads", json={**spec, "name": name})
        client.patch(f"/runs/{reported(client, name)}", json={"state": "failed"})
        reported(client, name)
    assert (questions(), one <= 13) == (one, True)
