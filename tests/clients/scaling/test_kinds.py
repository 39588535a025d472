"""What is told of each kind: amounts, a cluster's jobs, or why there is nothing to tell."""

from __future__ import annotations

from typing import Any

import pytest
from steward_client.scaling.amounts import Subject, SubjectError, amounts

from app.kinds.registry import KINDS
from tests.batched import SPEC
from tests.clients.scaling.conftest import WORKLOAD, Service


def begun(service: Service, kind: str, **more: Any) -> str:
    """A workload of a kind's example with a run that has one report; its name."""
    example = KINDS[kind].example
    name = f"{kind}-lab"
    assert service.client.post("/workloads", json={**example.spec, "name": name, **more}).status_code == 201
    run = service.client.post("/runs", json={"workload": name, **example.start}).json()["id"]
    assert service.client.put(f"/runs/{run}/iterations/0", json=example.reports[0]).is_success
    return name


def test_a_cluster_tells_how_many_jobs_run_and_wait(service: Service) -> None:
    cluster = begun(service, "cluster", members=[WORKLOAD])
    result = service.reader().of(Subject(workload=cluster))
    assert result.keys() == {"running", "waiting", "free"}
    assert result["running"] + result["waiting"] == 2
    assert service.reader().by_workload() == {cluster: result}
    with pytest.raises(
        SubjectError, match=rf"{WORKLOAD!r} has no run of its own.* accepted is that one, with resource"
    ):
        service.reader().of(Subject(workload=WORKLOAD))
    _, gpus = service.start()
    assert service.reader().of(Subject(workload=WORKLOAD)) == {"gpus": gpus}


def test_a_queue_tells_its_length_and_another_workload_may_be_idle(service: Service) -> None:
    queue = begun(service, "workflow")
    result = service.reader().of(Subject(workload=queue))
    assert result.keys() == {"running", "waiting", "busy_processors"}
    assert result["running"] > 0
    assert service.reader().by_workload() == {queue: result}
    with pytest.raises(
        SubjectError, match="tell no amounts; accepted are workloads whose decisions have an allocation"
    ):
        amounts({"kind": "workflow", "workload": queue, "starts": [], "valid_for_iterations": 1})
    assert service.client.post("/workloads", json={**SPEC, "name": "idle"}).is_success
    assert service.reader().of(Subject(workload="idle")) == {}
