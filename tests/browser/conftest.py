"""One service with something on every page, and one real browser, for all tests of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import repository
from app.kinds.contract.kind import Kind
from app.kinds.registry import KINDS
from app.workloads import service as workloads
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.browser.chromium import ARGUMENTS, program
from tests.servers import StewardServer, missing, start_steward


class Site(NamedTuple):
    """A service with a workload, a run of it, runs and workloads of all other kinds, a job, and one that failed."""

    url: str
    api: httpx.Client
    workload: str
    run: str
    job: str
    failed: str
    others: list[str]
    kinds: list[str]
    database_url: str

    def report(self, number: int) -> None:
        """One more iteration of the run."""
        body = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 30.0 + number}}
        self.api.put(f"/runs/{self.run}/iterations/{number}", json=body).raise_for_status()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """It has no workers: the job stays queued."""
    server = start_steward(tmp_path_factory.mktemp("site"), "--workers", "0", wait="alive")
    with httpx.Client(base_url=server.url) as api:
        try:
            yield _filled(server, api)
        finally:
            server.stop()


def _filled(server: StewardServer, api: httpx.Client) -> Site:
    api.post("/ui/examples/iterative").raise_for_status()
    database = Database(server.database_url)
    publish_model(database, "resnet18", _report())
    publish_agent(database, "resnet18", promote=True)
    publish_evaluation(database, "resnet18", agent=1)
    failed = _failed(database)
    database.dispose()
    run = api.post("/runs", json={"workload": "resnet18"}).raise_for_status().json()["id"]
    job = api.get("/jobs?state=queued").json()["items"][0]["id"]
    others = [_played(api, kind) for name, kind in KINDS.items() if name != "iterative"]
    kinds = [str(kind.example.spec["name"]) for name, kind in KINDS.items() if name != "iterative"]
    site = Site(server.url, api, "resnet18", run, job, failed, others, kinds, server.database_url)
    for number in range(30):
        site.report(number)
    return site


def _failed(database: Database) -> str:
    """A training that failed, as workers leave it."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, "resnet18")
        error = {"type": "about:blank", "title": "Failed", "status": 500, "detail": "out of memory"}
        more = {"started_at": utc_now(), "finished_at": utc_now(), "error": error, "attempts": 3}
        job = Job(tenant=TENANT, type="train", workload_id=workload.id, request={}, state="failed", **more)
        session.add(job)
        session.flush()
        for steps in (0, 1_000, 2_000):
            fields: dict[str, Any] = {
                "state": "running",
                "progress": steps / 4_000,
                "steps": steps,
                "episode_return": steps / 1_000 - 3,
            }
            repository.add_event(
                session, TENANT, job.id, fields | {"yardsticks": {"optimum": 0.0, "hold": -2}}, utc_now()
            )
        return str(job.id)


def _played(api: httpx.Client, kind: Kind) -> str:
    """A run of a kind's example, with its reports."""
    api.post("/workloads", json=dict(kind.example.spec)).raise_for_status()
    start = {"workload": kind.example.spec["name"], **kind.example.start}
    run = str(api.post("/runs", json=start).raise_for_status().json()["id"])
    for number, report in enumerate(kind.example.reports):
        api.put(f"/runs/{run}/iterations/{number}", json=dict(report)).raise_for_status()
    return run


def _report() -> dict[str, Any]:
    errors = {"ernest": 0.02, "log_linear": 0.07, "mean": 0.7}
    return {
        "family": "ernest",
        "candidates": [{"family": name, "mape": error, "chosen": name == "ernest"} for name, error in errors.items()],
    }


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A real Chromium; where there is none the tests skip, or fail where all servers are promised."""
    if program() is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        yield launch
        launch.close()
