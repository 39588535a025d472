"""What a service has stored, read back as objects and tables: two workloads, two runs of each, two agents."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client import stored

from app.database.engine import Database
from tests.app.domain_models.published import publish_agent, publish_model
from tests.batched import SPEC
from tests.clients.test_run import Handler, forwarded, through

__all__ = ["forwarded"]

URL = "http://steward"


@pytest.fixture
def runs(client: TestClient, forwarded: Handler) -> dict[str, list[str]]:
    """Ids of two runs by workload: the first has finished after two iterations, the second goes on after one."""
    parts = dict[str, list[str]]()
    for name in ("resnet18", "my-job"):
        assert client.post("/workloads", json=SPEC | {"name": name}).status_code == 201
        ids = parts[name] = []
        for count in (2, 1):
            run = steward.Run(through(forwarded), name).start()
            ids.append(run.id)
            for iteration in range(count):
                used = {"gpus": 2.0 + iteration}
                run.report(iteration, used, {"iteration_seconds": 20.5 + iteration}, {"batch": 64})
            if count == 2:
                run.finish()
    return parts


@pytest.fixture
def service(forwarded: Handler) -> steward.Steward:
    return steward.Steward(through(forwarded))


def test_runs_are_rows_newest_first_and_can_be_narrowed(
    service: steward.Steward, runs: dict[str, list[str]], forwarded: Handler
) -> None:
    rows = service.runs()
    assert [row["id"] for row in rows] == [*reversed(runs["my-job"]), *reversed(runs["resnet18"])]
    assert {row["workload"] for row in steward.runs("my-job", through(forwarded))} == {"my-job"}
    assert [row["id"] for row in service.runs(state="finished")] == [runs["my-job"][0], runs["resnet18"][0]]
    assert [row["id"] for row in service.workloads["resnet18"].runs(state="running")] == [runs["resnet18"][1]]
    assert isinstance(rows[0]["created_at"], datetime)
    assert rows[0]["url"] == f"{URL}/ui/runs/{rows[0]['id']}"
    with pytest.raises(steward.StewardError, match="met"):
        service.runs(outcome="good")
    with pytest.raises(ValueError, match="limit must be at least 1"):
        service.runs(limit=0)


def test_long_lists_are_read_page_by_page(
    service: steward.Steward, runs: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [row["id"] for row in service.runs()]
    monkeypatch.setattr(stored, "PAGE_ROWS", 3)
    assert [row["id"] for row in service.runs(limit=None)] == whole
    for limit in (1, 3, 4, 9):
        assert [row["id"] for row in service.runs(limit=limit)] == whole[:limit]


def test_a_history_has_what_was_reported_and_decided(service: steward.Steward, runs: dict[str, list[str]]) -> None:
    first, second = (service.run(run) for run in runs["resnet18"])
    rows = first.history()
    assert [row["iteration"] for row in rows] == [0, 1]
    assert [row["allocation.gpus"] for row in rows] == [2.0, 3.0]
    assert [row["metric.iteration_seconds"] for row in rows] == [20.5, 21.5]
    assert [row["feature.batch"] for row in rows] == [64, 64]
    assert all(row["decision.source"] and row["decision.reason"] for row in rows)
    assert rows[1]["decision.allocation.gpus"] == first.decision["allocation"]["gpus"]
    assert len(second.history()) == 1
    for frame in (rows.to_pandas(), rows.to_polars()):
        assert list(frame.columns) == rows.columns
        assert list(frame["metric.iteration_seconds"]) == [20.5, 21.5]
    assert isinstance(rows.to_pandas(), pd.DataFrame)
    assert isinstance(rows.to_polars(), pl.DataFrame)
    assert pd.DataFrame(rows).shape == (2, len(rows.columns))  # a list of dictionaries is what libraries take


def test_a_live_run_and_a_loop_have_a_history_also_after_their_end(
    client: TestClient, runs: dict[str, list[str]], forwarded: Handler
) -> None:
    run = steward.Run(through(forwarded), "resnet18")
    loop = steward.run("my-job", through(forwarded))
    for unstarted in (run, loop):
        with pytest.raises(RuntimeError, match="not been started"):
            unstarted.history()
    with run:
        run.report(0, {"gpus": 4}, {"iteration_seconds": 9.0}, {"batch": 8})
        assert len(run.history()) == 1
    with loop:
        for epoch in loop.epochs(2):
            epoch.describe(batch=8)
    assert [row["allocation.gpus"] for row in run.history()] == [4]
    assert [row["iteration"] for row in loop.history()] == [0, 1]


def test_a_frame_without_its_library_is_an_error_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = stored.Rows([{"a": 1}, {"b": 2.5}])
    assert rows == [{"a": 1, "b": None}, {"a": None, "b": 2.5}]
    for name, convert in (("pandas", rows.to_pandas), ("polars", rows.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"{name} is not installed: pip install {name}; the rows are a list"):
            convert()


def test_numbers_of_both_kinds_make_one_column() -> None:
    rows = stored.Rows([{"x": 1, "y": [1]}, {"x": 2.5, "y": None}])
    assert rows.to_polars()["x"].to_list() == [1.0, 2.5]
    assert repr(rows) == "Rows(2 rows: x, y)"


def test_objects_say_what_they_are_and_where_their_page_is(
    service: steward.Steward, runs: dict[str, list[str]], forwarded: Handler, client: TestClient, database: Database
) -> None:
    live, over = service.run(runs["my-job"][1]), service.run(runs["my-job"][0])
    page = f"{URL}/ui/runs/{live.id}"
    assert repr(live) == f"StoredRun('{live.id}', workload='my-job', outcome='on_track', iterations=1, url='{page}')"
    assert repr(service.workloads["my-job"]) == f"Workload('my-job', kind='iterative', url='{URL}/ui/workloads/my-job')"
    assert repr(service) == f"Steward(url='{URL}')"
    assert repr(over) != repr(live)
    run = steward.Run(through(forwarded), "my-job")
    assert repr(run) == f"Run(workload='my-job', state='not started', url='{URL}')"
    with run:
        assert repr(run) == (
            f"Run('{run.id}', workload='my-job', state='running', iteration=0, url='{URL}/ui/runs/{run.id}')"
        )
    assert "state='completed'" in repr(run)
    loop = steward.run("my-job", through(forwarded))
    with loop:
        assert repr(loop) == f"EpochRun('{loop.id}', workload='my-job', iteration=0, url='{URL}/ui/runs/{loop.id}')"
    assert (loop.outcome, "outcome='completed'" in repr(loop)) == ("completed", True)
    client.post("/workloads/my-job/samples", json={"samples": [sample(1), sample(2)]})
    for version in (1, 2):
        job = steward.fit("my-job", through(forwarded), seed=version)
        state = "type='fit', workload='my-job', state='queued', progress=0.0"
        assert repr(job) == f"Job('{job.id}', {state}, url='{URL}/ui/jobs/{job.id}')"
        assert repr(service.job(job.id)) == repr(job)
    assert {row["type"] for row in service.jobs("my-job")} == {"fit"}
    assert service.jobs("resnet18") == []


def test_agents_say_which_they_are(service: steward.Steward, runs: dict[str, list[str]], database: Database) -> None:
    for name in runs:
        publish_model(database, name)
        for _ in range(2 if name == "my-job" else 1):
            publish_agent(database, name)
    agents = service.workloads["my-job"].agents()
    assert sorted(agent.version for agent in agents) == [1, 2]
    (only,) = service.workloads.resnet18.agents()
    page = f"{URL}/ui/workloads/resnet18/agents/1"
    algorithm, champion = only.algorithm, only.champion
    text = f"workload='resnet18', algorithm={algorithm!r}, champion={champion!r}"
    assert repr(only) == f"Agent('1', {text}, url='{page}')"
    assert only.refresh().report["reason"]
    assert {"report", "champion"} <= set(dir(only))


def sample(number: int) -> dict[str, Any]:
    report = {"allocation": {"gpus": number}, "metrics": {"iteration_seconds": 9.0}, "features": {"batch": 8}}
    return {"execution": f"run-{number}", "reports": [report]}


def test_html_is_escaped(service: steward.Steward, runs: dict[str, list[str]]) -> None:
    run = service.run(runs["resnet18"][0])
    assert run._repr_html_().startswith(f'<b>StoredRun</b> <a href="{run.url}">{run.id}</a> (workload: resnet18, ')
    evil = stored.StoredRun(service, '/runs/"><script>', run.members | {"id": "<i>", "workload": "<script>&"})
    html = evil._repr_html_() + stored.Rows([{"<th>": "<td>", "x": 1.23456}] * 40)._repr_html_()
    for tag in ("<script>", "<i>", '""', "<td><td>", "<th><th>"):
        assert tag not in html
    assert "&lt;script&gt;&amp;" in html
    assert "10 more rows" in html


def test_completion_lists_members_and_names(service: steward.Steward, runs: dict[str, list[str]]) -> None:
    assert sorted(service.workloads._ipython_key_completions_()) == ["my-job", "resnet18"] == sorted(service.workloads)
    assert {"resnet18", "keys"} <= set(dir(service.workloads))
    assert "my-job" not in dir(service.workloads)  # no attribute can be called so
    workload = service.workloads.resnet18
    assert {"champion", "spec", "runs", "agents", "url", "refresh"} <= set(dir(workload))
    assert not [name for name in dir(workload) if name.startswith("_")]
    assert workload.spec["name"] == "resnet18"
    assert workload.agents() == []
    run = service.run(runs["resnet18"][1])
    assert {"outcome", "history"} <= set(dir(run))
    assert set(steward.__all__) == set(dir(steward))
    with pytest.raises(AttributeError, match="StoredRun has no 'outcom'; it has id, workload"):
        run.outcom  # noqa: B018
    with pytest.raises(AttributeError, match="no workload 'resnet'"):
        service.workloads.resnet  # noqa: B018
    with pytest.raises(KeyError, match=r"no workload 'resnet' at http://steward; registered: .*my-job"):
        service.workloads["resnet"]


def test_a_run_is_read_again(service: steward.Steward, runs: dict[str, list[str]], client: TestClient) -> None:
    run = service.run(runs["resnet18"][1])
    client.patch(f"/runs/{run.id}", json={"state": "cancelled"})
    assert run.state == "running"
    assert run.refresh().state == "cancelled"
    assert isinstance(run.finished_at, datetime)


def test_a_prompt_is_not_blocked_by_a_service_that_is_away() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    service = steward.Steward(through(away))
    assert "keys" in dir(service.workloads)
    assert repr(service.workloads) == f"Workloads(; url='{URL}')"


def test_an_address_may_be_given_by_url_and_shows_no_password() -> None:
    brief = steward.Retry(patience_seconds=0.1, attempts=1)
    with pytest.raises(TypeError, match="give client= or url=, not both"):
        steward.run("resnet18", URL, url=URL)
    for call in (steward.fit, steward.train, steward.evaluate, steward.runs, steward.carry):
        with pytest.raises(steward.Unreachable, match=r"127\.0\.0\.1"):
            call("resnet18", url="http://127.0.0.1:9", retry=brief)
    with pytest.raises(steward.Unreachable):
        steward.register({"name": "x"}, url="http://127.0.0.1:9", retry=brief)
    with pytest.raises(steward.Unreachable):
        steward.upload("resnet18", pd.DataFrame({"a": [1]}), url="http://127.0.0.1:9", retry=brief)
    run = steward.run("resnet18", url="http://user:secret@127.0.0.1:9/")
    assert repr(run) == "EpochRun(workload='resnet18', url='http://127.0.0.1:9')"
