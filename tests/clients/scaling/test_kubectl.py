"""The external metrics API as kubectl finds it, where kubectl is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from steward_client.scaling.metrics import API, METRIC, MetricsAdapter

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


def test_kubectl_finds_the_metric_and_its_value(tmp_path: Path) -> None:
    decided = {"resnet18": {"gpus": 2.5}, "other": {"gpus": 1.0}}
    config = uvicorn.Config(MetricsAdapter(lambda: decided).app(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        (listener,) = server.servers
        address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"

        def kubectl(*arguments: str) -> str:
            command = [str(KUBECTL), f"--server={address}", f"--cache-dir={tmp_path}", *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

        assert kubectl("api-resources", "--no-headers").split()[:2] == [METRIC, "external.metrics.k8s.io/v1beta1"]
        path = f"{API}/namespaces/default/{METRIC}?labelSelector=workload%3Dresnet18"
        (result,) = json.loads(kubectl("get", "--raw", path))["items"]
        assert result["value"] == "2500m"
    finally:
        server.should_exit = True
        thread.join()
