"""The application behind every address that the command line calls, and a worker that fits as soon as it is awaited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app import queue
from app.cli.remote.service import Service
from app.database.engine import Database
from app.database.tables import Workload
from app.domain_models import service as domain_models
from app.jobs import lease
from app.settings import Settings


class FittingWorker:
    """Ends fits of any workload with the same model."""

    def __init__(self, database: Database, data: bytes, report: Mapping[str, Any]) -> None:
        self._database, self._data, self._report = database, data, report

    def fitted(self, job: str) -> Iterator[dict[str, Any]]:
        """See ``Service.follow``."""
        current = lease.claim(self._database, job, "worker", Settings())
        assert current is not None, f"job {job} has ended"
        with self._database.session() as session:
            workload = session.get_one(Workload, current.workload_id)
            report = dict(self._report)
            version = domain_models.publish(session, workload.id, workload.spec_version, report, self._data)
            lease.finish(session, current, {"model": version})
        yield {"state": "succeeded", "progress": 1.0, "result": {"model": version}}


def played_service(client: TestClient, worker: FittingWorker, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """``client`` answers instead of any service."""
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)
    monkeypatch.setattr(client, "close", lambda: None)
    monkeypatch.setattr("app.cli.remote.service.httpx.Client", lambda **_: client)
    monkeypatch.setattr(Service, "follow", lambda _self, job: worker.fitted(job))
    return client
