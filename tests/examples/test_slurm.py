"""The files for Slurm: the list of sizes against the service, the prolog by running it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from steward_client import Retry, Unreachable

from tests.batched import SPEC
from tests.clients.scaling.conftest import WORKLOAD, Service

FOLDER = Path(__file__).parents[2] / "examples/slurm"


def test_sizes_are_written_at_once_or_not_at_all(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import sizes

    assert client.post("/workloads", json=SPEC).status_code == 201
    service, file = Service(client), tmp_path / "sizes"
    monkeypatch.setattr(sizes, "Retry", lambda **_: Retry(patience_seconds=0.0))
    http = httpx.Client(base_url="http://steward", transport=httpx.MockTransport(service))
    monkeypatch.setattr(sizes, "http_client", lambda _: http)
    had = sum(service.start()[1] for _ in range(2))
    sizes.main("http://steward", str(file), "gpus")
    assert file.read_text() == f"{WORKLOAD} {had:.0f}\n"
    service.away = True
    with pytest.raises(Unreachable):
        sizes.main("http://steward", str(file), "gpus")
    assert file.read_text() == f"{WORKLOAD} {had:.0f}\n"
    assert list(tmp_path.glob("sizes*")) == [file]


@pytest.mark.parametrize(
    ("comment", "text"), [("steward:resnet18", "export STEWARD_WORKLOAD=resnet18\n"), ("mine", "")]
)
def test_the_prolog_tells_the_workload(tmp_path: Path, comment: str, text: str) -> None:
    double = tmp_path / "scontrol"
    double.write_text(f"#!/bin/sh\necho JobId=$3 JobName=x Comment={comment} Nodes=1\n")
    double.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "42"}
    done = subprocess.run([FOLDER / "task_prolog.sh"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == text
